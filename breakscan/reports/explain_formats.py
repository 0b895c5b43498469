"""The forms that a report of ``explain`` can take."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from typing import Any, TextIO

from breakscan.runtime.explanation import Explanation

_WRITERS = {
    "terminal": "breakscan.reports.explain_terminal:write_explanation",
    "json": "breakscan.reports.explain_json:write_explain_json",
}
"""Loaded when they are asked for."""

FORMATS = tuple(_WRITERS)
FOR_PEOPLE = ("terminal",)
"""Those that may go to standard error, between what the program writes."""


def write_report(format_: str, explanation: Explanation, stream: TextIO) -> None:
    """Writes a report in one of :data:`FORMATS`."""
    write: Callable[[Explanation, TextIO], Any] = pkgutil.resolve_name(_WRITERS[format_])
    write(explanation, stream)
