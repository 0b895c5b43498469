"""``breakscan server`` where it cannot run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest


def test_the_extra_is_named(breakscan: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("pygls", "lsprotocol", "breakscan.serve.editor"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pygls", None)
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    done = breakscan("server")
    assert done.status == 2
    assert "install breakscan with its extra 'server', as in 'breakscan[server]'" in done.err
