"""What ``verify`` and ``bench`` share: the options that say what is run and how it is reported, and what is said while
it is measured."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from breakscan.cli.failures import FAILED
from breakscan.cli.report_options import format_option, output_option
from breakscan.cli.request_options import asked_for, compile_option
from breakscan.cli.requirements import refuse_notebook, require_torch
from breakscan.prove.worker import CALLS, UserProgram
from breakscan.report.formats import Formats

F = TypeVar("F", bound=Callable[..., Any])


class NotMeasured(click.ClickException):
    """The program could not be measured.  Says why."""

    exit_code = FAILED

    def show(self, file: Any = None) -> None:
        say("")
        super().show(file)


def measuring_options(formats: Formats[Any]) -> Callable[[F], F]:
    """Adds the options and arguments to a command."""
    options = (
        click.argument("arguments", nargs=-1, type=click.UNPROCESSED),
        click.argument("program"),
        output_option,
        format_option(formats),
        compile_option,
        click.option("--calls", type=click.IntRange(min=1), default=CALLS, help=f"Calls that are captured.  [{CALLS}]"),
        click.option(
            "--devices",
            metavar="LIST",
            help="Use these GPUs of one kind at the same time: numbers (0,1), or all.  [as the program does]",
        ),
        click.option("-m", "as_module", is_flag=True, help="PROGRAM is the name of a module, as for python -m."),
    )

    def add(command: F) -> F:
        for option in options:
            command = option(command)
        return command

    return add


def program_of(
    command: str,
    as_module: bool,
    program: str,
    arguments: Sequence[str],
    calls: int,
    compile_: Sequence[str],
    backend: str,
) -> UserProgram:
    """Returns the program that the options name. Raises UsageError, and ClickException without a suitable torch."""
    if not as_module and not os.path.exists(program):
        raise click.UsageError(f"there is no file {program!r}; a module takes -m")
    if not as_module:
        refuse_notebook(program)
    named = (*(["-m"] if as_module else []), program)
    require_torch(command, named)
    argv = (*named, *arguments)
    return UserProgram(argv, asked_for(argv, False, compile_, backend), calls)


def say(what: str) -> None:
    """Prints the progress on standard error. On a terminal, it replaces the previous message."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)
    elif what:
        print(f"breakscan: {what}", file=sys.stderr, flush=True)
