"""What the compiler made of a program, for people: a line a topic that is worth one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from breakscan.explain.compile_time import compile_time
from breakscan.explain.compiled import Kernel, KernelKind
from breakscan.explain.explanation import Explanation
from breakscan.explain.saved_memory import saved_memory
from breakscan.model.words import counted, duration, listed, place
from breakscan.report.explain.autograd_words import change_words
from breakscan.report.explain.compile_time_words import compile_time_sentence, misses_in_words
from breakscan.report.explain.cudagraph_words import peaks_sentence, recordings_sentence
from breakscan.report.explain.export_words import exports_line
from breakscan.report.explain.saved_memory_words import saved_sentence
from breakscan.report.explain.tables import kernels_of

_MOST_NAMED = 3
LONG_COMPILING = 2.0
"""Seconds of compiling from which on it is worth a word."""
_SLOW_GUARDS = 0.02
"""The part of a call's time from which on checking guards is worth a word."""
_OUTCOMES = {"hit": ("hit",), "miss": ("miss", "misses"), "bypass": ("bypass", "bypasses")}
_KINDS = {
    KernelKind.TRITON: ("generated", "generated"),
    KernelKind.CPP: ("generated", "generated"),
    KernelKind.OTHER: ("generated", "generated"),
    KernelKind.EXTERN: ("of a library", "of libraries"),
    KernelKind.FALLBACK: ("that Inductor leaves to eager operators", "that Inductor leaves to eager operators"),
}


def made_lines(explanation: Explanation) -> Iterator[tuple[str, str]]:
    """A label and a sentence for each topic that the run has something on."""
    for label, tell in _TOPICS:
        sentence = tell(explanation)
        if sentence:
            yield label, sentence


def _compile_time(explanation: Explanation) -> str | None:
    if explanation.compile_seconds < LONG_COMPILING:
        return None
    compilations = counted(len(explanation.compiles), "compilation")
    return "; ".join(filter(None, (compilations, compile_time_sentence(compile_time(explanation)))))


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
    reasons = list(dict.fromkeys(use.reason for use in uses if use.outcome == "bypass" and use.reason))
    if missed := misses_in_words(uses):
        parts.append(f"misses: {missed}")
    if reasons:
        parts.append(f"bypassed because {listed(reasons, 'reason', 2)}")
    return "; ".join(parts) or None


def _kernels(explanation: Explanation) -> str | None:
    made = [kernel for _, _, kernel in kernels_of(explanation.graphs)]
    if not made:
        return None
    counts = Counter(_KINDS[kernel.kind] for kernel in made)
    fallbacks = [_with_lines(kernel) for kernel in made if kernel.kind is KernelKind.FALLBACK]
    # The part left to eager operators comes last, followed by their names.
    left = _KINDS[KernelKind.FALLBACK]
    words = [f"{n} {kind[n > 1]}" for kind, n in sorted(counts.items(), key=lambda item: item[0] == left)]
    named = f" ({listed(fallbacks, 'kernel')})" if fallbacks else ""
    return f"{', '.join(words)}{named}"


def _saved(explanation: Explanation) -> str | None:
    return saved_sentence(saved_memory(explanation))


def _cudagraphs(explanation: Explanation) -> str | None:
    said = []
    for skip in explanation.cudagraph_skips:
        where = f" ({place(skip.site)})" if skip.site else ""
        said.append(f"{skip.count}× not used: {skip.reason.strip().rstrip('.')}{where}")
    recorded = recordings_sentence(explanation.cudagraph_recordings)
    return "; ".join([*([recorded] if recorded else []), *said]) or None


def _peaks(explanation: Explanation) -> str | None:
    return peaks_sentence(explanation.peak_memory)


def _specialisations(explanation: Explanation) -> str | None:
    """A line at a time: all the sizes that it holds fixed are mended by one change.  What was compiled again over such
    a size is told with the recompiles."""
    told = {recompile.subject for recompile in explanation.recompiles}
    at_line: dict[str, list[str]] = {}
    for s in explanation.specialisations:
        if not told.isdisjoint(s.sources):
            continue
        where = f" at {place(s.site)}" if s.site else ""
        at_line.setdefault(where, []).append(f"{', '.join(s.sources) or 'a size'} became constant ({s.value})")
    said = [f"{sizes[0]}{_as_did(len(set(sizes)) - 1)}{where}" for where, sizes in at_line.items()]
    return f"{'; '.join(said[:_MOST_NAMED])}{_and_more(len(said) - _MOST_NAMED)}" if said else None


def _as_did(others: int) -> str:
    return f", and so did {counted(others, 'other size')}" if others else ""


def _and_more(lines: int) -> str:
    return f"; and at {counted(lines, 'more line')}" if lines > 0 else ""


def _ddp(explanation: Explanation) -> str | None:
    split = [graph for graph in explanation.graphs if graph.split_by_ddp]
    said = [
        f"the graph of {graph.function or 'a function'} runs as {len(graph.split_by_ddp)} ({_plus(graph.split_by_ddp)} "
        "operations), so that gradients travel while others are computed"
        for graph in split
    ]
    return "; ".join(said) or None


def _precompiled(explanation: Explanation) -> str | None:
    names = [f"{one.function} ({place(one.site)})" for one in explanation.precompiled]
    unknown = "breaks and recompiles of the run that compiled them are not known"
    return f"{listed(names, 'function')}; {unknown}" if names else None


def _autograd(explanation: Explanation) -> str | None:
    if not explanation.autograd:
        return None
    lines = [place(capture.caller) for capture in explanation.autograd if capture.caller]
    where = f" ({listed(lines, 'line')})" if lines else ""
    words = f"{counted(len(explanation.autograd), 'backward pass', 'backward passes')} captured{where}"
    reasons = list(dict.fromkeys(change_words(one) for capture in explanation.autograd for one in capture.reasons))
    return f"{words}; again because {listed(reasons, 'reason', 2)}" if reasons else words


_TOPICS: tuple[tuple[str, Callable[[Explanation], str | None]], ...] = (
    ("Compile time", _compile_time),
    ("Exports", exports_line),
    ("Loaded compiled", _precompiled),
    ("Caches", _caches),
    ("Kernels", _kernels),
    ("Kept in memory", _saved),
    ("Memory", _peaks),
    ("CUDA graphs", _cudagraphs),
    ("Guards", _guards),
    ("Specialised", _specialisations),
    ("DDP buckets", _ddp),
    ("Compiled autograd", _autograd),
)


def _with_lines(kernel: Kernel) -> str:
    name = ", ".join(kernel.operators) or kernel.name
    return f"{name} at {place(kernel.lines[0])}" if kernel.lines else name


def _plus(parts: Sequence[int]) -> str:
    return " + ".join(map(str, parts))
