"""Makes one record of what both the structured trace and a hook say.

Where a hook works, its record counts, and the trace fills in what the hook cannot see.  Where torch lacks what the
hook needs, or the hook has failed, the record is made from the trace alone.  A log of TORCH_TRACE holds nothing more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from breakscan.recording.parsers.break_text import frame_skipped, traceback_frames
from breakscan.recording.parsers.frames import exceeds_limit, is_dynamos_file, user_frames, user_name
from breakscan.recording.parsers.graphs import devices_of, nodes_of
from breakscan.recording.parsers.guards import failed_guard
from breakscan.recording.records import (
    BreakSeen,
    Code,
    CompileStarted,
    CompileTimed,
    FrameEnded,
    GraphCompiled,
    GuardsBuilt,
    RecompileSeen,
    Record,
    StackFrame,
)
from breakscan.recording.traced import Traced, TracedText

_UNKNOWN = Code("<unknown>", 1, "<unknown>")
_BREAKS = ("Unsupported", "UserError")
"""The exceptions that Dynamo does not let through, unless the whole graph was asked for."""
_FAILS_ON_LIMIT = "FailOnRecompileLimitHit"


class TraceFallback:
    """Follows the compilations of one process.  ``numbers`` gives each graph its number; ``cut`` says that stacks above
    compilations are those of torch's trace, which lack their two innermost frames."""

    def __init__(self, numbers: Iterator[int], cut: bool) -> None:
        self._cut = cut
        self.codes: dict[str, Code] = {}
        self._above: dict[str, tuple[StackFrame, ...]] = {}
        self._breaks: dict[str, list[BreakSeen]] = {}
        self._graphs: dict[str, TracedText] = {}
        self._errors: dict[str, str] = {}
        self._reasons: dict[str, tuple[str, ...]] = {}
        self._numbers = numbers

    def start(self, started: CompileStarted) -> Iterator[RecompileSeen]:
        """The recompile that this compilation is, if it is one.

        One that exceeds the recompile limit never starts, and gives none.
        """
        compile_id = started.compile_id
        for pending in (self._breaks, self._graphs, self._errors):
            pending.pop(compile_id, None)
        self.codes[compile_id] = started.code
        self._above[compile_id] = started.stack
        guards = tuple(map(failed_guard, self._reasons.pop(compile_id, ())))
        if guards:
            yield RecompileSeen(compile_id, started.code, guards, started.stack, cut=self._cut)

    def keep(self, said: TracedText) -> None:
        """Keeps what a later statement of the trace completes."""
        if said.kind == "recompiles":
            self._reasons[said.compile_id] = said.reasons
        elif said.kind == "graph":
            self._graphs[said.compile_id] = said
        else:
            self._errors[said.compile_id] = said.text

    def forget_graph(self, compile_id: str) -> None:
        """Drops a graph that a hook has recorded."""
        self._graphs.pop(compile_id, None)

    def error(self, compile_id: str) -> str:
        """The traceback of what ended a compilation; empty where nothing did."""
        return self._errors.get(compile_id, "")

    def saw(self, record: BreakSeen) -> None:
        """A hook saw a break."""
        if record.compile_id is not None:
            self._breaks.setdefault(record.compile_id, []).append(record)

    def broke(self, said: TracedText) -> BreakSeen:
        """The break.  Its stack is the part that Dynamo traced; the part above belongs to the call."""
        code = self.code(said.compile_id)
        stack = traceback_frames(said.text)
        own = self._first_traced(said.compile_id, stack)
        record = BreakSeen(said.compile_id, code, said.text, tuple(stack[own:]), frame_skipped(said.text), False)
        self.saw(record)
        return record

    def stack_above(self, said: TracedText) -> list[StackFrame]:
        """The part of a break's stack that Dynamo did not trace."""
        stack = traceback_frames(said.text)
        return stack[: self._first_traced(said.compile_id, stack)]

    def code(self, compile_id: str) -> Code:
        """The code of the function; of one that was not started, because of the limit, that of its first
        compilation."""
        frame, _, _ = compile_id.rpartition("/")
        return self.codes.get(compile_id) or self.codes.get(f"{frame}/0") or _UNKNOWN

    def failure(self, timed: CompileTimed, metrics: Mapping[str, Any]) -> Iterator[BreakSeen | FrameEnded]:
        """The frame that ended uncompiled, after the break that raised, if one did."""
        if not metrics.get("fail_type"):
            return
        error, text = str(metrics["fail_type"]), str(metrics.get("fail_reason") or "")
        traceback = self._errors.pop(timed.compile_id, "")
        broke = timed.compile_id in self._breaks
        limit = error == _FAILS_ON_LIMIT or exceeds_limit(text)
        is_break = error in _BREAKS and not limit
        # The trace does not say that the whole graph was asked for.  Otherwise Dynamo logs the break that it skips.
        raised = not broke if is_break else error not in _BREAKS and not metrics.get("config_suppress_errors")
        stack = tuple(user_frames(traceback))
        code = self.code(timed.compile_id)
        if is_break and raised:
            yield BreakSeen(timed.compile_id, code, text, stack, skipped=False, raised=True)
        yield FrameEnded(code, error, text, stack, raised, limit)

    def compiled(self, timed: CompileTimed, metrics: Mapping[str, Any]) -> Iterator[GraphCompiled]:
        """The graph that a compilation gave, if it gave one."""
        graph = self._graphs.pop(timed.compile_id, None)
        if graph is None or metrics.get("fail_type"):
            return
        if not timed.ops and metrics.get("backend_compile_time_s", 0) is None:
            return  # torch 2.15 asks no backend for an empty graph
        yield GraphCompiled(
            compile_id=timed.compile_id,
            frame=self.code(timed.compile_id),
            ops=timed.ops or 0,
            devices=devices_of(graph.text),
            graph=next(self._numbers),
            nodes=tuple(nodes_of(graph.text)),
            ended_by=next((seen.stack for seen in self._breaks.get(timed.compile_id, ())), ()),
            at=graph.at,
            seconds=float(metrics.get("backend_compile_time_s") or 0.0),
        )

    def above(self, compile_id: str) -> tuple[StackFrame, ...]:
        """The stack above a compilation, as far as it is known."""
        return self._above.get(compile_id, ())

    def correct_stack(self, compile_id: str, above: tuple[StackFrame, ...]) -> None:
        """Replaces the stack above a compilation by a better one than :meth:`start` got."""
        self._above[compile_id] = above

    def _first_traced(self, compile_id: str, stack: list[StackFrame]) -> int:
        code = self.code(compile_id)
        known = [frame for frame in self.above(compile_id) if not is_dynamos_file(frame.path)]
        of_code = [i for i, frame in enumerate(stack) if is_of(frame, code)]
        return next((i for i in of_code if i >= len(known)), of_code[0] if of_code else 0)


def is_of(frame: StackFrame, code: Code) -> bool:
    """Return whether a frame of a stack runs a code object, or a part of it that Dynamo resumes."""
    return frame.path == code.path and user_name(frame.name) == user_name(code.name) and frame.line >= code.line


class TraceAndHooks:
    """Decides for one process.  ``works`` returns True if a hook, by its name, saw what the trace speaks of now;
    ``numbers`` numbers the graphs; ``cut`` as in :class:`TraceFallback`."""

    def __init__(self, works: Callable[[str], bool], *, cut: bool = False) -> None:
        self.numbers = itertools.count()
        self._works = works
        self.fallback = TraceFallback(self.numbers, cut)
        self._recompiles: dict[str, RecompileSeen] = {}
        self._guards: dict[str | None, GuardsBuilt] = {}

    def records(self, said: Traced, metadata: Mapping[str, Any]) -> Iterator[Record]:
        """The records of a statement of the trace."""
        if isinstance(said, CompileStarted):
            yield said
            if seen := self._recompiles.pop(said.compile_id, None):
                yield seen
            # The stacks of a long run take memory.  Where all hooks work, nothing asks for them.
            needs_stacks = not all(map(self._works, ("breaks", "recompiles", "frames", "graphs")))
            yield from self.fallback.start(said if needs_stacks else replace(said, stack=()))
        elif isinstance(said, CompileTimed) and not said.backward:
            yield from self._ended(said, metadata["compilation_metrics"])
            yield said
        elif isinstance(said, TracedText) and said.kind == "break":
            if not self._works("breaks"):
                yield self.fallback.broke(said)
        elif isinstance(said, TracedText) and said.kind == "recompiles" and self._works("recompiles"):
            seen = self._recompiles.get(said.compile_id)
            if seen and not seen.guards:
                # No guard of the function's own failed.  The trace names what else did not fit, such as the backend.
                guards = tuple(map(failed_guard, said.reasons))
                self._recompiles[said.compile_id] = replace(seen, guards=guards)
        elif isinstance(said, TracedText):
            self.fallback.keep(said)
        elif isinstance(said, GuardsBuilt) and self._works("guards"):
            self._guards[said.compile_id] = said
        else:
            yield said

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

    def _ended(self, timed: CompileTimed, metrics: Mapping[str, Any]) -> Iterator[Record]:
        if not self._works("frames"):
            yield from self.fallback.failure(timed, metrics)
        if self._works("graphs"):
            self.fallback.forget_graph(timed.compile_id)
        else:
            yield from self.fallback.compiled(timed, metrics)
