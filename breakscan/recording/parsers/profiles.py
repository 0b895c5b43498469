"""Reads the events of a profile by torch.profiler: where the time of its steps goes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from breakscan.recording.records import HostCall, StepsProfiled

_MOST_CALLS = 5
"""Calls of libraries that are recorded."""
_GRAPH = "## Call CompiledFxGraph"
_BACKWARD = "autograd::engine::evaluate_function: "
_ENTERING = (
    "TorchDynamo Cache Lookup",
    "Torch-Compiled Region",
    "Pregraph bytecode",
    "AOTDispatcher",
    "CompiledFunction",
    f"{_BACKWARD}CompiledFunction",
)
"""The starts of torch's names for what is done around graphs."""
_WAITING = re.compile(r"(cuda|hip)(Stream|Device|Event)Synchronize|cudaMemcpy|hipMemcpy")
_OF_RUNTIME = re.compile(r"(cuda|cu|hip)[A-Z]\w+")


def steps_profiled(
    key: int, steps: int, seconds: float, events: Iterable[Any], began: float, ended: float
) -> StepsProfiled:
    """The time of steps by what it went to, from the events of a profile that begin in them; times are microseconds."""
    times: dict[str, float] = defaultdict(float)
    calls: dict[str, list[float]] = defaultdict(list)
    kernels: list[tuple[float, float]] = []
    for event in events:
        start = event.time_range.start
        if start < began:
            continue
        if event.device_type.name != "CPU":
            if not event.is_user_annotation:
                kernels.append((start, event.time_range.end))
        elif event.cpu_parent is None and start < ended:
            _add(event, "", times, calls)
    # The device may be behind the host.
    whole = max([ended, *(end for _, end in kernels)]) - began
    costly = sorted(calls.items(), key=lambda call: -sum(call[1]))[:_MOST_CALLS]
    each = 1e6 * steps
    return StepsProfiled(
        key,
        steps,
        seconds,
        whole / each,
        graphs=times["graphs"] / each,
        eager=times["eager"] / each,
        entering=times["entering"] / each,
        waiting=times["waiting"] / each,
        device=_union(kernels) / each if kernels else None,
        calls=tuple(HostCall(name, len(took) / steps, sum(took) / each) for name, took in costly),
    )


def _add(event: Any, around: str, times: dict[str, float], calls: dict[str, list[float]]) -> None:
    """Adds the host's time of an event and of what is in it.  ``around`` is the part that it is in."""
    name = event.name
    part = _part(name, around)
    own = max(0.0, event.time_range.elapsed_us() - sum(one.time_range.elapsed_us() for one in event.cpu_children))
    if part:
        times[part] += own
    if part != "waiting" and (_OF_RUNTIME.fullmatch(name) or ("::" in name and not name.startswith(_BACKWARD))):
        calls[name].append(own)
    for inner in event.cpu_children:
        _add(inner, part, times, calls)


def _part(name: str, around: str) -> str:
    if _WAITING.fullmatch(name):
        return "waiting"
    if around in ("graphs", "eager"):
        return around
    if name.startswith(_GRAPH):
        return "graphs"
    if name.startswith(_ENTERING):
        return "entering"
    # The rest are ranges that the program, or torch for it, has named, with Python in them.
    return "eager" if "::" in name or _OF_RUNTIME.fullmatch(name) else ""


def _union(spans: Iterable[tuple[float, float]]) -> float:
    """The time in which at least one of the spans lasts."""
    total, until = 0.0, 0.0
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
