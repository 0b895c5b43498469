"""What the commands that run code require: a torch that breakscan can record, and a program that Python can run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

import click

from breakscan.model.torch_versions import SUPPORTED, is_too_old
from breakscan.rulebook.config import installed_torch
from breakscan.source.python_text import is_notebook


def refuse_notebook(program: str) -> None:
    """Raises UsageError, with the remedy, for a file that Python cannot run and Jupyter can."""
    if is_notebook(program):
        raise click.UsageError(
            f"{program} is a notebook, which Python cannot run: in it, %%breakscan shows what a cell does (see "
            f"%load_ext breakscan.notebook), or make it a program with 'jupyter nbconvert --to script {program}'"
        )


def require_torch(command: str, arguments: Sequence[str]) -> None:
    """Raises ClickException, with the remedy, if this Python has no torch or one that is too old.

    ``arguments`` are those of ``breakscan COMMAND`` that the message repeats.
    """
    installed = installed_torch()
    if installed is None:
        line = f"python -m breakscan {command} {shlex.join(arguments)}".rstrip()
        raise click.ClickException(
            f"torch is not installed for {sys.executable}. Install it there (pip install 'torch>={SUPPORTED[0]}'), or "
            f"run breakscan with the Python that your program uses: {line}"
        )
    if is_too_old(installed):
        raise click.ClickException(
            f"torch {installed} is too old for breakscan {command}: install torch {SUPPORTED[0]} or later "
            f"(pip install 'torch>={SUPPORTED[0]}')"
        )
