"""What the reports of ``explain`` say in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from breakscan.explain.compiled import CompiledFrame
from breakscan.explain.explanation import (
    BreakSite,
    Explanation,
    FrameStatus,
    FunctionPart,
    Recompile,
    UncompiledFrame,
)
from breakscan.explain.notice import Notice, NoticeKind
from breakscan.explain.timelines import CompileSpan
from breakscan.model.findings import Finding, Verdict
from breakscan.model.words import INSIDE, counted, listed, seconds_in_words
from breakscan.record.job import signal_name
from breakscan.record.parsers.guards import BEFORE_BREAK, DemandKind, Within
from breakscan.report.explain.eager_call_words import eager_calls_total
from breakscan.report.explain.export_words import exporting_seconds, exports_total
from breakscan.report.explain.guard_words import demand_words, value_words
from breakscan.report.explain.price_words import recompiling_time

_MOST_VALUES = 5
_MANY = 20
"""Sites from which on it is worth a word of how many kinds they are."""

STATUS_WORDS = {
    FrameStatus.EAGER: "runs eager",
    FrameStatus.RAISED: "fails to compile",
    FrameStatus.PASSED_OVER: "has nothing to compile",
}
_BOILERPLATE = (
    "This graph break is fundamental",
    "This graph break may have been caused by an earlier",
    "It may be possible to write Dynamo tracing rules",
    "This is likely to be a Dynamo bug",
    "This graph break may be difficult to debug",
    "Please report an issue to PyTorch",
    "File an issue to PyTorch",
    "If it is a Python builtin, please file an issue",
)
"""Hints of Dynamo's that are about Dynamo: nothing that a user can do about the code at hand."""

_GIVES_UP_BY_ITSELF = ("Unsupported context manager",)
_FOLLOWED_BY = {
    "graph break in loop": "the break is inside a loop",
    "Graph break under GenericContextWrappingVariable": "the break is inside a with block that must not be left",
}


def outcome_line(explanation: Explanation) -> str:
    """``train.py finished with exit status 0 · 212 s, 38 s of it compiling · torch 2.13.0, 1 × H200``."""
    parts = [_run(explanation), _time_spent(explanation)]
    if explanation.torch:
        parts.append(", ".join(filter(None, [f"torch {explanation.torch}", explanation.device])))
    return " · ".join(filter(None, parts))


def _run(explanation: Explanation) -> str:
    """``train.py finished with exit status 0``, ``3 ranks, torch trace of logs``."""
    argv = explanation.argv
    if explanation.trace is not None:
        parts = [counted(len(explanation.ranks.ranks), "rank")] if explanation.ranks else []
        return ", ".join([*parts, f"torch trace of {explanation.trace}"])
    if not argv:
        return "In this process"
    program = f"-m {argv[1]}" if argv[0] == "-m" else argv[0]
    if any(isinstance(notice, Notice) and notice.kind is NoticeKind.RUNNING for notice in explanation.notices):
        return f"{program} is still running"
    return f"{program} {exit_words(explanation.status)}"


def _time_spent(explanation: Explanation) -> str:
    spent = (("compiling", explanation.compile_seconds), ("exporting", exporting_seconds(explanation.exports)))
    parts = [(seconds_in_words(seconds), doing) for doing, seconds in spent if seconds]
    if explanation.seconds is None:
        return ", ".join(f"{seconds} {doing}" for seconds, doing in parts)
    return ", ".join([seconds_in_words(explanation.seconds), *(f"{seconds} of it {doing}" for seconds, doing in parts)])


def exit_words(status: int | None) -> str:
    """How a program ended, as a report says it of one."""
    if status is None:
        return "ended in a way that was not recorded"
    if status >= 0:
        return f"finished with exit status {status}"
    name = signal_name(-status)
    return "was interrupted (SIGINT)" if name == "SIGINT" else f"was ended by {name}"


def headline(explanation: Explanation) -> str:
    """The result in one line; of a run without graphs, why it has none."""
    if not explanation.graphs:
        return _why_nothing_compiled(explanation)
    graphs, ops = len(explanation.graphs), explanation.ops
    made = f"{counted(graphs, 'graph')} of {counted(ops, 'operation')}"
    said = []
    if raised := sum(frame.status is FrameStatus.RAISED for frame in explanation.frames):
        said.append(f"{counted(raised, 'function fails', 'functions fail')} to compile")
    if explanation.breaks:
        sites, events = len(explanation.breaks), explanation.break_events
        times = "once" if events == 1 else f"{events} times"
        kinds = len({site.rule.id if site.rule else site.gb_type for site in explanation.breaks})
        verb = (
            "site breaks"
            if sites == 1
            else f"sites of {counted(kinds, 'kind')} break"
            if sites >= _MANY
            else "sites break"
        )
        breaks = f"{sites} {verb} the graph {times}: {made}"
        said.append(f"{breaks} instead of {explanation.entries}" if graphs > explanation.entries > 0 else breaks)
    if explanation.eager_frames:
        said.append(f"{counted(explanation.eager_frames, 'function runs', 'functions run')} eager")
    if eager := eager_calls_total(explanation):
        said.append(eager)
    if exported := exports_total(explanation.exports):
        said.append(exported)
    if explanation.recompiles:
        recompiles = counted(len(explanation.recompiles), "recompile")
        took = f", {spent} of compiling" if (spent := recompiling_time(explanation)) else ""
        said.append(f"{recompiles} from {counted(explanation.causes, 'cause')}{took}")
    if not said:
        return f"No graph breaks and no recompiles: {made}."
    if not explanation.breaks:
        said.insert(0, f"No graph breaks: {made}")
    return ".  ".join(said) + "."


def _why_nothing_compiled(explanation: Explanation) -> str:
    """Why a run has no graph at all, and what to do about it."""
    if (exported := exports_total(explanation.exports)) and not (explanation.targets or explanation.frames):
        return f"{exported}. Nothing was passed to torch.compile."
    if not explanation.argv and explanation.trace is None and not (explanation.frames or explanation.breaks):
        return (
            "Nothing was compiled while this was recorded: nothing compiled was called, or it had been compiled "
            "before. torch._dynamo.reset() makes it compile again."
        )
    if not explanation.torch_imported:
        return "Nothing was compiled: the program did not import torch."
    if explanation.disabled_by:
        return f"Nothing was compiled: {explanation.disabled_by} is set, which switches torch.compile off."
    if explanation.trace is not None and not explanation.frames:
        return "Nothing was compiled in what the trace holds."
    if not explanation.targets and not explanation.frames:
        if explanation.status:
            return "Nothing was compiled: the program ended before it called torch.compile."
        return (
            "Nothing was compiled: the program never called torch.compile. Compile what costs most, such as the model."
        )
    if any(frame.status is FrameStatus.RAISED for frame in explanation.frames):
        return "Nothing was compiled: torch.compile raised, see below."
    if explanation.frames or explanation.breaks:
        return "Nothing was compiled, not one graph: what was passed to torch.compile runs as plain Python, see below."
    if explanation.precompiled:
        loaded = counted(len(explanation.precompiled), "function was loaded", "functions were loaded")
        return f"Nothing had to be compiled: {loaded} compiled, out of the caches of an earlier run."
    uncalled = [target for target in explanation.targets if not target.attempted]
    where = next((f" ({t.name}, {t.caller.path}:{t.caller.line})" for t in uncalled if t.caller), "")
    return f"Nothing was compiled: what torch.compile returned{where} was never called. Call it, not the original."


def part_words(part: FunctionPart | CompiledFrame | CompileSpan | UncompiledFrame) -> str:
    """A function, or the part of it that follows a break."""
    return f"the rest of {part.function}" if part.rest_only else part.function


def verdict_sentence(site: BreakSite) -> str | None:
    """What the break does beyond splitting the graph, or None."""
    if site.verdict is Verdict.RAISES:
        return (
            "torch.compile raises here: with fullgraph=True, nothing may break the graph. "
            "breakscan explain --keep-going shows what else does."
        )
    if site.verdict is not Verdict.EAGER:
        return None
    reason = _FOLLOWED_BY.get(site.consequence or "")
    if reason is None and site.place in INSIDE and site.gb_type not in _GIVES_UP_BY_ITSELF:
        reason = f"the break is inside {INSIDE[site.place]}"
    functions = listed([part_words(part) for part in site.given_up], "function")
    verb = "runs" if len(site.given_up) == 1 else "run"
    functions = functions[0].upper() + functions[1:] if site.given_up and site.given_up[0].rest_only else functions
    return f"{functions} {verb} as plain Python, without a graph{f': {reason}' if reason else ''}."


def recompile_sentence(group: Sequence[Recompile]) -> str:
    """What changed: ``x.shape[0] was 32, then 31``."""
    first = group[0]
    values = [first.old, *(r.new for r in group if (r.subject, r.function) == (first.subject, first.function))]
    known = [value for value in dict.fromkeys(values) if value is not None]
    if first.guard.kind is DemandKind.QUOTED:
        return f"no compiled version fits (torch says: {first.guard.code})"
    if not first.subject:
        return demand_words(first.guard)
    subject = _PART_OF_VALUE.sub(_part_first, first.subject)
    if first.guard.kind is DemandKind.UNCHANGED:
        return f"{subject} changed"
    if first.guard.kind is DemandKind.IN_MEMORY:
        return f"{subject} was freed, and with it the version that was compiled for it"
    if first.guard.kind is DemandKind.SAME_OBJECT:
        return f"{subject} is another object than before{f' ({first.new})' if first.new else ''}"
    if first.old is None or len(known) < 2:
        now = f", and is {known[0]} now" if known and first.old is None else ""
        return f"a compiled version asks that {demand_words(first.guard)}{now}"
    shown = map(value_words, known[1:_MOST_VALUES])
    rest = " and so on" if len(known) > _MOST_VALUES else ""
    if isinstance(first.old, Within):
        return f"{first.old.code} held, then {subject} was {', '.join(shown)}{rest}"
    return f"{subject} was {known[0]}, then {', '.join(shown)}{rest}"


_PART_OF_VALUE = re.compile(rf"^({re.escape(BEFORE_BREAK)})([.\[].+)$")


def _part_first(found: re.Match[str]) -> str:
    """``shape[0] of the value …``: words that stand for a name cannot have an attribute."""
    return f"{found[2].removeprefix('.')} of {found[1]}"


def hidden_sentence(behind: Sequence[Finding]) -> str:
    """``It hides 3 more findings of breakscan check (lines 41, 44 and 52).``"""
    lines = [str(line) for line in sorted({finding.site.line for finding in behind})]
    where = f"{'line' if len(lines) == 1 else 'lines'} {listed(lines, 'line', 6)}"
    if len(behind) == 1:
        return f"It hides one more finding of breakscan check, {behind[0].rule} {behind[0].name} ({where})."
    return f"It hides {len(behind)} more findings of breakscan check ({where})."


def useful_hints(site_hints: Sequence[str]) -> list[str]:
    """Dynamo's hints that speak of the user's code."""
    return [hint for hint in site_hints if not hint.startswith(_BOILERPLATE)]
