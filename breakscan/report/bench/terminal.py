"""The report of ``bench`` that people read: a line a way, then what follows, then on what it rests."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.text import Text

from breakscan.model.words import sentence
from breakscan.prove.bench.result import Bench, BenchRow, MeasurementStatus
from breakscan.report.bench.words import (
    TITLES,
    basis_words,
    cells,
    eager_cells,
    headline,
    outcome_words,
    verdict,
    write_words,
)
from breakscan.report.shared.code_frame import paragraph
from breakscan.report.shared.console import report_console
from breakscan.report.shared.observation_words import observation_words
from breakscan.report.shared.printable import visible

STYLES = {
    MeasurementStatus.FAILED: "bold red",
    MeasurementStatus.DIFFERS: "bold red",
    MeasurementStatus.UNSTEADY: "yellow",
    MeasurementStatus.SKIPPED: "dim",
}
LONGEST_LABEL = 34
"""Characters of what stands in the first column: longer labels have a line of their own."""
_MAY_GO = ("kernels", "pays after", "breaks", "memory")
"""Columns that are left out, the first first, where the lines are longer than the console is wide."""


def write_bench_terminal(bench: Bench, stream: TextIO) -> None:
    """Writes the report."""
    console = report_console(stream)
    console.print(Text(sentence(headline(bench)), "bold"))
    if bench.eager is not None:
        _table(bench, console)
    for words in verdict(bench):
        console.print(paragraph("", words, console.width))
    for note in bench.notes:
        console.print(paragraph("Note: ", sentence(visible(observation_words(note))), console.width))
    for words in basis_words(bench):
        console.print(paragraph("", words, console.width))
    for line in write_words(bench):
        console.print(Text(line, "bold"))


def _table(bench: Bench, console: Console) -> None:
    lines: list[tuple[tuple[str, ...], BenchRow | None]] = [(("eager", *eager_cells(bench)), None)]
    lines += [((visible(row.label), *cells(row, bench)), row) for row in bench.rows]
    widths = _widths([TITLES, *(line for line, _ in lines)], console.width)
    console.print(Text(_line(TITLES, widths), "dim"))
    for line, row in lines:
        style = "bold green" if row is not None and row.label == bench.best else ""
        words = outcome_words(row) if row is not None else ""
        if len(line[0]) > widths[0]:
            console.print(Text(f" {line[0]}", style))
            line = ("", *line[1:])
        if any(line[at] for at in widths if at):
            console.print(Text(_line(line, widths), style))
        elif words and 3 + widths[0] + len(words) <= console.width:
            console.print(Text(f" {line[0].ljust(widths[0])}  ").append(words, _style(row)))
            continue
        elif line[0]:
            console.print(Text(f" {line[0]}", style))
        if words:
            console.print(paragraph("    ", words, console.width, style=_style(row)))


def _style(row: BenchRow | None) -> str:
    return "" if row is None else STYLES.get(row.status, "")


def _widths(lines: list[tuple[str, ...]], room: int) -> dict[int, int]:
    """The columns that something is in, with their widths: as many as there is room for."""
    widths = {
        at: max(len(line[at]) for line in lines if at or len(line[at]) <= LONGEST_LABEL)
        for at in range(len(TITLES))
        if any(line[at] for line in lines[1:])
    }
    for name in _MAY_GO:
        if sum(widths.values()) + 2 * len(widths) - 1 > room:
            widths.pop(TITLES.index(name), None)
    return widths


def _line(line: tuple[str, ...], widths: dict[int, int]) -> str:
    """The first cell to the left, numbers to the right."""
    told = [line[at].rjust(width) if at else line[at].ljust(width) for at, width in widths.items()]
    return f" {'  '.join(told)}".rstrip()
