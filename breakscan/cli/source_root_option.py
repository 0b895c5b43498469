"""The option ``--source-root`` of the commands that read recordings and logs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from breakscan.explain.relocation import Relocation
from breakscan.source.source_files import SourceFiles

F = TypeVar("F", bound=Callable[..., Any])


def source_root_option(command: F) -> F:
    """Adds the option, as ``relocation``."""
    return click.option(
        "--source-root",
        "relocation",
        metavar="[OLD=]FOLDER",
        multiple=True,
        callback=_relocation,
        help="Also read source files below this folder, beside those below the working directory; with OLD=, it holds "
        "the files that were below OLD when the program ran.",
    )(command)


def readable_files(relocation: Relocation) -> SourceFiles:
    """The sources that a recording or a log, which can come from anyone, may have opened."""
    return SourceFiles((os.getcwd(), *relocation.folders))


def _relocation(_: click.Context, __: click.Parameter, values: Iterable[str]) -> Relocation:
    roots: dict[str, str] = {}
    allowed = []
    for value in values:
        old, equals, new = value.partition("=")
        if not old or (equals and not new):
            raise click.BadParameter(f"{value!r} is not of the form FOLDER or OLD=NEW")
        if equals:
            roots[old] = os.path.abspath(new)
        elif os.path.isdir(old):
            allowed.append(os.path.abspath(old))
        else:
            raise click.BadParameter(f"there is no folder {old!r}; OLD=NEW tells where files are that were below OLD")
    return Relocation(roots, allowed)
