"""Turns what one process wrote into its log into the records that a recording of it would hold."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from breakscan.dataclass_json import decoder, encode
from breakscan.runtime.parsers.break_text import frame_skipped, traceback_frames
from breakscan.runtime.parsers.dynamo_names import user_name
from breakscan.runtime.parsers.tracebacks import frames_of
from breakscan.runtime.records import (
    BreakSeen,
    BreakTraced,
    Code,
    CompileStarted,
    CompileTimed,
    FrameEnded,
    GraphCompiled,
    GraphTraced,
    HookInstalled,
    ProcessForked,
    ProcessStarted,
    Record,
    StackFrame,
)
from breakscan.runtime.traced import compile_id_of, trace_records
from breakscan.runtime.tracelog.graphtext import devices_of, nodes_of
from breakscan.runtime.tracelog.lines import LogRecord
from breakscan.runtime.tracelog.recompiles import with_recompiles

_FROM_USER = re.compile(r"^from user code:$", re.M)
_QUOTED = re.compile(r'^ *File "(?P<path>.+)", line (?P<line>\d+), in .+\n {4,}(?P<text>\S.*)$', re.M)
_TORCH = re.compile(
    r"(?P<folder>.*[/\\](?:(?:site|dist)-packages[/\\]torch|torch(?=[/\\](?:_dynamo|_inductor|_functorch|nn|optim)[/\\])))[/\\]"
)
_STANDARD = re.compile(r"(?P<folder>.*[/\\]lib[/\\]python3\.\d+t?)[/\\](?P<module>\w+)")
_BREAKS = ("Unsupported", "UserError")
"""The exceptions that Dynamo does not let through, unless the whole graph was asked for."""
_RANK = re.compile(r"trace_rank_(?P<rank>\d+)[_.]")
_FAILS_ON_LIMIT = "FailOnRecompileLimitHit"
_LIMIT = "recompile limit exceeded"


@dataclass(slots=True)
class TracedProcess:
    """What a log tells of one process.  ``texts`` are the lines of source that it quotes, by file and line;
    ``parent`` the process that it was forked off."""

    pid: int
    log: Path
    began: float
    rank: int | None = None
    torch: str = ""
    python: str = ""
    parent: int | None = None
    records: list[Record] = field(default_factory=list)
    texts: dict[tuple[str, int], str] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)
    nameless: set[int] = field(default_factory=set)

    def recording(self) -> list[Record]:
        """The records, with what a recording says first of its process."""
        # Of these a log tells what a hook would have recorded.
        hooks = [HookInstalled(name, available=True) for name in ("frames", "graphs")]
        if self.parent is not None:
            return [ProcessForked(self.pid, self.parent), *with_recompiles(self.records)]
        started = ProcessStarted(
            pid=self.pid,
            parent_pid=0,
            argv=(),
            rank=self.rank,
            world_size=None,
            time=self.began,
            clock=self.began,
            torch=self.torch,
            python=self.python,
            torch_folder=_folder(_TORCH, self.paths),
            standard_library=_standard_library(self.paths),
            disabled_by=None,
            profile_kept=False,
        )
        return [started, *hooks, *with_recompiles(self.records)]


class ProcessReader:
    """Takes the records of one process in their order.

    ``elders`` are those that began before it: a process that was forked off one goes on with its numbers of files.
    """

    def __init__(self, log: Path, first: LogRecord, elders: Sequence[ProcessReader]) -> None:
        named = _RANK.search(log.name)
        self.process = TracedProcess(first.pid, log, first.at, int(named["rank"]) if named else None)
        self.names: dict[int, str] = {}
        self._elders = elders
        self._started: dict[str, int] = {}
        self._codes: dict[str, Code] = {}
        self._breaks: dict[str, list[BreakSeen]] = {}
        self._graphs: dict[str, tuple[GraphTraced, float]] = {}
        self._numbers = itertools.count()
        self._errors: dict[str, str] = {}

    def take(self, record: LogRecord) -> None:
        """Raises ValueError, TypeError, KeyError, IndexError or AttributeError where the record is not as torch
        writes it."""
        metadata = record.metadata
        if "str" in metadata:
            name, number = metadata["str"]
            self.names[_whole(number)] = str(name)
            self.process.paths.add(str(name))
            return
        if self.process.rank is None and metadata.get("rank") is not None:
            self.process.rank = _whole(metadata["rank"])
        artifact = metadata.get("artifact")
        if artifact and artifact.get("name") == "torch_version":
            self.process.torch = _version(json.loads(record.payload or "")["pytorch_version"])
        elif artifact and artifact.get("name") == "dynamo_error":
            self._errors[compile_id_of(metadata) or ""] = record.payload or ""
        if start := metadata.get("dynamo_start"):
            self._keep_texts(start["stack"])
        for made in trace_records(metadata, record.payload, record.at, self._file_name):
            kind: Any = type(made)
            checked: Record = decoder(kind)(encode(made))
            self.process.records.extend(self._enriched(checked, metadata, record.at))

    def restarts(self, record: LogRecord) -> bool:
        """Whether the record is of another process with the same id, as in containers: it numbers its files anew."""
        if "str" not in record.metadata:
            return False
        name, number = record.metadata["str"]
        return bool(self.names.get(number, name) != name)

    def _file_name(self, number: int | str) -> str:
        if isinstance(number, str):
            return number
        _whole(number)
        name = self.names.get(number) or self._inherited_name(number)
        if name is None:
            self.process.nameless.add(number)
            return f"<file {number} of the trace>"
        self.process.paths.add(name)
        return name

    def _inherited_name(self, number: int) -> str | None:
        process = self.process
        nearest = sorted(self._elders, key=lambda e: (e.process.rank == process.rank, e.process.began), reverse=True)
        elder = next((elder for elder in nearest if number in elder.names), None)
        if elder is None:
            return None
        process.parent = elder.process.pid
        self.names[number] = elder.names[number]
        return elder.names[number]

    def _keep_texts(self, stack: list[dict[str, Any]]) -> None:
        for entry in stack:
            if text := entry.get("loc"):
                self.process.texts[self._file_name(entry["filename"]), _whole(entry["line"])] = text.strip()

    def _enriched(self, record: Record, metadata: Mapping[str, Any], at: float) -> Iterator[Record]:
        """The records that hooks would have written where the log has what they need."""
        if isinstance(record, CompileStarted):
            for pending in (self._breaks, self._graphs, self._errors):
                pending.pop(record.compile_id, None)
            self._started[record.compile_id] = len(self.process.records)
            self._codes[record.compile_id] = record.code
            yield record
        elif isinstance(record, BreakTraced):
            yield self._break(record.compile_id, record.text, raised=False)
        elif isinstance(record, GraphTraced):
            self._graphs[record.compile_id] = record, at
        elif isinstance(record, CompileTimed) and not record.backward:
            metrics = metadata["compilation_metrics"]
            self.process.python = self.process.python or str(metrics.get("python_version") or "").partition(" ")[0]
            self.process.torch = self.process.torch or _version(metrics.get("pytorch_version"))
            yield from self._failure(record, metrics) if metrics.get("fail_type") else self._graph(record, metrics)
            yield record
        else:
            yield record

    def _break(self, compile_id: str, text: str, *, raised: bool) -> BreakSeen:
        """The break, with the part of its stack that Dynamo traced; the part above belongs to the call."""
        self._quote(text)
        code = self._code(compile_id)
        stack = traceback_frames(text)
        self.process.paths.update(frame.path for frame in frames_of(text))
        known = [frame for frame in self._above(compile_id) if not _is_dynamos(frame)]
        of_code = [i for i, frame in enumerate(stack) if _is_of(frame, code)]
        own = next((i for i in of_code if i >= len(known)), of_code[0] if of_code else 0)
        self._tell_caller(compile_id, stack[:own])
        seen = BreakSeen(compile_id, code, text, tuple(stack[own:]), frame_skipped(text), raised)
        self._breaks.setdefault(compile_id, []).append(seen)
        return seen

    def _above(self, compile_id: str) -> tuple[StackFrame, ...]:
        started = self.process.records[self._started[compile_id]] if compile_id in self._started else None
        return started.stack if isinstance(started, CompileStarted) else ()

    def _tell_caller(self, compile_id: str, above: list[StackFrame]) -> None:
        """The stack at the start of a compilation lacks its two innermost frames (torch 2.11 to 2.15), most often with
        the one that called compiled code; that of a break has it, and compiled functions behind it."""
        known = self._above(compile_id)
        has_entry = any(_is_dynamos(frame) for frame in known)
        if has_entry or compile_id not in self._started or tuple(above[: len(known)]) != known:
            return
        caller = above[len(known) : len(known) + 1]
        if caller and not any(_is_of(caller[0], code) for code in self._codes.values()):
            index = self._started[compile_id]
            started = self.process.records[index]
            assert isinstance(started, CompileStarted)
            self.process.records[index] = replace(started, stack=(*known, *caller))

    def _quote(self, text: str) -> None:
        for found in _QUOTED.finditer(text):
            self.process.texts[found["path"], int(found["line"])] = found["text"].strip()

    def _code(self, compile_id: str) -> Code:
        """That of the function; of one that was not started, because of the limit, that of its first compilation."""
        frame, _, _ = compile_id.rpartition("/")
        unknown = Code("<unknown>", 1, "<unknown>")
        return self._codes.get(compile_id) or self._codes.get(f"{frame}/0") or unknown

    def _failure(self, timed: CompileTimed, metrics: Mapping[str, Any]) -> Iterator[Record]:
        error, text = str(metrics["fail_type"]), str(metrics.get("fail_reason") or "")
        traceback = self._errors.pop(timed.compile_id, "")
        self.process.paths.update(frame.path for frame in frames_of(traceback))
        broke = timed.compile_id in self._breaks
        limit = error == _FAILS_ON_LIMIT or _LIMIT in text
        is_break = error in _BREAKS and not limit
        # A log does not say that the whole graph was asked for.  Elsewhere Dynamo logs the break that it steps over.
        raised = not broke if is_break else error not in _BREAKS and not metrics.get("config_suppress_errors")
        user_part = _FROM_USER.split(traceback)[-1] if _FROM_USER.search(traceback) else ""
        self._quote(user_part)
        stack = tuple(frames_of(user_part))
        code = self._code(timed.compile_id)
        if is_break and raised:
            yield BreakSeen(timed.compile_id, code, text, stack, skipped=False, raised=True)
        yield FrameEnded(code, error, text, stack, raised, limit)

    def _graph(self, timed: CompileTimed, metrics: Mapping[str, Any]) -> Iterator[Record]:
        if timed.compile_id not in self._graphs:
            return
        graph, at = self._graphs.pop(timed.compile_id)
        if not timed.ops and metrics.get("backend_compile_time_s", 0) is None:
            return  # torch 2.15 asks no backend for an empty graph
        ended_by = next((seen.stack for seen in self._breaks.get(timed.compile_id, ())), ())
        nodes = tuple(nodes_of(graph.text))
        self.process.paths.update(node.line.path for node in nodes if node.line)
        yield GraphCompiled(
            compile_id=timed.compile_id,
            frame=self._code(timed.compile_id),
            ops=timed.ops or 0,
            devices=devices_of(graph.text),
            graph=next(self._numbers),
            nodes=nodes,
            ended_by=ended_by,
            at=at,
            seconds=float(metrics.get("backend_compile_time_s") or 0.0),
        )


def _whole(number: Any) -> int:
    """Raises ValueError for anything else than a number of a line, a file or a rank."""
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r:.80} counts nothing")
    return number


def _version(text: Any) -> str:
    """Empty where it is none."""
    return text if isinstance(text, str) and re.match(r"\d+\.\d+", text) else ""


def _is_of(frame: StackFrame, code: Code) -> bool:
    return frame.path == code.path and user_name(frame.name) == user_name(code.name) and frame.line >= code.line


def _is_dynamos(frame: StackFrame) -> bool:
    return "torch/_dynamo/" in frame.path.replace("\\", "/")


def _folder(pattern: re.Pattern[str], paths: set[str]) -> str:
    """The folder that the first path below one tells of."""
    return next((found["folder"] for path in sorted(paths) if (found := pattern.match(path))), "")


def _standard_library(paths: set[str]) -> str:
    for path in sorted(paths):
        found = _STANDARD.match(path)
        if found and found["module"] in sys.stdlib_module_names:
            return found["folder"]
    return ""
