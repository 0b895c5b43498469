"""Reports of ``fix``: the diff, the notes on standard error, and JSON, by ``schemas/fix.schema.json``."""

import difflib
import io
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, TextIO

from rich.console import Console
from rich.text import Text

from breakscan.fix.result import Applied, FileRepair, Repair
from breakscan.model.findings import Finding, SourceError
from breakscan.model.words import capitalized, counted
from breakscan.report.console import paragraph, print_diff, report_console
from breakscan.report.findings import finding_object, targets_object, versions_words
from breakscan.report.printable import printable, write_json_report
from breakscan.report.sources import NotebookCells
from breakscan.rulebook.library import Library
from breakscan.rulebook.remedies import finding_remedies
from breakscan.source.writing import encoded, text_of


@dataclass(frozen=True, slots=True)
class FixReport:
    """A repair, and the rules.  ``written`` says that ``--write`` was given, ``unsafe`` that it writes all edits;
    ``unwritten`` are the files that could not be written.  Of notebooks, places are shown in ``cells``."""

    repair: Repair
    library: Library
    unsafe: bool = False
    written: bool = False
    unwritten: tuple[SourceError, ...] = ()
    cells: NotebookCells = field(default_factory=NotebookCells)

    def is_written(self, file: FileRepair) -> bool:
        """True if the file on disk was changed."""
        unwritten = {error.path for error in self.unwritten}
        return self.written and file.text(self.unsafe) != file.before and file.display not in unwritten


def by_outcome(file: FileRepair) -> dict[str, Sequence[Any]]:
    """The findings of a file, with what rewrites do about them, by the names that the JSON has."""
    return {
        "safe": [one for one in file.applied if not one.differences],
        "unsafe": [one for one in file.applied if one.differences],
        "declined": file.refused,
        "without": file.without,
    }


def _counts(files: Iterable[FileRepair]) -> Counter[str]:
    counts = Counter(dict.fromkeys(("safe", "unsafe", "declined", "without"), 0))
    counts.update(name for file in files for name, findings in by_outcome(file).items() for _ in findings)
    return counts


def summary_line(report: FixReport) -> str:
    """``2 safe edits, 3 findings stay (41 files checked, torch 2.13).  --write writes the safe edits, …``"""
    repair = report.repair
    counts, written = _counts(repair.files), _counts(filter(report.is_written, repair.files))
    parts, left = [], 0
    for kind in ("safe", "unsafe"):
        done = written[kind] if report.unsafe or kind == "safe" else 0
        parts += [f"{counted(done, f'{kind} edit')} written"] if done else []
        parts += [counted(counts[kind] - done, f"{kind} edit")] if counts[kind] > done else []
        left += counts[kind] - done
    if stays := counts["declined"] + counts["without"]:
        parts.append(f"{counted(stays, 'finding')} {'stays' if stays == 1 else 'stay'}")
    words = ", ".join(parts) or "nothing to rewrite"
    hint = f"  {'--write writes the safe edits, ' * bool(counts['safe'])}--write --unsafe writes all." if left else ""
    about = f"{counted(repair.checked, 'file')} checked, torch {versions_words(repair.targets)}"
    return f"{capitalized(words)} ({about}).{hint}"


STYLES = {"safe": "green", "unsafe": "yellow", "written": "green", "stays": "red"}
"""The outcomes of a finding in the notes: an edit that is not written, one that is, or none."""


class FixedFinding(NamedTuple):
    """A finding, its outcome (a key of :data:`STYLES`), and the edit or the reason in words."""

    finding: Finding
    outcome: str
    words: str


def fixed_findings(file: FileRepair, report: FixReport) -> list[FixedFinding]:
    """The findings of a printable file, in the order of their lines, with places as reports show them.  What to do
    instead of an edit is said once, and not where the reason speaks against it."""
    fixed = [_edit(one, report.is_written(file) and (report.unsafe or not one.differences)) for one in file.applied]
    advised: set[str] = set()
    stay = [*((one.finding, one.main) for one in file.refused), *((one, None) for one in file.without)]
    for finding, why in sorted(stay, key=lambda one: (one[0].site.line, one[0].site.column)):
        words = [why.text] if why else []
        remedies = () if why and why.against else finding_remedies(finding, report.library.get(finding.rule))
        for text in [one.text for one in remedies[:1] if one.text not in advised]:
            advised.add(text)
            words.append(f"Instead: {text}")
        fixed.append(FixedFinding(finding, "stays", ". ".join(words)))
    fixed.sort(key=lambda one: (one.finding.site.line, one.finding.site.column))
    for before, one in pairwise(list(fixed)):
        if (before.finding.site.line, before.words) == (one.finding.site.line, one.words):
            fixed[fixed.index(one)] = one._replace(words="")  # one edit fixes several findings of a line
    return [one._replace(finding=report.cells.finding(one.finding)) for one in fixed]


def _edit(one: Applied, is_written: bool) -> FixedFinding:
    outcome = "written" if is_written else "unsafe" if one.differences else "safe"
    return FixedFinding(one.finding, outcome, one.difference or "")


_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? ")
NO_LINE_END = "\\ No newline at end of file\n"


def diff_lines(repair: FileRepair) -> Iterator[str]:
    """The lines of the unified diff of one file, with their line ends.  The head of a hunk has its safety."""
    if not repair.changed:
        return
    name = repair.display.removeprefix("/")
    # ``git apply`` compares the first line with its byte order mark.
    mark = BOM_UTF8.decode() if repair.data.startswith(BOM_UTF8) else ""
    new = encoded(repair.path, repair.data, repair.after)
    # ``str.splitlines`` would also split at form feeds and similar characters.
    before, after = (io.StringIO(mark + text_of(data), newline="\n").readlines() for data in (repair.data, new))
    for line in difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"):
        if hunk := _HUNK.match(line):
            inside = range(int(hunk[1]), int(hunk[1]) + int(hunk[2] or 1))
            edits = [one for one in repair.applied if one.finding.site.line in inside]
            line = f"{line.rstrip()} {_safety(edits or repair.applied)}\n"
        yield line
        if not line.endswith("\n"):
            yield f"\n{NO_LINE_END}"


def _safety(edits: Sequence[Applied]) -> str:
    """``safe``, or ``line 10 safe, line 13 unsafe``."""
    unsafe = {one.finding.site.line for one in edits if one.differences}
    lines = dict.fromkeys(one.finding.site.line for one in edits)
    if not unsafe or unsafe == set(lines):
        return "unsafe" if unsafe else "safe"
    return ", ".join(f"line {line} {'unsafe' if line in unsafe else 'safe'}" for line in lines)


def write_diff(report: FixReport, stream: TextIO) -> None:
    """Writes the diff of all files that would change, in color on a terminal; nothing if they were written."""
    if not report.written:
        print_diff((line for repair in report.repair.files for line in diff_lines(repair)), stream)


SCHEMA = 3


def write_fix_json(report: FixReport, stream: TextIO) -> None:
    repair, cells = report.repair, report.cells
    counts = _counts(repair.files)
    made = {
        **targets_object(repair.targets),
        "files": [_file(file, report) for file in repair.files],
        "errors": [cells.object(error) for error in (*map(cells.error, repair.errors), *report.unwritten)],
        "summary": {"files": repair.checked, "changed": sum(file.changed for file in repair.files), **counts},
    }
    write_json_report(SCHEMA, made, stream)


def _file(file: FileRepair, report: FixReport) -> dict[str, Any]:
    def show(finding: Finding) -> dict[str, Any]:
        return finding_object(report.cells.finding(finding), report.cells, report.library)

    def rewrite(one: Applied) -> dict[str, Any]:
        return {
            "finding": show(one.finding),
            "rewrite": one.rewrite,
            "difference": one.difference,
            "effects": sorted({effect.value for difference in one.differences for effect in difference.effects}),
        }

    groups = by_outcome(file)
    return {
        "path": file.display,
        "changed": file.changed,
        "written": report.is_written(file),
        "diff": "".join(diff_lines(file)),
        **{name: list(map(rewrite, groups[name])) for name in ("safe", "unsafe")},
        "declined": [
            {
                "finding": show(refused.finding),
                "reasons": [{"rewrite": one.rewrite, "reason": one.text, "near": one.near} for one in refused.reasons],
            }
            for refused in groups["declined"]
        ],
        "without": list(map(show, file.without)),
    }


def write_notes(report: FixReport, stream: TextIO, *, quiet: bool = False) -> None:
    """Writes a note for each finding, what was not read or written, and counts; with ``quiet``, only the second."""
    console = report_console(stream)
    for file in () if quiet else map(printable, report.repair.files):
        for one in fixed_findings(file, report):
            console.print(_note(one, console))
    for error in (*map(report.cells.error, report.repair.errors), *report.unwritten):
        console.print(Text(f"{error.path}:{error.line}:{error.column}", "bold").append(f"  {error.message}", "red"))
    if not quiet:
        console.print(summary_line(report))


def _note(one: FixedFinding, console: Console) -> Text:
    finding, words = one.finding, one.words
    text = Text(f"{finding.site.path}:{finding.site.line}:{finding.site.column}", "bold")
    text.append(f"  {finding.rule} {finding.name}  ").append(one.outcome, STYLES[one.outcome])
    return text.append("\n").append_text(paragraph("", words, console.width)) if words else text
