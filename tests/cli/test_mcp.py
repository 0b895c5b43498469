"""``breakscan mcp`` where it cannot run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest


def test_the_extra_is_named(breakscan: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp" or "mcp_server" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = breakscan("mcp")
    assert done.status == 2
    assert "install breakscan with its extra 'mcp', as in 'breakscan[mcp]'" in done.err


def test_the_root_is_a_folder(breakscan: Callable[..., Any]) -> None:
    done = breakscan("mcp", "--root", "model.py")
    assert done.status == 2
    assert "is a file" in done.err
