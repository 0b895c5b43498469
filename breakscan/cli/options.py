"""Options as parameters of commands and as fields of groups, and those of reports: ``--format`` and ``--output``."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import Field, field, fields
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from breakscan.cli.output import refuse_source
from breakscan.report.formats import Formats

F = TypeVar("F", bound=Callable[..., Any])
FILE_PATH = click.Path(path_type=Path, dir_okay=False)
FOLDER_PATH = click.Path(path_type=Path, file_okay=False)
CHECKED, REPORTED, KNOWN, PERFORMANCE = "What is checked", "Report and exit status", "Known findings", "Performance"
"""Sections of the help."""


class _Option(click.Option):
    def __init__(self, *names: Any, section: str, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose help lists its options in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):
            if isinstance(one, click.Option) and (row := one.get_help_record(ctx)) is not None:
                sections.setdefault(getattr(one, "section", "Options"), []).append(row)
        # A section that has only --help comes last.
        for title in sorted(sections, key=lambda one: len(sections[one]) == 1):
            with formatter.section(title):
                formatter.write_dl(sections[title])


def option(names: str, help: str, section: str = "Options", **attributes: Any) -> Any:
    """An option as :func:`click.option` declares it, with names between blanks: the default of a parameter of a
    :func:`declared` command, or a field of a group.  Its value is named like the parameter or the field."""
    kept = {**attributes, "cls": _Option, "section": section, "help": help}
    return field(metadata={"add": lambda name: click.option(*names.split(), name, **kept)})


def flag(names: str, help: str, section: str = "Options") -> Any:
    return option(names, help, section, is_flag=True)


def list_option(name: str, help_: str, section: str = "Options") -> Any:
    """An option that may be repeated, with words between commas; None if it was not given."""
    return option(name, help_, section, metavar="LIST", multiple=True, callback=_words)


def argument(**attributes: Any) -> Any:
    """The same for an argument as :func:`click.argument` declares it."""
    return field(metadata={"add": lambda name: click.argument(name, **attributes)})


def group(kind: type[Any]) -> Any:
    """The options of a group, a dataclass of such fields: the default of a parameter that gets the group."""
    return field(metadata={"group": kind})


def declared(command: F) -> F:
    """Adds the options and arguments that the defaults of a command's parameters declare."""
    given = [
        (name, one.default.metadata)
        for name, one in inspect.signature(command).parameters.items()
        if isinstance(one.default, Field)
    ]
    groups = {name: how["group"] for name, how in given if "group" in how}

    @functools.wraps(command)
    def run(*args: Any, **values: Any) -> Any:
        made = {name: kind(**{one.name: values.pop(one.name) for one in fields(kind)}) for name, kind in groups.items()}
        return command(*args, **values, **made)

    for name, how in reversed(given):
        members = [(one.name, one.metadata) for one in fields(how["group"])] if name in groups else [(name, how)]
        for member, one in reversed(members):
            run = one["add"](member)(run)
    return cast(F, run)


def _words(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    found = tuple(word.strip() for value in values for word in value.split(",") if word.strip())
    if values and not found:
        raise click.BadParameter("needs at least one word", param=parameter)
    return found or None


def format_option(formats: Formats[Any]) -> Any:
    """``--format``; the first format is the default."""
    default = formats.names[0]
    help_ = f"The format of the report.  [{default}]"
    return option("--format", help_, REPORTED, type=click.Choice(formats.names), default=default)


def output_to(default: str) -> Any:
    """``--output``, a file or ``-`` for standard output; ``default`` names the place of the report without it.  The
    command refuses to write over source files."""
    help_ = f"Write the report to this file, or to standard output (-).  [{default}]"
    type_ = click.Path(path_type=Path, dir_okay=False, allow_dash=True)
    return option("-o --output", help_, REPORTED, type=type_, callback=refuse_source)


output_option = output_to("standard output")
