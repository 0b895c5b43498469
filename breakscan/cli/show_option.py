"""The option ``--show`` of ``explain`` and ``report``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from breakscan.report.explain.tables import FINDINGS, LISTINGS

ALL = "all"
_WORDS = (FINDINGS, *LISTINGS)


def _words(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    words = tuple(word.strip() for word in (value or "").split(",") if word.strip())
    for word in words:
        if word not in (*_WORDS, ALL):
            raise click.BadParameter(f"{word!r} is none of {', '.join(_WORDS)} and {ALL}")
    return _WORDS if ALL in words else words


def show_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the option, as ``tables``, to a command."""
    return click.option(
        "--show",
        "tables",
        metavar="LIST",
        callback=_words,
        help=f"List more, in the terminal report: {', '.join(_WORDS)}, or {ALL}.",
    )(command)


def require_terminal(tables: tuple[str, ...], format_: str) -> None:
    """Raises UsageError where tables are asked for in a format that has them all, or has no room for them."""
    if tables and format_ != "terminal":
        raise click.UsageError("--show goes with --format terminal; json has all that it lists")
