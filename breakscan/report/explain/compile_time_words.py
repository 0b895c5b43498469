"""Where compile time goes, and why caches had nothing, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from breakscan.explain.compile_time import CompileTime
from breakscan.explain.compiled import CacheMiss, CacheUse, KeyChange, MissKind
from breakscan.explain.time_tree import CompilePart
from breakscan.model.words import listed, place, seconds_in_words

PART_WORDS = {
    CompilePart.TRACING: "tracing",
    CompilePart.GUARDS: "guards",
    CompilePart.AOT_AUTOGRAD: "AOTAutograd",
    CompilePart.INDUCTOR: "Inductor",
    CompilePart.KERNELS: "compiling kernels",
    CompilePart.AUTOTUNING: "autotuning",
    CompilePart.CACHES: "loading from caches",
    CompilePart.CUDA_GRAPHS: "recording CUDA graphs",
    CompilePart.OTHER: "the rest of Dynamo",
}
_LEAST_PART = 0.05
"""Of all, from which on a part is worth a word."""
_MOST_CHANGES = 3
_MOST_LINES = 3
_LONG_LINE = 0.05
"""Seconds of tracing from which on a line is worth a word."""
_KEY_PARTS = {"gm": "graph", "example_inputs": "inputs"}
_OF_GRAPH = ("fx_kwargs[", "aot_config")
"""What follows from the graph."""
_OPTIONS = ("inductor_config[", "inductor_config_comms[", "fx_kwargs[")


def parts_in_words(parts: Mapping[CompilePart, float], *, all_parts: bool = False) -> str:
    """``compiling kernels 12 s, Inductor 3.1 s``, the longest first; without those that no one would look at."""
    least = 0.0 if all_parts else _LEAST_PART * sum(parts.values())
    told = [(part, seconds) for part, seconds in parts.items() if seconds > least]
    return ", ".join(f"{PART_WORDS[part]} {seconds_in_words(seconds)}" for part, seconds in told)


def compile_time_sentence(time: CompileTime) -> str:
    """``compiling kernels 12 s, Inductor 3.1 s; traced longest: model.py:41 1.2 s``."""
    lines = [line for line in time.lines[:_MOST_LINES] if line.seconds >= _LONG_LINE]
    traced = ", ".join(f"{place(line.site)} {seconds_in_words(line.seconds)}" for line in lines)
    return "; ".join(filter(None, (parts_in_words(time.parts), traced and f"traced longest: {traced}")))


def misses_in_words(uses: Iterable[CacheUse]) -> str:
    """Why caches had nothing, each reason once, with how often."""
    reasons = Counter(miss_words(use.miss) for use in uses if use.miss is not None)
    return listed([f"{words} ({count}×)" for words, count in reasons.most_common()], "reason")


def miss_words(miss: CacheMiss) -> str:
    """Why a cache had nothing: ``graph and inputs are others than for 0/0``."""
    if miss.kind is MissKind.GUARDS:
        guards = f": {miss.guards}" if miss.guards else ""
        return f"what is stored holds for other sizes{guards}"
    if miss.kind is MissKind.LOST:
        return f"nothing was stored after the lookup for {miss.than}, with the same key"
    if miss.kind is MissKind.NEW:
        return "nothing was stored under the key"
    changes = [_change_words(change) for change in sorted(miss.changes, key=_is_graphs) if _is_telling(change, miss)]
    return f"the key is another than for {miss.than}: {listed(changes, 'part', _MOST_CHANGES)}"


def _is_graphs(change: KeyChange) -> bool:
    return change.name in _KEY_PARTS


def _is_telling(change: KeyChange, miss: CacheMiss) -> bool:
    is_graph_new = any(other.name == "gm" for other in miss.changes)
    return not (is_graph_new and change.name.startswith(_OF_GRAPH))


def _change_words(change: KeyChange) -> str:
    name = _KEY_PARTS.get(change.name)
    if name is not None:
        return f"other {name}" if name == "inputs" else f"another {name}"
    setting = change.name
    for option in _OPTIONS:
        setting = setting.removeprefix(option)
    setting = setting.removesuffix("]") if setting != change.name else setting
    if change.old is None and change.new is None:
        return f"another {setting}"
    return f"{setting} is {change.new}, was {change.old}"
