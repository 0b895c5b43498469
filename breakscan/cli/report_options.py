"""The options that say how and where a command reports: ``--format`` and ``--output``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from breakscan.cli.output import require_no_input, require_no_source
from breakscan.report.formats import Formats

F = TypeVar("F", bound=Callable[..., Any])

Output = TypeVar("Output", Path, str, None)

STDOUT = "-"


def format_option(formats: Formats[Any]) -> Callable[[F], F]:
    """Adds ``--format``, as ``format_``; the first format is the default."""
    default = formats.names[0]
    help_ = f"How to report.  [{default}]"
    return click.option("--format", "format_", type=click.Choice(formats.names), default=default, help=help_)


def output_option(command: F) -> F:
    """Adds ``--output``, a file; without it, the report goes to standard output."""
    path = click.Path(path_type=Path, dir_okay=False)
    option = click.option("-o", "--output", type=path, callback=_no_source, help="Write the report to this file.")
    return option(_keeping_inputs(command))


def folder_or_file_option(command: F) -> F:
    """Adds ``--output``, a file or a folder; without it, the report goes to standard output."""
    path = click.Path(path_type=Path)
    help_ = "Write the report to this file, or pages into this folder."
    return _keeping_inputs(click.option("-o", "--output", type=path, callback=_no_source, help=help_)(command))


def stream_option(default: str) -> Callable[[F], F]:
    """Adds ``--output``, a file or ``-`` for standard output; ``default`` is where the report goes without it."""
    path = click.Path(path_type=str, dir_okay=False)
    help_ = f"Write the report to this file (- is standard output).  [{default}]"
    option = click.option("-o", "--output", type=path, callback=_no_source, help=help_)
    return lambda command: option(_keeping_inputs(command))


def output_path(output: str | None) -> Path | None:
    """The file that :func:`stream_option` names; None where it names none."""
    return None if output in (None, STDOUT) else Path(str(output))


def _keeping_inputs(command: F) -> F:
    """A command that refuses to write its report over a file that one of its other options or arguments names."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        context = click.get_current_context()
        if context.params["output"] is not None:
            require_no_input(str(context.params["output"]), _named_files(context))
        return command(*args, **kwargs)

    return cast(F, run)


def _named_files(context: click.Context) -> Iterator[str]:
    for parameter in context.command.params:
        if parameter.name == "output" or not (
            isinstance(parameter, click.Argument) or isinstance(parameter.type, click.Path)
        ):
            continue
        value = context.params.get(parameter.name or "")
        yield from map(str, value if isinstance(value, tuple) else () if value is None else (value,))


def _no_source(_: click.Context, __: click.Parameter, value: Output) -> Output:
    if value is not None:
        require_no_source(str(value))
    return value
