"""The report of measured runs as a page in parts, which terminals and Markdown lay out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.text import Text

from breakscan.model.words import grouped, sentence
from breakscan.report import markdown
from breakscan.report.console import paragraph, print_diff, report_console

LONGEST_LABEL = 34  # characters of what stands in the first column: longer labels have a line of their own


@dataclass(frozen=True, slots=True)
class PageRow:
    """A row of the table: what was tried, its figures, and a note with its style on terminals."""

    label: str
    cells: Sequence[str]
    note: str = ""
    style: str = ""
    is_best: bool = False
    is_code: bool = True


@dataclass(frozen=True, slots=True)
class PageDetail:
    """More about a row: sentences, and for Markdown alone figures and a diff."""

    label: str
    sentences: Sequence[str]
    figures: Sequence[tuple[str, str]] = ()
    diff: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredPage:
    """A page of printable text.  The last of the ``titles`` is that of the notes; ``droppable`` are those of columns
    for which a terminal may lack room, the first to go first.  ``alarm`` comes before the headline.  ``paragraphs`` and
    ``basis``, labels with sentences, come before and after the details.  ``code`` follows the ``ending``, for the user
    to write.  The patch is as ``git apply`` takes it."""

    command: str
    headline: str
    titles: Sequence[str]
    rows: Sequence[PageRow]
    paragraphs: Sequence[tuple[str, str]] = ()
    details: Sequence[PageDetail] = ()
    basis: Sequence[tuple[str, str]] = ()
    ending: str = ""
    alarm: str = ""
    patch: str = ""
    code: Sequence[str] = ()
    droppable: Sequence[str] = ()

    def columns(self) -> list[int]:
        """The columns that any row has something in, without the first and the notes."""
        return [at for at in range(len(self.titles) - 2) if any(row.cells[at] for row in self.rows)]


def write_page_terminal(page: MeasuredPage, stream: TextIO) -> None:
    """Writes the page.  In a file, ``git apply`` finds the patch in it."""
    console = report_console(stream)
    if page.alarm:
        console.print(Text(page.alarm, "bold red"))
    console.print(Text(sentence(page.headline), "bold"))
    if page.rows:
        _print_table(page, console)
    if page.patch:
        print_diff(page.patch.splitlines(keepends=True), stream)
    labels = grouped((line, detail.label) for detail in page.details for line in detail.sentences)
    details = [(f"{', '.join(dict.fromkeys(names))}: ", line) for line, names in labels.items()]
    for label, words in (*page.paragraphs, *details, *page.basis):
        console.print(paragraph(label, words, console.width))
    if page.ending:
        console.print(page.ending)
    for line in page.code:
        console.print(Text(f"    {line}", "bold"))


def _print_table(page: MeasuredPage, console: Console) -> None:
    first, *titles, last = page.titles
    labels = [len(row.label) for row in page.rows if len(row.label) <= LONGEST_LABEL]
    width = max(len(first), *labels) if labels else len(first)
    widths = {at: max(len(titles[at]), *(len(row.cells[at]) for row in page.rows)) for at in page.columns()}
    for title in page.droppable:
        if 1 + width + sum(2 + one for one in widths.values()) > console.width:
            widths.pop(titles.index(title), None)

    def line(label: str, cells: Sequence[str]) -> str:
        return "  ".join([f" {label.ljust(width)}", *(cells[at].rjust(one) for at, one in widths.items())])

    has_notes = any(row.note for row in page.rows)
    console.print(Text(f"{line(first, titles)}{f'  {last}' if has_notes else ''}".rstrip(), "dim"))
    for row in page.rows:
        style = "bold green" if row.is_best else ""
        label = row.label
        if len(label) > width:
            console.print(Text(f" {label}", style))
            label = ""
        is_measured = any(row.cells[at] for at in widths)
        text = line(label, row.cells) if is_measured else f" {label.ljust(width)}"
        if row.note and text.strip() and len(text) + 2 + len(row.note) <= console.width:
            console.print(Text(f"{text}  ", style).append(row.note, f"not bold {row.style}".strip()))
            continue
        if text.strip():
            console.print(Text(text.rstrip(), style))
        if row.note:
            console.print(paragraph("    ", row.note, console.width, style=row.style))


def write_page_markdown(page: MeasuredPage, stream: TextIO) -> None:
    """Writes GitHub-flavoured Markdown of at most ``LIMIT`` characters, without a patch or details that do not fit."""
    parts = [markdown.heading(page.command, page.headline)]
    if page.rows:
        parts.append(_markdown_table(page))
    said = [("", page.alarm), *page.paragraphs, *page.basis, ("", page.ending)]
    closing = [markdown.paragraph(f"{label}{words}") + "\n" for label, words in said if words]
    closing += [markdown.block("\n".join(page.code), "python")] if page.code else []
    room = markdown.LIMIT - sum(len(part) + 1 for part in (*parts, *closing))
    if (block := markdown.block(page.patch)) and len(block) < room:
        parts.append(block)
        room -= len(block) + 1
    parts += closing
    for detail in map(_details, page.details):
        room -= len(detail) + 1
        if room < 0:
            parts.append("The rest does not fit into a comment: `--format json` has everything.\n")
            break
        parts.append(detail)
    stream.write("\n".join(parts))


def _markdown_table(page: MeasuredPage) -> str:
    first, *titles, last = page.titles
    shown = page.columns()
    has_notes = any(row.note for row in page.rows)

    def row(label: str, cells: Sequence[str], note: str) -> str:
        return markdown.row(label, *(cells[at] for at in shown), *([note] if has_notes else []))

    lines = []
    for one in page.rows:
        bold = "**" if one.is_best else ""
        label = markdown.code(one.label) if one.is_code else markdown.prose(one.label)
        cells = list(map(markdown.prose, one.cells))
        lines.append(row(f"{bold}{label}{bold}", cells, markdown.prose(one.note)))
    head = [first, *(titles[at] for at in shown), *([last] if has_notes else [])]
    return markdown.table_head(*head) + "".join(lines)


def _details(detail: PageDetail) -> str:
    said = [f"<details><summary>{markdown.prose(detail.label)}</summary>\n"]
    said += [f"- {markdown.prose(line)}" for line in detail.sentences]
    said += [f"- {markdown.prose(name)}: {markdown.prose(text)}" for name, text in detail.figures]
    if block := markdown.block(detail.diff):
        said.append(f"\n{block.rstrip()}")
    return "\n".join([*said, "\n</details>\n"])
