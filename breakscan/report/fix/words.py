"""The last line of the reports of ``fix``."""

from __future__ import annotations

from breakscan.model.words import counted
from breakscan.report.fix.report import FixReport
from breakscan.report.shared.finding_words import versions_words


def summary_line(report: FixReport) -> str:
    """``Would rewrite 3 findings in 1 file, 2 stay; --write changes the files (41 files checked, torch 2.13.0).``"""
    repair = report.repair
    changed = [file for file in repair.files if file.changed and file.display not in report.unwritten_paths]
    applied = sum(len(file.applied) for file in changed)
    held = sum(bool(one.differences) for file in repair.files for one in file.held)
    observed = sum(len(file.held) for file in repair.files) - held
    softened = sum(len(file.softened) for file in repair.files)
    regenerated = sum(one.at_origin is not None for file in repair.files for one in file.refused)
    stays = sum(len(file.refused) + len(file.without) for file in repair.files) - regenerated
    parts = []
    if applied:
        verb = "Rewrote" if report.written else "Would rewrite"
        parts.append(f"{verb} {counted(applied, 'finding')} in {counted(len(changed), 'file')}")
    for count, option in ((observed, "--observed"), (held, "--unsafe")):
        if count:
            more = f"{count} more" if parts else f"{counted(count, 'finding')} to rewrite"
            parts.append(f"{more} with {option}")
    if softened:
        parts.append(f"{softened if parts else counted(softened, 'finding')} to soften with --soften")
    if regenerated:
        whose = "its file is" if regenerated == 1 else "their files are"
        parts.append(f"{regenerated} more once {whose} generated again")
    if stays:
        parts.append(f"{stays} {'stays' if stays == 1 else 'stay'}")
    words = ", ".join(parts) or "Nothing to rewrite"
    hint = "; --write changes the files" if applied and not report.written else ""
    about = f"{counted(repair.checked, 'file')} checked, torch {versions_words(repair.targets)}"
    return f"{words[0].upper()}{words[1:]}{hint} ({about})."
