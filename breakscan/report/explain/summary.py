"""A run in few sentences: its end, its costs, and what was compiled."""

from collections import Counter
from collections.abc import Callable, Iterator

from breakscan.explanation.compilations import compile_time, parts_in_words
from breakscan.explanation.explanation import Explanation, exit_words
from breakscan.explanation.exports import exports_line, exports_total
from breakscan.explanation.frames import FrameStatus
from breakscan.explanation.graphs import Kernel, KernelKind
from breakscan.explanation.notices import RUNNING
from breakscan.explanation.problems import LONG_RECOMPILES
from breakscan.explanation.run_totals import Calls
from breakscan.model.findings import Verdict
from breakscan.model.problem import ProblemKind
from breakscan.model.words import counted, duration, first_few, grouped, listed, part_of, place, seconds_in_words

MANY = 20  # sites from which on it is worth a word of how many kinds they are


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
    if RUNNING in explanation.notices:
        return f"{program} is still running"
    return f"{program} {exit_words(explanation.status)}"


def _time_spent(explanation: Explanation) -> str:
    exporting = sum(export.seconds for export in explanation.exports)
    spent = ((explanation.compile_seconds, "compiling"), (exporting, "exporting"))
    parts = [(seconds_in_words(seconds), doing) for seconds, doing in spent if seconds]
    if explanation.seconds is None:
        return ", ".join(f"{seconds} {doing}" for seconds, doing in parts)
    return ", ".join([seconds_in_words(explanation.seconds), *(f"{seconds} of it {doing}" for seconds, doing in parts)])


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
        of_kinds = f" of {counted(kinds, 'kind')}" if sites >= MANY else ""
        breaks = f"{sites} {'site breaks' if sites == 1 else f'sites{of_kinds} break'} the graph {times}: {made}"
        said.append(f"{breaks} instead of {explanation.entries}" if graphs > explanation.entries > 0 else breaks)
    if explanation.eager_frames:
        said.append(f"{counted(explanation.eager_frames, 'function runs', 'functions run')} eager")
    around = [one for one in explanation.around if one.cause is None]
    if eager := sum(one.count for one in around if one.kind is ProblemKind.EAGER_CALLS):
        said.append(f"{eager} of {counted(sum(call.calls for call in explanation.calls), 'call')} ran eager")
    if exported := exports_total(explanation.exports):
        said.append(exported)
    if explanation.recompiles:
        recompiles = counted(len(explanation.recompiles), "recompile")
        seconds = sum(recompile.seconds for recompile in explanation.recompiles)
        took = f", {seconds_in_words(seconds)} of compiling" if seconds >= LONG_RECOMPILES else ""
        said.append(f"{recompiles} from {counted(explanation.causes, 'cause')}{took}")
    named = dict.fromkeys(one.kind.words for one in around if one.kind is not ProblemKind.EAGER_CALLS)
    others = listed(list(named), "kind")
    if not said:
        return f"No graph breaks and no recompiles: {made}.{f'  But: {others}, see below.' if others else ''}"
    if others:
        said.append(f"See also: {others}")
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
            "Nothing was compiled: no call of torch.compile succeeded. Compile what costs most, such as the model. If "
            "the program does, that raised, as with both mode= and options=, and the error was caught."
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
    return f"Nothing was compiled: what torch.compile returned{where} was never called. Call it, or module.compile()."


_WORTH_SAYING = 0.01  # the part of the calls' time below which a part is not worth a word


def time_sentences(explanation: Explanation) -> list[str]:
    """The time of the calls, and of a step that was profiled."""
    profiled = [f"{line}." for line in explanation.profile.lines] if explanation.profile else []
    return [*filter(None, [calls_sentence(explanation)]), *profiled]


def calls_sentence(explanation: Explanation) -> str | None:
    """``0.5 of 1.0 ms a call of Model.forward pass between graphs.``, and what that leaves out; None without graphs.
    Of a function that runs eager, or leads to one, it is the time outside graphs; without breaks, that in guards."""
    eager = {frame.function for frame in explanation.frames if frame.status is FrameStatus.EAGER}
    if not explanation.breaks and not eager:
        called = [call for call in explanation.calls if call.calls >= MANY and call.graph_seconds]
        call = max(called, key=lambda one: one.outside_seconds / one.seconds, default=None)
        if call is None or 2 * call.outside_seconds < call.seconds:
            return None
        part = part_of(call.outside_seconds / call.calls, call.seconds / call.calls)
        return (
            f"{part} a call of {call.name} pass in guards and in entering compiled code: compile what calls it, so "
            "that a graph has more work, or leave it eager."
        )
    given_up = [site for site in explanation.breaks if site.verdict is Verdict.EAGER]
    leads_there = eager | {caller.function for site in given_up for caller in site.stack}
    seen: list[tuple[float, Calls, str]] = []
    for call in explanation.calls:
        is_eager = call.name in leads_there
        seconds, where = (call.outside_seconds, "outside") if is_eager else (call.gap_seconds, "between")
        if call.calls > 1 and call.graph_seconds and seconds > _WORTH_SAYING * call.seconds:
            seen.append((seconds, call, where))
    seen.sort(key=lambda one: -one[0])
    words = [
        f"{part_of(seconds / call.calls, call.seconds / call.calls)} a call of {call.name} pass {where} graphs"
        for seconds, call, where in seen
    ]
    if not words:
        return None
    wait = any(site.price and site.price.waits for site in explanation.breaks)
    waiting = ", and so is waiting for the device" if wait else ""
    return (
        f"{listed(words, 'function')}. That is not what a repair saves: lost fusion and the backward are not in it, "
        f"and work that has to be done anyhow is{waiting}."
    )


_MOST_SIZES = 3
LONG_COMPILING = 2.0  # seconds of compiling from which on it is worth a word
_SLOW_GUARDS = 0.02  # the part of a call's time from which on checking guards is worth a word
_OUTCOMES = {"hit": ("hit",), "miss": ("miss", "misses"), "bypass": ("bypass", "bypasses")}
_KINDS = {
    **dict.fromkeys((KernelKind.TRITON, KernelKind.CPP, KernelKind.OTHER), ("generated",) * 2),
    KernelKind.EXTERN: ("of a library", "of libraries"),
    KernelKind.FALLBACK: ("that Inductor leaves to eager operators",) * 2,
}


def made_lines(explanation: Explanation) -> Iterator[tuple[str, str]]:
    """A label and a sentence for each topic that the run has something on."""
    for label, sentence_of in _TOPICS:
        if sentence := sentence_of(explanation):
            yield label, sentence


def _compile_time(explanation: Explanation) -> str | None:
    if explanation.compile_seconds < LONG_COMPILING:
        return None
    compilations = counted(len(explanation.compiles), "compilation")
    return "; ".join(filter(None, (compilations, parts_in_words(compile_time(explanation.compiles).parts))))


def _guards(explanation: Explanation) -> str | None:
    """Only where checking them costs a visible part of the calls."""
    calls = [call.seconds / call.calls for call in explanation.calls if call.calls]
    heavy = max(explanation.compiles, key=lambda one: one.guard_seconds or 0.0, default=None)
    if heavy is None or not heavy.guard_seconds or not calls or heavy.guard_seconds < _SLOW_GUARDS * min(calls):
        return None
    count = heavy.guard_count or len(heavy.guards)
    return f"{heavy.function} checks {counted(count, 'guard')} at each call, in {duration(heavy.guard_seconds)}"


def _caches(explanation: Explanation) -> str | None:
    uses = [use for compile_ in explanation.compiles for use in compile_.caches]
    parts = []
    for cache in dict.fromkeys(use.cache for use in uses):
        outcomes = Counter(use.outcome for use in uses if use.cache == cache)
        words = ", ".join(
            counted(count, *_OUTCOMES.get(outcome, (outcome,))) for outcome, count in outcomes.most_common()
        )
        parts.append(f"{cache} {words}")
    missed = dict.fromkeys(use.reason for use in uses if use.outcome == "miss" and use.reason)
    return "; ".join([*parts, *([f"missed because {listed(list(missed), 'reason', 2)}"] if missed else [])]) or None


def _kernels(explanation: Explanation) -> str | None:
    generated = [made for graph in explanation.graphs for made in graph.generated]
    made = [kernel for one in generated for kernel in one.kernels]
    if not made:
        return None
    counts = Counter(_KINDS[kernel.kind] for kernel in made)
    fallbacks = [_with_lines(kernel) for kernel in made if kernel.kind is KernelKind.FALLBACK]
    # The part left to eager operators comes last, followed by their names.
    left = _KINDS[KernelKind.FALLBACK]
    words = [f"{n} {kind[n > 1]}" for kind, n in sorted(counts.items(), key=lambda item: item[0] == left)]
    named = f" ({listed(fallbacks, 'kernel')})" if fallbacks else ""
    return f"{', '.join(words)}{named}"


def _cudagraphs(explanation: Explanation) -> str | None:
    skips = ((one, f" ({place(one.site)})" if one.site else "") for one in explanation.cudagraph_skips)
    said = (f"{one.count}× not used: {one.reason.strip().rstrip('.')}{where}" for one, where in skips)
    return "; ".join(said) or None


def _specialisations(explanation: Explanation) -> str | None:
    """A line at a time: one change mends all sizes that it fixes.  One that led to a recompile is listed there."""
    recompiled = {recompile.subject for recompile in explanation.recompiles}
    at_line = grouped(
        (f" at {place(s.site)}" if s.site else "", f"{', '.join(s.sources) or 'a size'} became constant ({s.value})")
        for s in explanation.specialisations
        if recompiled.isdisjoint(s.sources)
    )
    parts = []
    for where, sizes in at_line.items():
        others = len(set(sizes)) - 1
        too = f", and so did {counted(others, 'other size')}" if others else ""
        parts.append(f"{sizes[0]}{too}{where}")
    return first_few(parts, _MOST_SIZES, "; ") or None


def _precompiled(explanation: Explanation) -> str | None:
    names = [f"{one.function} ({place(one.site)})" for one in explanation.precompiled]
    unknown = "breaks and recompiles of the run that compiled them are not known"
    return f"{listed(names, 'function')}; {unknown}" if names else None


_TOPICS: tuple[tuple[str, Callable[[Explanation], str | None]], ...] = (
    ("Compile time", _compile_time),
    ("Exports", lambda explanation: exports_line(explanation.exports)),
    ("Loaded compiled", _precompiled),
    ("Caches", _caches),
    ("Kernels", _kernels),
    ("CUDA graphs", _cudagraphs),
    ("Guards", _guards),
    ("Specialised", _specialisations),
)


def _with_lines(kernel: Kernel) -> str:
    name = ", ".join(kernel.operators) or kernel.name
    return f"{name} at {place(kernel.lines[0])}" if kernel.lines else name
