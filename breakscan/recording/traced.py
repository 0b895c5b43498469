"""Reads the records of torch's structured trace, as they come in memory and as TORCH_TRACE writes them to files, and
makes one record of what both the trace and a hook say.  Names of records and artifacts are stable since torch 2.6.
Where a hook works, its record counts, and the trace fills in what the hook cannot see.  Where torch lacks what the hook
needs, or the hook has failed, the record is made from the trace alone.  A log of TORCH_TRACE holds nothing more."""

import hashlib
import itertools
import json
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from breakscan.recording.parsers.frames import (
    exceeds_limit,
    frame_skipped,
    is_dynamos_file,
    traceback_frames,
    user_frames,
    user_name,
)
from breakscan.recording.parsers.graphs import (
    autograd_graph,
    devices_of,
    nodes_of,
    operation_count,
    phase_of,
    shortened,
)
from breakscan.recording.parsers.guards import failed_guard, guards_of_tree
from breakscan.recording.records import (
    BreakSeen,
    CacheLooked,
    Code,
    CodeGenerated,
    CompileStarted,
    CompileTimed,
    DdpSplit,
    FrameEnded,
    GraphCompiled,
    GuardsBuilt,
    RecompileSeen,
    Record,
    ShapeSpecialised,
    StackFrame,
)

Stack = tuple[StackFrame, ...]


@dataclass(frozen=True, slots=True)
class TracedText:
    """A text from which :mod:`~breakscan.recording.traced` can make a record: Dynamo's of a ``break``, which
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


Traced = Record | TracedText  # a statement of the trace
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
    """The statements of a record of the trace.  ``file_name`` resolves interned file names.  ``stack_above`` gives the
    stack above the frame that is compiled, where the record's own may lack its innermost frames."""
    compile_id = compile_id_of(metadata)
    if compile_id is None:
        return
    if "dynamo_start" in metadata:
        *above, own = (_frame(entry, file_name) for entry in metadata["dynamo_start"]["stack"])
        stack = stack_above() if stack_above else tuple(above)
        is_main = stack_above is None or threading.current_thread() is threading.main_thread()
        in_thread = not is_main and sys.modules["torch"].__version__ >= (2, 12)
        yield CompileStarted(compile_id, Code(own.path, own.line, own.name), stack, at, in_thread)
    elif "dynamo_output_graph" in metadata:
        yield TracedText(compile_id, "graph", payload or "", at)
    elif timed := metadata.get("compilation_metrics"):
        yield _timed(compile_id, timed, at, backward=False)
    elif timed := metadata.get("bwd_compilation_metrics"):
        yield _timed(compile_id, timed, at, backward=True)
    elif specialised := metadata.get("symbolic_shape_specialization"):
        yield _specialised(compile_id, specialised, file_name)
    elif artifact := metadata.get("artifact"):
        name = artifact.get("name") or ""
        if kind := _TEXTS.get(name):
            yield TracedText(compile_id, kind, payload or "", at)
        elif looked := _CACHES.get(name):
            yield _lookup(compile_id, *looked, json.loads(payload or "{}"))
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


def _lookup(compile_id: str, cache: str, outcome: str, data: Mapping[str, Any]) -> CacheLooked:
    is_guard_miss = outcome == "miss" and data.get("cache_status_detailed") == "guard_miss"
    return CacheLooked(
        compile_id=compile_id,
        cache=cache,
        outcome=outcome,
        reason=data.get("cache_bypass_reason") if outcome == "bypass" else None,
        guards=str(data.get("cache_status_guard_expr") or "") if is_guard_miss else None,
        parts=_parts_of_key(data.get("components") or ()) if outcome == "miss" else {},
    )


_COMPONENT = re.compile(r"\[(?P<hash>\w+)\] (?P<name>\w+)[^:]*:(?P<text>.*)", re.S)
_ROW = re.compile(r"^ +(?P<name>\w+) = (?P<value>.*)$", re.M)


def _parts_of_key(components: Iterable[str]) -> dict[str, str]:
    """The parts of a key of Inductor's cache, of which it has hundreds: those of one name are one."""
    texts: dict[str, str] = {}
    for part in filter(None, map(_COMPONENT.match, components)):
        texts[part["name"]] = texts.get(part["name"], "") + part["hash"]
        if part["name"] == GRAPH_PART:
            texts |= {f"%{row['name']}": row["value"] for row in _ROW.finditer(part["text"])}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:8] for name, text in texts.items()}


GRAPH_PART = "gm"  # the part of a key that is the graph


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


_UNKNOWN = Code("<unknown>", 1, "<unknown>")
_BREAKS = ("Unsupported", "UserError")  # Dynamo does not let these through, unless the whole graph was asked for
_FAILS_ON_LIMIT = "FailOnRecompileLimitHit"


class TraceAndHooks:
    """Follows the compilations of one process.  ``works`` returns True if a hook, by its name, saw what the trace
    speaks of now; ``cut`` says that stacks above compilations lack their two innermost frames, as in torch's trace."""

    def __init__(self, works: Callable[[str], bool], *, cut: bool = False) -> None:
        self.numbers = itertools.count()  # the numbers of graphs
        self.codes: dict[str, Code] = {}
        self.above: dict[str, Stack] = {}  # the stacks above compilations, as far as they are known
        self.errors: dict[str, str] = {}  # the tracebacks of what ended compilations
        self._works = works
        self._cut = cut
        self._breaks: dict[str, list[BreakSeen]] = {}
        self._graphs: dict[str, TracedText] = {}
        self._reasons: dict[str, tuple[str, ...]] = {}
        self._recompiles: dict[str, RecompileSeen] = {}
        self._guards: dict[str | None, GuardsBuilt] = {}

    def records(self, said: Traced, metadata: Mapping[str, Any]) -> Iterator[Record]:
        """The records of a statement of the trace."""
        if isinstance(said, CompileStarted):
            yield said
            yield from self._started(said)
        elif isinstance(said, CompileTimed) and not said.backward:
            yield from self._ended(said, metadata["compilation_metrics"])
            yield said
        elif isinstance(said, GuardsBuilt) and self._works("guards"):
            self._guards[said.compile_id] = said
        elif not isinstance(said, TracedText):
            yield said
        elif said.kind == "break":
            if not self._works("breaks"):
                yield self._broke(said)
        elif said.kind == "recompiles":
            seen = self._recompiles.get(said.compile_id)
            if not self._works("recompiles"):
                self._reasons[said.compile_id] = said.reasons
            elif seen and not seen.guards:
                # No guard of the function's own failed.  The trace names what else did not fit, such as the backend.
                guards = tuple(map(failed_guard, said.reasons))
                self._recompiles[said.compile_id] = replace(seen, guards=guards)
        elif said.kind == "graph":
            self._graphs[said.compile_id] = said
        else:
            self.errors[said.compile_id] = said.text

    def saw_break(self, record: BreakSeen) -> None:
        """A break that a hook, or the trace, reported."""
        if record.compile_id is not None:
            self._breaks.setdefault(record.compile_id, []).append(record)

    def saw_recompile(self, record: RecompileSeen) -> None:
        """The hook saw a recompile that is about to start, unless the limit forbids it."""
        if record.compile_id is not None:
            self._recompiles[record.compile_id] = record

    def past_limit(self, frame: Code) -> RecompileSeen | None:
        """The recompile of a function that the limit forbade."""
        for compile_id, seen in reversed(self._recompiles.items()):
            if seen.frame == frame:
                del self._recompiles[compile_id]
                return replace(seen, past_limit=True)
        return None

    def saw_guards(self, compile_id: str | None) -> GuardsBuilt | None:
        """The guards for which the hook knows the lines.  The trace reported them just before."""
        return self._guards.pop(compile_id, None)

    def waiting(self) -> Sequence[Record]:
        """The guards that still wait for their lines when the recording ends."""
        return list(self._guards.values())

    def stacks(self, said: TracedText) -> tuple[Stack, Stack]:
        """The parts of a break's stack: above the compilation, which is the call's, and what Dynamo traced."""
        code, stack = self._code(said.compile_id), traceback_frames(said.text)
        known = [frame for frame in self.above.get(said.compile_id, ()) if not is_dynamos_file(frame.path)]
        of_code = [i for i, frame in enumerate(stack) if is_of(frame, code)]
        own = next((i for i in of_code if i >= len(known)), of_code[0] if of_code else 0)
        return tuple(stack[:own]), tuple(stack[own:])

    def _code(self, compile_id: str) -> Code:
        """The code of the function; of one that was not started, because of the limit, of its first compilation."""
        frame, _, _ = compile_id.rpartition("/")
        return self.codes.get(compile_id) or self.codes.get(f"{frame}/0") or _UNKNOWN

    def _started(self, started: CompileStarted) -> Iterator[RecompileSeen]:
        """The recompile that this compilation is, if it is one.  One that exceeds the limit never starts."""
        compile_id = started.compile_id
        for pending in (self._breaks, self._graphs, self.errors):
            pending.pop(compile_id, None)
        # The stacks of a long run take memory.  Where all hooks work, nothing asks for them.
        needs_stacks = not all(map(self._works, ("breaks", "recompiles", "frames", "graphs")))
        self.codes[compile_id] = started.code
        self.above[compile_id] = started.stack if needs_stacks else ()
        if seen := self._recompiles.pop(compile_id, None):
            yield seen
        if guards := tuple(map(failed_guard, self._reasons.pop(compile_id, ()))):
            yield RecompileSeen(compile_id, started.code, guards, self.above[compile_id], cut=self._cut)

    def _broke(self, said: TracedText) -> BreakSeen:
        _, traced = self.stacks(said)
        record = BreakSeen(
            said.compile_id, self._code(said.compile_id), said.text, traced, frame_skipped(said.text), raised=False
        )
        self.saw_break(record)
        return record

    def _ended(self, timed: CompileTimed, metrics: Mapping[str, Any]) -> Iterator[Record]:
        traceback, graph = self.errors.pop(timed.compile_id, ""), self._graphs.pop(timed.compile_id, None)
        is_new = not self._works("graphs")
        if metrics.get("fail_type"):
            if not self._works("frames"):
                yield from self._failed(timed, metrics, traceback)
        # torch 2.15 asks no backend for an empty graph.
        elif graph and is_new and (timed.ops or metrics.get("backend_compile_time_s", 0) is not None):
            yield GraphCompiled(
                compile_id=timed.compile_id,
                frame=self._code(timed.compile_id),
                ops=timed.ops or 0,
                devices=devices_of(graph.text),
                graph=next(self.numbers),
                nodes=tuple(nodes_of(graph.text)),
                ended_by=next((seen.stack for seen in self._breaks.get(timed.compile_id, ())), ()),
                at=graph.at,
                seconds=float(metrics.get("backend_compile_time_s") or 0.0),
            )

    def _failed(
        self, timed: CompileTimed, metrics: Mapping[str, Any], traceback: str
    ) -> Iterator[BreakSeen | FrameEnded]:
        """The frame that ended uncompiled, after the break that raised, if one did."""
        error, text = str(metrics["fail_type"]), str(metrics.get("fail_reason") or "")
        limit = error == _FAILS_ON_LIMIT or exceeds_limit(text)
        is_break = error in _BREAKS and not limit
        # The trace does not say that the whole graph was asked for.  Otherwise Dynamo logs the break that it skips.
        broke = timed.compile_id in self._breaks
        raised = not broke if is_break else error not in _BREAKS and not metrics.get("config_suppress_errors")
        stack, code = tuple(user_frames(traceback)), self._code(timed.compile_id)
        if is_break and raised:
            yield BreakSeen(timed.compile_id, code, text, stack, skipped=False, raised=True)
        yield FrameEnded(code, error, text, stack, raised, limit)


def is_of(frame: StackFrame, code: Code) -> bool:
    """Return whether a frame of a stack runs a code object, or a part of it that Dynamo resumes."""
    return frame.path == code.path and user_name(frame.name) == user_name(code.name) and frame.line >= code.line
