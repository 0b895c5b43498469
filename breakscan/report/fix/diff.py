"""The diff of ``fix``: the format of ``git apply`` and ``patch -p1``."""

from __future__ import annotations

import difflib
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import TextIO

from rich.text import Text

from breakscan.fix.result import FileRepair
from breakscan.report.fix.report import FixReport
from breakscan.report.shared.console import report_console
from breakscan.source.writing import encoded, text_of

NO_LINE_END = "\\ No newline at end of file\n"
STYLES = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}


def diff_lines(repair: FileRepair) -> Iterator[str]:
    """The lines of the unified diff of one file, with their line ends."""
    if not repair.changed:
        return
    name = repair.display.removeprefix("/")
    # ``git apply`` compares the first line with its byte order mark.
    mark = BOM_UTF8.decode() if repair.data.startswith(BOM_UTF8) else ""
    new = encoded(repair.path, repair.data, repair.after)
    before, after = (_by_newlines(mark + text_of(data)) for data in (repair.data, new))
    for line in difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"):
        yield line
        if not line.endswith("\n"):
            yield f"\n{NO_LINE_END}"


def _by_newlines(text: str) -> list[str]:
    """The lines with their line ends; ``str.splitlines`` would also split at form feeds and similar characters."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def write_diff(report: FixReport, stream: TextIO) -> None:
    """Writes the diff of all files that would change, in color on a terminal; nothing if they were written."""
    if report.written:
        return
    repairs = report.repair.files
    if not stream.isatty():
        for repair in repairs:
            stream.writelines(diff_lines(repair))
        return
    console = report_console(stream)
    for repair in repairs:
        for line in diff_lines(repair):
            style = next((style for start, style in STYLES.items() if line.startswith(start)), "")
            console.print(Text(line, style), end="")
