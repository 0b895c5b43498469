"""The options that say how and where a command reports: ``--format`` and ``--output``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from breakscan.cli.output import require_no_source
from breakscan.reports.formats import Formats

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
    return click.option("-o", "--output", type=path, callback=_no_source, help="Write the report to this file.")(
        command
    )


def stream_option(default: str) -> Callable[[F], F]:
    """Adds ``--output``, a file or ``-`` for standard output; ``default`` is where the report goes without it."""
    path = click.Path(path_type=str, dir_okay=False)
    help_ = f"Write the report to this file (- is standard output).  [{default}]"
    return click.option("-o", "--output", type=path, callback=_no_source, help=help_)


def output_path(output: str | None) -> Path | None:
    """The file that :func:`stream_option` names; None where it names none."""
    return None if output in (None, STDOUT) else Path(str(output))


def _no_source(_: click.Context, __: click.Parameter, value: Output) -> Output:
    if value is not None:
        require_no_source(str(value))
    return value
