"""What ``fix`` says beside its diff: each finding, what becomes of it, and why."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.text import Text

from breakscan.findings import Finding, SourceError
from breakscan.repair.result import Applied, FileRepair, Refused, Repair
from breakscan.reports.shared.code_frame import paragraph
from breakscan.reports.shared.console import report_console
from breakscan.reports.shared.printable import printable
from breakscan.reports.shared.wording import counted


def write_notes(repair: Repair, stream: TextIO, *, written: bool, unwritten: tuple[SourceError, ...] = ()) -> None:
    """Writes the notes.  ``written`` tells that the files were to be changed, ``unwritten`` which could not be."""
    console = report_console(stream)
    failed = {error.path for error in unwritten}
    for file in map(printable, repair.files):
        for note in _notes(file, file.display in failed, console):
            console.print(note)
    for error in (*repair.errors, *unwritten):
        console.print(Text(f"{error.path}:{error.line}:{error.column}", "bold").append(f"  {error.message}", "red"))
    console.print(_summary(repair, written, failed))


def _notes(file: FileRepair, failed: bool, console: Console) -> list[Text]:
    done = ("not written", "red") if failed else ("rewritten", "green")
    told: list[tuple[Finding, tuple[str, str], str]] = [(one.finding, done, _words(one)) for one in file.applied]
    told += [(one.finding, ("unsafe", "yellow"), _words(one)) for one in file.held]
    for refused in file.refused:
        told.append((refused.finding, ("stays", "red"), _reasons(refused)))
    told += [(finding, ("stays", "red"), "no rewrite is known") for finding in file.without]
    told.sort(key=lambda one: (one[0].site.line, one[0].site.column))
    return [_note(finding, *what, words, console) for finding, what, words in told]


def _reasons(refused: Refused) -> str:
    """Why the rewrites that come nearest decline, each reason once."""
    by_reason: dict[str, list[str]] = {}
    for reason in [one for one in refused.reasons if one.near] or refused.reasons:
        by_reason.setdefault(reason.text, []).append(reason.rewrite)
    return "; ".join(f"{', '.join(rewrites)}: {text}" for text, rewrites in by_reason.items())


def _words(one: Applied) -> str:
    said = [one.difference] if one.difference else []
    said += [f"it still breaks where `{one.remains}`"] if one.remains else []
    return f"{one.rewrite}: {', and '.join(said)}" if said else one.rewrite


def _note(finding: Finding, what: str, style: str, words: str, console: Console) -> Text:
    text = Text(f"{finding.site.path}:{finding.site.line}:{finding.site.column}", "bold")
    text.append(f"  {finding.rule} {finding.name}  ").append(what, style)
    if text.cell_len + 2 + len(words) <= console.width:
        return text.append(f"  {words}")
    return text.append("\n").append_text(paragraph("", words, console.width))


def _summary(repair: Repair, written: bool, failed: set[str]) -> str:
    changed = [file for file in repair.files if file.changed and file.display not in failed]
    applied = sum(len(file.applied) for file in changed)
    held = sum(len(file.held) for file in repair.files)
    stays = sum(len(file.refused) + len(file.without) for file in repair.files)
    parts = []
    if applied:
        verb = "Rewrote" if written else "Would rewrite"
        parts.append(f"{verb} {counted(applied, 'finding')} in {counted(len(changed), 'file')}")
    if held:
        more = f"{held} more" if applied else f"{counted(held, 'finding')} to rewrite"
        parts.append(f"{more} with --unsafe")
    if stays:
        parts.append(f"{stays} {'stays' if stays == 1 else 'stay'}")
    words = ", ".join(parts) or "Nothing to rewrite"
    hint = "; --write changes the files" if applied and not written else ""
    return f"{words[0].upper()}{words[1:]}{hint} ({counted(repair.checked, 'file')} checked, torch {repair.torch})."
