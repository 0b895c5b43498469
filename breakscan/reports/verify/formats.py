"""The forms that a report of ``verify`` takes, each loaded when it is asked for."""

from __future__ import annotations

import pkgutil
from typing import TextIO

from breakscan.verify.proof import Verification

_WRITERS = {
    "terminal": "breakscan.reports.verify.terminal:write_verify_terminal",
    "json": "breakscan.reports.verify.json:write_verify_json",
    "markdown": "breakscan.reports.verify.markdown:write_verify_markdown",
    "github": "breakscan.reports.verify.github:write_verify_github",
    "html": "breakscan.reports.verify.html:write_verify_html",
}
FORMATS = tuple(_WRITERS)


def write_verification(format_: str, verification: Verification, stream: TextIO) -> None:
    """Writes a report in one of :data:`FORMATS`."""
    pkgutil.resolve_name(_WRITERS[format_])(verification, stream)
