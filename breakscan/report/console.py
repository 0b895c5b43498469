"""Output for terminals: a rich console that colors on a terminal only, and lines of source with a span underlined."""

import os
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO, cast

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from breakscan.model.findings import Severity, Site
from breakscan.report.printable import CHARACTERS, inert

WIDTH = 120  # cells a line may take where no terminal and no ``COLUMNS`` says
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


def plain_table(*titles: str, **attributes: Any) -> Table:
    """A table without lines, whose cells wrap."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", **attributes)
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


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


INDENT = "   "
TAB = 4
MOST_LINES = 6  # of a longer span only the first lines and the last one are shown


@dataclass(frozen=True, slots=True)
class FrameRow:
    """A line as it is printed.  ``mark`` is the underlined cells, from 0, None for context; ``number`` None for a
    gap."""

    number: int | None
    text: str
    mark: tuple[int, int] | None


def frame_rows(lines: Sequence[str], site: Site, width: int) -> Iterator[FrameRow]:
    """The rows for a site: the line above it as context, then each line of the span; none where the file is
    shorter than the site says.  ``width`` is the number of cells that a line may take."""
    if not 1 <= site.line <= len(lines):
        return
    above = site.line - 2
    if above >= 0 and lines[above].strip():
        yield FrameRow(above + 1, _Line(lines[above]).cropped(0, width)[0], None)
    last = min(site.end_line, len(lines))
    shown = range(site.line, last + 1)
    gap_at = site.line + MOST_LINES - 2 if len(shown) > MOST_LINES else None
    for number in shown:
        if gap_at is not None and gap_at <= number < last:
            if number == gap_at:
                yield FrameRow(None, "…", None)
            continue
        text = lines[number - 1]
        start = site.column - 1 if number == site.line else len(text) - len(text.lstrip())
        end = site.end_column - 1 if number == site.end_line else len(text.rstrip())
        line = _Line(text)
        first = line.cell(start)
        behind = max(line.cell(end), first + 1)
        shown_text, left = line.cropped(first if behind > width else 0, width)
        yield FrameRow(number, shown_text, (min(first - left, width - 1), min(behind - left, width)))


class _Line:
    """A line as glyphs that a terminal can show, each with the cells it takes."""

    def __init__(self, text: str) -> None:
        self.glyphs: list[str] = []
        self.starts = [0]
        for character in text:
            at = self.starts[-1]
            glyph = " " * (TAB - at % TAB) if character == "\t" else character.translate(CHARACTERS)
            self.glyphs.append(glyph)
            self.starts.append(at + cell_len(glyph))

    def cell(self, index: int) -> int:
        """The cell at which a character starts."""
        return self.starts[min(max(index, 0), len(self.glyphs))]

    def cropped(self, first: int, width: int) -> tuple[str, int]:
        """The part of at most ``width`` cells that shows the cell ``first``, and the cell that it starts at."""
        if self.starts[-1] <= width:
            return "".join(self.glyphs).rstrip(), 0
        total = self.starts[-1]
        left = max(min(first - width // 4, total - width), 0)
        right = left + width - (total > left + width)
        kept, at = "", left
        for glyph, start, end in zip(self.glyphs, self.starts, self.starts[1:], strict=False):
            # The mark of a cut replaces the first character: a combining one takes no cell that it could replace.
            if start >= left and end <= right and (kept or end > start):
                kept += " " * (start - at) + glyph
                at = end
        if left:
            kept = "…" + " " * (cell_len(kept[:1]) - 1) + kept[1:]
        return (kept + "…" if total > at else kept), left


def code_text(
    lines: Sequence[str], site: Site, width: int, style: str, *, message: str = "", context: bool = True
) -> Text | None:
    """The rows of a site with its span underlined, and a message after the last of them or below it.  ``context`` keeps
    the rows that are not part of the span.  None where the file no longer has the site."""
    gutter = max(len(str(min(site.end_line, len(lines)))), 3) + len(INDENT)
    room = max(width - gutter - len(" │ "), 20)
    rows = list(frame_rows(lines, site, room)) if lines else []
    shown = [row for row in rows if context or row.mark is not None]
    if not shown:
        return None
    parts: list[Text] = []
    for row in shown:
        part = Text(f"{row.number or '':>{gutter}} │ ", "dim")
        part.append(row.text, "default" if row.mark else "dim")
        parts.append(part)
        if row.mark is None:
            continue
        start, end = row.mark
        mark = Text(f"{'':>{gutter}} │ ", "dim").append(" " * start + "━" * (end - start), style)
        parts.append(mark)
        if row is not rows[-1] or not message:
            continue
        if end + 1 + cell_len(message) <= room:
            mark.append(f" {message}", style)
        else:
            parts += [Text(f"{'':>{gutter}} │ ", "dim").append(line, style) for line in textwrap.wrap(message, room)]
    return Text("\n").join(parts)


def heading(title: str) -> Text:
    return Text(f"\n{title}", "bold underline")


def paragraph(label: str, sentence: str, width: int, *, style: str = "", indent: str = INDENT) -> Text:
    """A label in bold, followed by a sentence, indented and wrapped."""
    room = max(width - len(indent), 20)
    lines = textwrap.wrap(label + sentence, room, break_long_words=False, break_on_hyphens=False) or [""]
    text = Text(indent)
    text.append(lines[0][: len(label)], "bold")
    text.append(lines[0][len(label) :], style)
    for line in lines[1:]:
        text.append(f"\n{indent}").append(line, style)
    return text


_DIFF_STYLES = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}


def print_diff(lines: Iterable[str], stream: TextIO) -> None:
    """Prints a unified diff: in color on a terminal, else as it is, so that ``git apply`` takes it."""
    if not stream.isatty():
        stream.writelines(lines)
        return
    console = report_console(stream)
    for line in lines:
        style = next((style for start, style in _DIFF_STYLES.items() if line.startswith(start)), "")
        console.print(Text(line, style), end="")
