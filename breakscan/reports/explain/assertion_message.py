"""What a test has to object to in what was compiled, in a few lines a place."""

from __future__ import annotations

from collections.abc import Sequence

from breakscan.findings import Origin, Verdict
from breakscan.reports.explain.advice_words import recompile_advice
from breakscan.reports.explain.grouping import by_cause
from breakscan.reports.explain.words import recompile_sentence
from breakscan.reports.shared.printable import visible
from breakscan.reports.shared.site_words import VERDICT_WORDS, rule_words, short_path
from breakscan.reports.shared.wording import counted, sentence
from breakscan.runtime.explain.explanation import BreakSite, Explanation, FrameStatus, Recompile, UncompiledFrame
from breakscan.source.source_files import SourceFiles

INDENT = "   "


def objections(explanation: Explanation, breaks: int, recompiles: int | None) -> list[str]:
    """Why the run is not as it should be: more than ``breaks`` sites break graphs, more than ``recompiles`` recompiles,
    something cannot be compiled or runs eager, or nothing is compiled.  What torch owns does not count.

    Empty where it is as it should be.
    """
    found: list[str] = []
    sites = [site for site in explanation.breaks if site.origin is not Origin.FRAMEWORK]
    raised = [site for site in sites if site.verdict is Verdict.RAISES]
    if len(sites) > breaks or raised:
        allowed = f", {breaks} allowed" if breaks else ""
        found.append(f"{counted(len(sites), 'site breaks', 'sites break')} the graph{allowed}:")
        found += map(_break, sites)
    found += [_frame(frame) for frame in explanation.frames if _is_given_up(frame)]
    again = [one for one in explanation.recompiles if one.origin is not Origin.FRAMEWORK]
    if recompiles is not None and len(again) > recompiles:
        allowed = f", {recompiles} allowed" if recompiles else ""
        found.append(f"{counted(len(again), 'recompile')}{allowed}:")
        found += map(_recompiles, by_cause(again))
    if not found and not explanation.graphs:
        reasons = [f"{frame.function}: {frame.reason}" for frame in explanation.frames]
        found.append(_block("Nothing was compiled.", *map(sentence, reasons)))
    return found


def told_sites(explanation: Explanation) -> list[dict[str, str]]:
    """The sites as plain values, for a summary of many tests: what stands in its line, and what to do."""
    return [
        {"line": visible(_head(site)), "instead": visible(site.advice or "")}
        for site in explanation.breaks
        if site.origin is not Origin.FRAMEWORK
    ]


def _is_given_up(frame: UncompiledFrame) -> bool:
    """Whether the function is not compiled, and no break tells why."""
    is_lost = frame.status in (FrameStatus.EAGER, FrameStatus.RAISED)
    return is_lost and frame.break_site is None and frame.origin is not Origin.FRAMEWORK


def _break(site: BreakSite) -> str:
    return _block(
        _head(site),
        _line(site.site.path, site.site.line),
        f"Why: {sentence(site.rule.why if site.rule else site.reason)}",
        f"Instead: {sentence(site.advice)}" if site.advice else "",
    )


def _head(site: BreakSite) -> str:
    return _joined(
        f"{short_path(site.site.path)}:{site.site.line}:{site.site.column}",
        VERDICT_WORDS[site.verdict],
        rule_words(site.rule) or site.gb_type,
        f"in {site.function}" if site.function else "",
    )


def _frame(frame: UncompiledFrame) -> str:
    status = "fails to compile" if frame.status is FrameStatus.RAISED else "runs eager"
    return _block(
        _joined(f"{short_path(frame.site.path)}:{frame.site.line}", f"{frame.function} {status}"),
        f"Why: {sentence(frame.reason)}",
        f"Instead: {sentence(frame.advice)}" if frame.advice else "",
    )


def _recompiles(group: Sequence[Recompile]) -> str:
    first = group[0]
    trigger = f"Called from {short_path(first.trigger.path)}:{first.trigger.line}." if first.trigger else ""
    return _block(
        _joined(f"{short_path(first.site.path)}:{first.site.line}:{first.site.column}", rule_words(first.rule)),
        f"{sentence(recompile_sentence(group))} {trigger}",
        f"Instead: {sentence(advice)}" if (advice := recompile_advice(first)) else "",
    )


def _joined(*parts: str) -> str:
    return "  ".join(part for part in parts if part)


def _line(path: str, line: int) -> str:
    lines = SourceFiles.trusted().lines(path)  # of a test that ran in this process
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _block(head: str, *rest: str) -> str:
    return "\n".join([visible(head), *(f"{INDENT}{visible(text)}" for text in rest if text)])
