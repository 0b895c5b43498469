"""What a test has to object to in what was compiled, in a few lines a place."""

from __future__ import annotations

from breakscan.explain.explanation import Explanation
from breakscan.explain.frames import FrameStatus, UncompiledFrame, reason_words
from breakscan.model.findings import Origin, Verdict
from breakscan.model.words import counted, place, position, sentence, sentences
from breakscan.report.explain.entries import (
    EntryKind,
    ReportEntry,
    break_entry,
    by_cause,
    cause_entry,
    eager_call_entry,
    frame_entry,
    told_by_themselves,
)
from breakscan.report.printable import visible
from breakscan.rulebook.document import rule_words

INDENT = "   "


def objections(explanation: Explanation, breaks: int, recompiles: int | None) -> list[str]:
    """Why the run is not as it should be: more than ``breaks`` sites break graphs, more than ``recompiles`` recompiles,
    something cannot be compiled or runs eager, calls ran eager that were not meant to, or nothing is compiled.  Breaks
    in torch's own code do not count; recompiles of its functions do, since what changes between calls is the test's.

    Empty where it is as it should be.
    """
    found: list[str] = []
    sites = _breaks(explanation)
    if len(sites) > breaks or any(site.verdict is Verdict.RAISES for site in sites):
        allowed = f", {breaks} allowed" if breaks else ""
        found.append(f"{counted(len(sites), 'site breaks', 'sites break')} the graph{allowed}:")
        found += map(_block_of, sites)
    found += [_block_of(frame_entry(frame)) for frame in explanation.frames if _is_given_up(frame)]
    found += [_block_of(eager_call_entry(calls)) for calls in told_by_themselves(explanation) if not calls.intended]
    if recompiles is not None and len(explanation.recompiles) > recompiles:
        allowed = f", {recompiles} allowed" if recompiles else ""
        found.append(f"{counted(len(explanation.recompiles), 'recompile')}{allowed}:")
        found += [_block_of(cause_entry(group)) for group in by_cause(explanation.recompiles)]
    if not found and not explanation.graphs:
        reasons = [f"{frame.function}: {reason_words(frame.reason)}" for frame in explanation.frames]
        found.append(_block("Nothing was compiled.", *map(sentence, reasons)))
    return found


def told_sites(explanation: Explanation) -> list[dict[str, str]]:
    """The sites as plain values, for a summary of many tests: what stands in its line, and what to do."""
    return [{"line": visible(_head(entry)), "instead": visible(entry.advice or "")} for entry in _breaks(explanation)]


def _breaks(explanation: Explanation) -> list[ReportEntry]:
    """The breaks in code that is not torch's."""
    return [break_entry(site) for site in explanation.breaks if site.origin is not Origin.FRAMEWORK]


def _is_given_up(frame: UncompiledFrame) -> bool:
    """Whether the function is not compiled, and no break tells why."""
    is_lost = frame.status in (FrameStatus.EAGER, FrameStatus.RAISED)
    return is_lost and frame.break_site is None and frame.origin is not Origin.FRAMEWORK


def _block_of(entry: ReportEntry) -> str:
    callers = (
        [f"Called from {place(caller)}" for caller in entry.called_from] if entry.kind is not EntryKind.BREAK else []
    )
    return _block(
        _head(entry),
        (entry.code or "") if entry.kind in (EntryKind.BREAK, EntryKind.FAILURE) else "",
        sentences(entry.why if entry.kind is EntryKind.CAUSE else f"Why: {entry.why}", *callers),
        f"Instead: {sentence(entry.advice)}" if entry.advice else "",
    )


def _head(entry: ReportEntry) -> str:
    """``model.py:41:9  splits the graph  BRK201 tensor-item  in Block.forward``."""
    parts = [position(entry.site)]
    if entry.kind in (EntryKind.FRAME, EntryKind.FAILURE, EntryKind.EAGER_CALLS):
        parts = [place(entry.site), f"{entry.function} {entry.label}"]
    elif entry.kind is EntryKind.CAUSE:
        parts.append(rule_words(entry.rule))
    else:
        parts += [entry.label, rule_words(entry.rule) or entry.name, f"in {entry.function}" if entry.function else ""]
    return "  ".join(filter(None, parts))


def _block(head: str, *rest: str) -> str:
    return "\n".join([visible(head), *(f"{INDENT}{visible(text)}" for text in rest if text)])
