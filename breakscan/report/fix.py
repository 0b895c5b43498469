"""Reports of ``fix``: the diff, the notes on standard error, JSON and diagnostics.

``schemas/fix.schema.json`` describes the JSON.
"""

from __future__ import annotations

import difflib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple, TextIO

from rich.console import Console
from rich.text import Text

from breakscan.fix.result import Applied, FileRepair, Refused, Repair
from breakscan.model.findings import Finding, Severity, SourceError
from breakscan.model.words import counted, grouped_reasons
from breakscan.report.console import paragraph, print_diff, report_console
from breakscan.report.diagnostics import (
    Diagnostic,
    DiagnosticReport,
    Remark,
    error_site,
    finding_diagnostic,
    unread_remark,
)
from breakscan.report.findings import finding_object, targets_object, versions_words
from breakscan.report.json_report import write_json_report
from breakscan.report.printable import printable
from breakscan.report.sources import NotebookCells
from breakscan.rulebook.library import Library
from breakscan.source.writing import encoded, text_of


@dataclass(frozen=True, slots=True)
class FixReport:
    """A repair, and the rules.  ``written`` says that ``--write`` was given; ``unwritten`` are the files that could not
    be written.  Of notebooks, places are shown in ``cells``."""

    repair: Repair
    library: Library
    written: bool = False
    unwritten: tuple[SourceError, ...] = ()
    cells: NotebookCells = field(default_factory=NotebookCells)

    @property
    def unwritten_paths(self) -> set[str]:
        return {error.path for error in self.unwritten}


def by_outcome(file: FileRepair) -> dict[str, Sequence[Any]]:
    """The findings of a file, with what rewrites do about them, by the names that the JSON has."""
    return {
        "applied": file.applied,
        "unsafe": file.held,
        "declined": file.refused,
        "without": file.without,
    }


_GROUPS = ("applied", "unsafe", "declined", "without")


def _counts(files: Iterable[FileRepair]) -> Counter[str]:
    return Counter(name for file in files for name, findings in by_outcome(file).items() for _ in findings)


def summary_line(report: FixReport) -> str:
    """``Would rewrite 3 findings in 1 file, 2 stay; --write changes the files (41 files checked, torch 2.13.0).``"""
    repair = report.repair
    changed = [file for file in repair.files if file.changed and file.display not in report.unwritten_paths]
    applied = _counts(changed)["applied"]
    counts = _counts(repair.files)
    parts = []
    if applied:
        verb = "Rewrote" if report.written else "Would rewrite"
        parts.append(f"{verb} {counted(applied, 'finding')} in {counted(len(changed), 'file')}")
    if unsafe := counts["unsafe"]:
        more = f"{unsafe} more" if parts else f"{counted(unsafe, 'finding')} to rewrite"
        parts.append(f"{more} with --unsafe")
    if stays := counts["declined"] + counts["without"]:
        parts.append(f"{stays} {'stays' if stays == 1 else 'stay'}")
    words = ", ".join(parts) or "Nothing to rewrite"
    hint = "; --write changes the files" if applied and not report.written else ""
    about = f"{counted(repair.checked, 'file')} checked, torch {versions_words(repair.targets)}"
    return f"{words[0].upper()}{words[1:]}{hint} ({about})."


class FindingOutcome(str, Enum):
    """The outcome of a finding, as the notes name it."""

    REWRITTEN = "rewritten"
    NOT_WRITTEN = "not written"
    UNSAFE = "unsafe"
    STAYS = "stays"


class FixedFinding(NamedTuple):
    """A finding, what happened to it, and the rewrite or the reason in words."""

    finding: Finding
    outcome: FindingOutcome
    words: str


def fixed_findings(file: FileRepair, report: FixReport) -> list[FixedFinding]:
    """The findings of a printable file, in the order of their lines, with places as reports show them."""
    is_unwritten = file.display in report.unwritten_paths
    rewrites = {
        "applied": FindingOutcome.NOT_WRITTEN if is_unwritten else FindingOutcome.REWRITTEN,
        "unsafe": FindingOutcome.UNSAFE,
    }
    groups = by_outcome(file)
    fixed = [
        FixedFinding(one.finding, outcome, _rewrite(one)) for name, outcome in rewrites.items() for one in groups[name]
    ]
    fixed += map(_refused, file.refused)
    fixed += [FixedFinding(one, FindingOutcome.STAYS, "no rewrite is known") for one in file.without]
    fixed.sort(key=lambda one: (one.finding.site.line, one.finding.site.column))
    return [one._replace(finding=report.cells.finding(one.finding)) for one in fixed]


def _refused(one: Refused) -> FixedFinding:
    reasons = grouped_reasons((reason.rewrite, reason.text) for reason in one.nearest)
    return FixedFinding(one.finding, FindingOutcome.STAYS, reasons)


def _rewrite(one: Applied) -> str:
    differences = [one.difference] if one.difference else []
    differences += [f"it still breaks if `{one.remains}`"] if one.remains else []
    return f"{one.rewrite}: {', and '.join(differences)}" if differences else one.rewrite


NO_LINE_END = "\\ No newline at end of file\n"


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
    if not report.written:
        print_diff((line for repair in report.repair.files for line in diff_lines(repair)), stream)


SCHEMA = 2


def write_fix_json(report: FixReport, stream: TextIO) -> None:
    """Writes the repair as one JSON object."""
    repair, cells = report.repair, report.cells
    counts = _counts(repair.files)
    made = {
        **targets_object(repair.targets),
        "files": [_file(file, report) for file in repair.files],
        "errors": [cells.object(error) for error in (*map(cells.error, repair.errors), *report.unwritten)],
        "summary": {
            "files": repair.checked,
            "changed": sum(file.changed for file in repair.files),
            **{name: counts[name] for name in _GROUPS},
        },
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
            "remains": one.remains,
        }

    groups = by_outcome(file)
    return {
        "path": file.display,
        "changed": file.changed,
        "written": report.written and file.display not in report.unwritten_paths and file.changed,
        "diff": "".join(diff_lines(file)),
        **{name: list(map(rewrite, groups[name])) for name in ("applied", "unsafe")},
        "declined": [
            {
                "finding": show(refused.finding),
                "reasons": [{"rewrite": one.rewrite, "reason": one.text, "near": one.near} for one in refused.reasons],
            }
            for refused in groups["declined"]
        ],
        "without": list(map(show, file.without)),
    }


_OUTCOMES = {
    FindingOutcome.REWRITTEN: ("green", "breakscan fix --write rewrites this by"),
    FindingOutcome.NOT_WRITTEN: ("red", "The file could not be written: this would be rewritten by"),
    FindingOutcome.UNSAFE: ("yellow", "breakscan fix --unsafe rewrites this by"),
    FindingOutcome.STAYS: ("red", "Not rewritten:"),
}
"""The style of each on a terminal, and how a sentence about it begins."""


def fix_diagnostics(report: FixReport) -> DiagnosticReport:
    """One diagnostic for each finding: a note if the rewrite was written, else with the severity of the finding."""
    originals: dict[str, str] = {}
    files = [printable(file, originals) for file in report.repair.files]
    errors = tuple(map(report.cells.error, report.repair.errors))
    remarks = [unread_remark(error) for error in printable(errors, originals)]
    remarks += [
        Remark(Severity.ERROR, f"not written: {error.message}", "not written", error_site(error))
        for error in printable(report.unwritten, originals)
    ]
    return DiagnosticReport(
        "fix",
        [_diagnostic(one, report) for file in files for one in fixed_findings(file, report)],
        remarks=remarks,
        end=[summary_line(report)],
        texts={**{file.display: file.before for file in report.repair.files}, **report.cells.texts},
        cells=report.cells,
        originals=originals,
    )


def _diagnostic(one: FixedFinding, report: FixReport) -> Diagnostic:
    diagnostic = finding_diagnostic(one.finding, report.library.get(one.finding.rule))
    is_gone = report.written and one.outcome is FindingOutcome.REWRITTEN
    severity = Severity.INFO if is_gone else diagnostic.severity
    outcome = f"{'Rewritten by' if is_gone else _OUTCOMES[one.outcome][1]} {one.words}"
    return replace(diagnostic, severity=severity, details=(*diagnostic.details, outcome))


def write_notes(report: FixReport, stream: TextIO, *, quiet: bool = False) -> None:
    """Writes a note for each finding, then what could not be read or written, and the counts; with ``quiet``, only what
    could not be read or written."""
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
    text.append(f"  {finding.rule} {finding.name}  ").append(one.outcome.value, _OUTCOMES[one.outcome][0])
    if text.cell_len + 2 + len(words) <= console.width:
        return text.append(f"  {words}")
    return text.append("\n").append_text(paragraph("", words, console.width))
