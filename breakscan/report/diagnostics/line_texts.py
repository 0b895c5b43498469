"""The texts of the lines that diagnostics are about."""

from __future__ import annotations

from breakscan.report.diagnostics.diagnostic import DiagnosticReport


class LineTexts:
    """The lines of the files of one report, each file read once."""

    def __init__(self, report: DiagnosticReport) -> None:
        self._lines = {path: text.split("\n") for path, text in report.texts.items()}
        self._read = report.lines

    def line(self, path: str, number: int) -> str:
        """The text of a line, counted from 1; empty where there is none."""
        if path not in self._lines:
            self._lines[path] = self._read(path)
        return next(iter(self._lines[path][number - 1 : number]), "")
