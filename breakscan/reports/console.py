"""A rich console for a report: colour on a terminal only, a fixed width elsewhere."""

from __future__ import annotations

import os
from typing import TextIO

from rich.console import Console

from breakscan.findings import Severity

WIDTH = 120
"""Cells a line may take where no terminal and no ``COLUMNS`` says."""

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}


class ReportConsole(Console):
    """A console that leaves it to the caller what a closed pipe means; rich would exit with status 1."""

    def on_broken_pipe(self) -> None:
        raise  # rich calls this where it has caught the BrokenPipeError


def report_console(stream: TextIO) -> Console:
    """A console that prints text as it is: no markup, no emoji, no guessed highlighting."""
    columns = os.environ.get("COLUMNS", "")
    width = None if stream.isatty() else int(columns) if columns.isdigit() and int(columns) else WIDTH
    return ReportConsole(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)
