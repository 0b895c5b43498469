"""``breakscan --bug-report``: what an issue needs, and nothing of the user's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from breakscan import __version__

pytestmark = pytest.mark.process


def test_it_has_versions_and_no_values_of_the_environment(
    breakscan: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_TOKEN", "a-secret-value")
    monkeypatch.setenv("PASSWORD", "another-secret")
    done = breakscan("--bug-report")
    assert done.status == 0
    assert f"| breakscan | {__version__} |" in done.out
    assert f"| Python | {sys.version.split()[0]} " in done.out
    assert "| libcst | " in done.out
    assert "| torch | " in done.out
    assert "TORCH_TOKEN" in done.out
    assert "secret" not in done.out
    assert "PASSWORD" not in done.out


def test_an_error_of_breakscan_asks_for_it(breakscan: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("breakscan.cli.check.discover", fails)
    done = breakscan("check")
    assert done.status == 2
    assert "'breakscan --bug-report'" in done.err
