"""Groups of options as dataclasses, and the options of reports: ``--format`` and ``--output``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import field, fields
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from breakscan.cli.output import require_no_source
from breakscan.report.formats import Formats

F = TypeVar("F", bound=Callable[..., Any])


def option(*names: str, **attributes: Any) -> Any:
    """A field of a group: an option as :func:`click.option` declares it.  Its value is named like the field."""
    return field(metadata={"option": (names, attributes)})


def options(name: str, group: type[Any]) -> Callable[[F], F]:
    """Adds the options of a group, a dataclass of :func:`option` fields, to a command, which gets the group as
    ``name``."""

    def add(command: F) -> F:
        @functools.wraps(command)
        def run(*args: Any, **values: Any) -> Any:
            own = {one.name: values.pop(one.name) for one in fields(group)}
            return command(*args, **values, **{name: group(**own)})

        for one in reversed(fields(group)):
            names, attributes = one.metadata["option"]
            run = click.option(*names, one.name, **attributes)(run)
        return cast(F, run)

    return add


def words(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the words of a repeatable option with comma-separated values; None if it was not given."""
    found = tuple(word.strip() for value in values for word in value.split(",") if word.strip())
    if values and not found:
        raise click.BadParameter("needs at least one word", param=parameter)
    return found or None


def format_option(formats: Formats[Any]) -> Callable[[F], F]:
    """Adds ``--format``, as ``format_``; the first format is the default."""
    default = formats.names[0]
    help_ = f"The format of the report.  [{default}]"
    return click.option("--format", "format_", type=click.Choice(formats.names), default=default, help=help_)


def output_to(default: str) -> Callable[[F], F]:
    """Adds ``--output``, a file or ``-`` for standard output; ``default`` names the place of the report without it.
    The command refuses to write over source files."""
    help_ = f"Write the report to this file, or to standard output (-).  [{default}]"
    type_ = click.Path(path_type=Path, dir_okay=False, allow_dash=True)
    return click.option("-o", "--output", type=type_, callback=_no_source, help=help_)


def _no_source(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    if value is not None:
        require_no_source(str(value))
    return value


output_option: Callable[[Any], Any] = output_to("standard output")
