"""Reads the records of torch's structured trace, as they come in memory and as TORCH_TRACE writes them to files.

Names of records and artifacts are stable since torch 2.6.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from breakscan.recording.parsers.graphs import autograd_graph, operation_count, phase_of, shortened
from breakscan.recording.parsers.guards import guards_of_tree
from breakscan.recording.records import (
    CacheLooked,
    Code,
    CodeGenerated,
    CompileStarted,
    CompileTimed,
    DdpSplit,
    GuardsBuilt,
    Record,
    ShapeSpecialised,
    StackFrame,
)

Stack = tuple[StackFrame, ...]


@dataclass(frozen=True, slots=True)
class TracedText:
    """A text from which :mod:`~breakscan.recording.trace_fallback` can make a record: Dynamo's of a ``break``, which
    ends in a traceback; of ``recompiles`` that are about to begin, for each version the guard that failed; a ``graph``
    before the backend gets it, as readable code; the traceback of the ``error`` that ended a compilation."""

    compile_id: str
    kind: str
    text: str
    at: float

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons of recompiles: one comes as it is, several as a JSON list."""
        return tuple(json.loads(self.text)) if self.text.startswith("[") else (self.text,)


Traced = Record | TracedText
"""A statement of the trace."""

_STAGES = ("dynamo", "aot_autograd", "inductor")
_AUTOGRAD_GRAPHS = {f"aot_{phase}_graph": phase for phase in ("forward", "backward", "inference")}
_CACHES = {
    f"{cache}_cache_{outcome}": (cache, outcome)
    for cache in ("fx_graph", "aotautograd")
    for outcome in ("hit", "miss", "bypass", "disabled")
}
_ASKING = ("expect_true", "guard_int", "guard_bool", "guard_float")
"""Functions of torch that turn a symbol into a constant, the most specific first."""


def trace_records(
    metadata: Mapping[str, Any],
    payload: str | None,
    at: float,
    file_name: Callable[[int | str], str],
    stack_above: Callable[[], Stack] | None = None,
) -> Iterator[Traced]:
    """The statements of a record of the trace.

    ``file_name`` resolves interned file names.  ``stack_above`` gives the stack above the frame that is compiled, where
    there is a better one than the record's own, which lacks its innermost frames where few of Dynamo's stand between.
    """
    compile_id = compile_id_of(metadata)
    if compile_id is None:
        return
    if "dynamo_start" in metadata:
        *above, own = (_frame(entry, file_name) for entry in metadata["dynamo_start"]["stack"])
        stack = stack_above() if stack_above else tuple(above)
        yield CompileStarted(compile_id, Code(own.path, own.line, own.name), stack, at)
    elif "dynamo_output_graph" in metadata:
        yield TracedText(compile_id, "graph", payload or "", at)
    elif timed := metadata.get("compilation_metrics"):
        yield _timed(compile_id, timed, at, backward=False)
    elif timed := metadata.get("bwd_compilation_metrics"):
        yield _timed(compile_id, timed, at, backward=True)
    elif specialised := metadata.get("symbolic_shape_specialization"):
        yield _specialised(compile_id, specialised, file_name)
    elif artifact := metadata.get("artifact"):
        yield from _artifact(compile_id, artifact.get("name"), payload or "", at)
    else:
        yield from _made(compile_id, metadata, payload or "")


def compile_id_of(metadata: Mapping[str, Any]) -> str | None:
    """``0/1``, with ``!3/`` in front where compiled autograd asked for it."""
    frame_id, frame_compile_id = metadata.get("frame_id"), metadata.get("frame_compile_id")
    autograd = metadata.get("compiled_autograd_id")
    if frame_id is None:
        return None if autograd is None else f"!{autograd}"
    return f"{'' if autograd is None else f'!{autograd}/'}{frame_id}/{frame_compile_id}"


_TEXTS = {"dynamo_graph_break_reason": "break", "recompile_reasons": "recompiles", "dynamo_error": "error"}


def _artifact(compile_id: str, name: str | None, payload: str, at: float) -> Iterator[Traced]:
    if kind := _TEXTS.get(name or ""):
        yield TracedText(compile_id, kind, payload, at)
    elif looked := _CACHES.get(name or ""):
        yield _lookup(compile_id, *looked, json.loads(payload or "{}"))


def _lookup(compile_id: str, cache: str, outcome: str, data: Mapping[str, Any]) -> CacheLooked:
    is_guard_miss = outcome == "miss" and data.get("cache_status_detailed") == "guard_miss"
    return CacheLooked(
        compile_id=compile_id,
        cache=cache,
        outcome=outcome,
        reason=data.get("cache_bypass_reason") if outcome == "bypass" else None,
        guards=str(data.get("cache_status_guard_expr") or "") if is_guard_miss else None,
    )


def _made(compile_id: str, metadata: Mapping[str, Any], payload: str) -> Iterator[Record]:
    """The products of the compiler for a frame: guards, graphs, code."""
    if "dynamo_cpp_guards_str" in metadata:
        yield GuardsBuilt(compile_id, None, tuple(guards_of_tree(payload)))
    elif "inductor_output_code" in metadata:
        written = metadata["inductor_output_code"]
        path = written.get("file_path") or written.get("filename") or ""
        yield CodeGenerated(compile_id, phase_of(payload), path, shortened(payload))
    elif "optimize_ddp_split_child" in metadata:
        yield DdpSplit(compile_id, (operation_count(payload),))
    elif phase := next((phase for name, phase in _AUTOGRAD_GRAPHS.items() if name in metadata), None):
        yield autograd_graph(compile_id, phase, payload)


def _specialised(
    compile_id: str, specialised: Mapping[str, Any], file_name: Callable[[int | str], str]
) -> ShapeSpecialised:
    functions = {entry["name"] for entry in specialised.get("stack") or ()}
    return ShapeSpecialised(
        compile_id=compile_id,
        symbol=specialised["symbol"],
        sources=tuple(specialised.get("sources") or ()),
        value=specialised["value"],
        reason=specialised.get("reason") or "",
        asked_by=next((name for name in _ASKING if name in functions), None),
        stack=tuple(_frame(entry, file_name) for entry in specialised.get("user_stack") or ()),
    )


def _frame(entry: Mapping[str, Any], file_name: Callable[[int | str], str]) -> StackFrame:
    return StackFrame(file_name(entry["filename"]), entry["line"], entry["name"])


def _timed(compile_id: str, metrics: Mapping[str, Any], at: float, *, backward: bool) -> CompileTimed:
    # Torch counts each with those within it.  A backward that is compiled later has only the last one.
    whole = [(metrics.get(f"{name}_cumulative_compile_time_us") or 0) / 1e6 for name in _STAGES]
    own = [max(0.0, seconds - inner) for seconds, inner in zip(whole, [*whole[1:], 0.0], strict=True)]
    failed = ": ".join(filter(None, (metrics.get("fail_type"), metrics.get("fail_reason"))))
    return CompileTimed(
        compile_id=compile_id,
        seconds=(metrics.get("duration_us") or 0) / 1e6,
        backward=backward,
        ops=None if backward else metrics.get("graph_op_count"),
        at=at,
        stages={name: seconds for name, seconds in zip(_STAGES, own, strict=True) if seconds},
        guards=metrics.get("guard_count"),
        restarts=tuple(sorted(metrics.get("restart_reasons") or ())),
        failed=failed or None,
    )
