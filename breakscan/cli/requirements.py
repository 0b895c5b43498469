"""Requires a torch that breakscan can record, for the commands that run code."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

import click

from breakscan.config import installed_torch
from breakscan.torch_versions import SUPPORTED, is_too_old


def require_torch(command: str, arguments: Sequence[str]) -> None:
    """Raises ClickException, with the remedy, if this Python has no torch or one that is too old.

    ``arguments`` are those of ``breakscan COMMAND`` that the message repeats.
    """
    installed = installed_torch()
    if installed is None:
        line = f"python -m breakscan {command} {shlex.join(arguments)}".rstrip()
        raise click.ClickException(
            f"torch is not installed for {sys.executable}. Install it there (pip install 'breakscan[torch]'), or run "
            f"breakscan with the Python that your program uses: {line}"
        )
    if is_too_old(installed):
        raise click.ClickException(
            f"torch {installed} is too old for breakscan {command}: install torch {SUPPORTED[0]} or later "
            f"(pip install 'torch>={SUPPORTED[0]}')"
        )
