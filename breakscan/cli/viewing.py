"""The option of ``explain`` and ``report`` that says what to list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from breakscan.reports.explain_made import TABLES

ALL = "all"


def _words(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    words = tuple(word.strip() for word in (value or "").split(",") if word.strip())
    for word in words:
        if word not in (*TABLES, ALL):
            raise click.BadParameter(f"{word!r} is none of {', '.join(TABLES)} and {ALL}")
    return tuple(TABLES) if ALL in words else words


def view_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--show``."""
    return click.option(
        "--show",
        "tables",
        metavar="WHAT,…",
        callback=_words,
        help=f"List what was compiled, in the terminal report: {', '.join(TABLES)}, or {ALL}.",
    )(command)
