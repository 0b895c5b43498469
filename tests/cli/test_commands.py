"""The command line as a whole: version, help, wrong commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import breakscan as package
from breakscan.cli.main import COMMANDS

Run = Callable[..., Any]


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(breakscan: Run, option: str) -> None:
    done = breakscan(option)
    assert (done.status, done.out) == (0, f"breakscan {package.__version__}\n")


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_the_commands(breakscan: Run, option: str) -> None:
    done = breakscan(option)
    assert done.status == 0
    for command in COMMANDS:
        assert f"\n  {command} " in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(breakscan: Run, command: str) -> None:
    done = breakscan(command, "-h")
    assert done.status == 0
    assert done.out.startswith(f"Usage: breakscan {command} ")


def test_a_command_that_is_not_known(breakscan: Run) -> None:
    done = breakscan("chek", "src")
    assert done.status == 2
    assert done.err.splitlines()[-1] == "Error: there is no command 'chek': did you mean check?"
