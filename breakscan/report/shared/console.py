"""A rich console for a report: color on a terminal only, a fixed width elsewhere."""

from __future__ import annotations

import os
from typing import Any, TextIO, cast

from rich.console import Console, RenderableType

from breakscan.model.findings import Severity
from breakscan.report.shared.github_commands import inert

WIDTH = 120
"""Cells a line may take where no terminal and no ``COLUMNS`` says."""

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}


class _WorkflowLog:
    """A stream into the log of GitHub Actions, in which no name or line of code is taken for a workflow command."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(inert(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ReportConsole(Console):
    """A console that leaves it to the caller what a closed pipe means; rich would exit with status 1."""

    def on_broken_pipe(self) -> None:
        raise  # rich calls this where it has caught the BrokenPipeError


def print_page(page: RenderableType, console: Console, width: int | None = None) -> None:
    """Prints tables and the like, which rich fills with blanks up to the width: those only on a terminal."""
    if console.is_terminal:
        console.print(page, width=width, soft_wrap=False)
        return
    with console.capture() as captured:
        console.print(page, width=width, soft_wrap=False)
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def report_console(stream: TextIO) -> Console:
    """A console that prints text as it is: no markup, no emoji, no guessed highlighting."""
    columns = os.environ.get("COLUMNS", "")
    width = None if stream.isatty() else int(columns) if columns.isdigit() and int(columns) else WIDTH
    if os.environ.get("GITHUB_ACTIONS") == "true":
        stream = cast(TextIO, _WorkflowLog(stream))
    # In a notebook's kernel, rich would show each line as a separate output.
    return ReportConsole(
        file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True, force_jupyter=False
    )
