"""Commands that run code, where torch is not installed or too old."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("explain", "model.py"), ("verify", "model.py"), ("bench", "-m json"), ("rules replay", "BRK101")],
)
@pytest.mark.parametrize(
    ("version", "said"),
    [
        (
            None,
            "torch is not installed for {python}. Install it there (pip install 'torch>=2.11'), or run breakscan "
            "with the Python that your program uses: python -m breakscan {command} {arguments}",
        ),
        (
            "2.5.1+cu121",
            "torch 2.5.1+cu121 is too old for breakscan {command}: install torch 2.11 or later "
            "(pip install 'torch>=2.11')",
        ),
    ],
)
def test_without_a_suitable_torch_nothing_runs(
    breakscan: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    arguments: str,
    version: str | None,
    said: str,
) -> None:
    torch = tmp_path / "site" / "torch"
    torch.mkdir(parents=True)
    (torch / "__init__.py").write_text("raise SystemExit(3)", encoding="utf-8")
    if version:
        (torch / "version.py").write_text(f"__version__ = '{version}'\n", encoding="utf-8")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(torch.parent)
    done = breakscan(*command.split(), *arguments.split())
    message = said.format(python=sys.executable, command=command, arguments=arguments)
    assert (done.status, done.out, done.err) == (2, "", f"Error: {message}\n")
