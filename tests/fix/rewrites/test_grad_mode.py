"""Code that records no gradients is known whichever way the file imports torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakscan.fix.planner import WantedRewrites, repair_file
from breakscan.fix.support.difference import Effect
from breakscan.rulebook.config import load_settings

IMPORTS = {
    "at the top": "import torch",
    "where it may fail": "try:\n    import torch\nexcept ImportError:\n    torch = None",
}
FUNCTION = """

@torch.compile
@torch.no_grad()
def f(h: torch.Tensor):
    if torch.isnan(h).any():
        h = torch.nan_to_num(h)
    return h
"""


@pytest.mark.parametrize("imports", IMPORTS.values(), ids=IMPORTS)
def test_a_copy_that_loses_its_gradient_is_stated(tmp_path: Path, imports: str) -> None:
    path = tmp_path / "model.py"
    path.write_text(imports + "\n" + FUNCTION, encoding="utf-8")
    settings = load_settings(tmp_path, None, target_torch="2.13", no_cache=True)
    (applied,) = repair_file(path, (), settings, WantedRewrites(unsafe=True, ids=frozenset({"where"}))).applied
    assert any(Effect.GRADIENTS in one.effects for one in applied.differences)
