"""A text for the issue tracker of a library in whose code the graph breaks, or that cannot be compiled."""

from __future__ import annotations

from breakscan.explain.explanation import BreakSite, Explanation, FrameStatus, UncompiledFrame
from breakscan.explain.repro.problem import RecordedProblem
from breakscan.explain.repro.reproduction import Reproduction, ReproStatus
from breakscan.model.findings import Verdict
from breakscan.model.words import place
from breakscan.report.explain.entries import ReportEntry, break_entry, frame_entry
from breakscan.report.explain.library_words import of_authors, package_of
from breakscan.report.explain.upstream_pages import break_page
from breakscan.report.markdown import code, prose
from breakscan.report.printable import printable, visible

_FENCE = "````"
"""Longer than one in a docstring."""


def issue_library(problem: RecordedProblem, explanation: Explanation) -> str | None:
    """The library whose authors alone can do something about it; None if the program's user can, or it is not known
    whose code it is."""
    found = _found(problem, explanation)
    return package_of(problem.site.path) if found is not None and of_authors(found) else None


def issue_text(problem: RecordedProblem, explanation: Explanation, made: Reproduction | None, text: str) -> str:
    """The Markdown of an issue.  ``text`` is the program of ``made``, which is shown if it reproduces the problem."""
    found = _found(problem, explanation)
    assert found is not None
    told = printable(found)
    entry = break_entry(told) if isinstance(told, BreakSite) else frame_entry(told)
    library = package_of(problem.site.path) or ""
    version = explanation.libraries.get(library)
    versions = [
        f"{library} {version}" if version else library,
        f"torch {explanation.torch}",
        f"Python {explanation.python}",
    ]
    inside = f", in {code(entry.function)}" if entry.function else ""
    parts = [
        f"# {_title(entry)}",
        ", ".join(prose(visible(one)) for one in versions),
        f"**Where:** {code(place(entry.site))}{inside}",
        f"{_FENCE}python\n{visible(problem.code)}\n{_FENCE}",
        f"**What happens:** {prose(_happens(entry))}",
        f"**Why:** {_why(problem, told)}",
    ]
    if problem.rule and (advice := told.advice):
        parts.append(f"**What could be written instead:** {prose(advice)}")
    if made and made.status is ReproStatus.REPRODUCED:
        after = f" It then ends with {prose(visible(made.error))}, which comes of the stand-ins." if made.error else ""
        parts.append(f"**Reproduction**, with stand-ins for the values; breakscan ran it and saw the same.{after}")
        parts.append(f"{_FENCE}python\n{text.rstrip()}\n{_FENCE}")
    return "\n\n".join(parts) + "\n"


def _found(problem: RecordedProblem, explanation: Explanation) -> BreakSite | UncompiledFrame | None:
    """What the explanation has of a problem; None of recompiles, which the caller of a library causes."""
    for site in explanation.breaks:
        if (site.site, site.gb_type) == (problem.site, problem.gb_type):
            return site
    for frame in explanation.frames:
        if frame.status is FrameStatus.RAISED and (frame.failed_at or frame.site) == problem.site:
            return frame
    return None


def _title(entry: ReportEntry) -> str:
    what = "graph break" if entry.gb_type else "failure"
    where = code(entry.function or place(entry.site))
    return f"torch.compile: {what} in {where}, {code(entry.gb_type or entry.name)}"


def _happens(entry: ReportEntry) -> str:
    match entry.verdict:
        case Verdict.SPLITS:
            return "torch.compile ends the graph here, and begins another one after it."
        case Verdict.EAGER:
            return " ".join(entry.consequences)
    return "torch.compile raises here."


def _why(problem: RecordedProblem, told: BreakSite | UncompiledFrame) -> str:
    """In torch's own words."""
    said = told.reason if isinstance(told, BreakSite) else problem.reason
    page = break_page(problem.gb_id)
    return f"{prose(visible(said))}{f' ([{problem.gb_id}]({page}))' if page else ''}"
