"""The forms that a report of ``explain`` can take."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from breakscan.runtime.explain.explanation import Explanation

if TYPE_CHECKING:
    from breakscan.agreement.result import Agreement

_WRITERS = {
    "terminal": "breakscan.reports.explain.terminal:write_explanation",
    "json": "breakscan.reports.explain.json:write_explain_json",
    "markdown": "breakscan.reports.explain.markdown:write_explain_markdown",
    "github": "breakscan.reports.explain.github:write_explain_github",
    "sarif": "breakscan.reports.explain.sarif:write_explain_sarif",
    "html": "breakscan.reports.explain.html.write:write_html",
}
"""Loaded when they are asked for."""

FORMATS = tuple(_WRITERS)
WITH_AGREEMENT = ("terminal", "json")
"""Those that can show what ``check`` says of the code that a run compiled."""
FOR_PEOPLE = ("terminal", "github")
"""Those that may go to standard error, between what the program writes."""


@dataclass(frozen=True, slots=True)
class View:
    """What a report shows beyond the explanation: what ``check`` says of the code that was compiled, all of it where
    it is ``joined``, else what breaks hide; and the tables of ``explain_tables.LISTINGS``."""

    agreement: Agreement | None = None
    joined: bool = False
    tables: tuple[str, ...] = ()


PLAIN = View()


def write_report(format_: str, explanation: Explanation, stream: TextIO, view: View = PLAIN) -> None:
    """Writes a report in one of :data:`FORMATS`; of a view each format takes what it can show."""
    write: Callable[..., Any] = pkgutil.resolve_name(_WRITERS[format_])
    agreement = view.agreement
    if format_ == "terminal":
        write(explanation, stream, hidden=agreement.hidden if agreement else None, tables=view.tables)
    elif format_ == "json" and view.joined:
        write(explanation, stream, agreement)
    else:
        write(explanation, stream)
    if format_ == "terminal" and view.joined:
        pkgutil.resolve_name("breakscan.reports.explain.agreement_terminal:write_agreement")(agreement, stream)
