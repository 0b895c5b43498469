"""Reads the logs of a run: turns what each process wrote into the records that a recording of it would hold."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from breakscan.model.dataclass_json import decoder, encode
from breakscan.model.words import counted
from breakscan.recording.parsers.frames import frames_of, is_dynamos_file, user_part
from breakscan.recording.parsers.guards import failed_guard, read_guard
from breakscan.recording.records import (
    CompileStarted,
    CompileTimed,
    FailedGuard,
    GraphCompiled,
    ProcessStarted,
    RecompileSeen,
    Record,
    StackFrame,
)
from breakscan.recording.trace_fallback import TraceAndHooks, is_of
from breakscan.recording.traced import Traced, TracedText, trace_records
from breakscan.recording.tracelog.lines import Damage, Fault, LogRecord, is_log, read_log


def with_new_values(records: Iterable[Record], failures: Sequence[tuple[str, FailedGuard]]) -> Iterator[Record]:
    """The records of one process; ``failures`` are all guards that failed in it, in order, each
    with the id of the compile that was to follow.

    The value that a guard met is the one that the next version was compiled for.  A later failure of that version
    has it.
    """
    of_version: dict[str, list[tuple[int, FailedGuard]]] = {}
    began: dict[str, int] = {}
    for index, (compile_id, guard) in enumerate(failures):
        of_version.setdefault(guard.compile_id, []).append((index, guard))
        began.setdefault(compile_id, index)
    for record in records:
        if isinstance(record, RecompileSeen) and record.compile_id is not None:
            first = began.get(record.compile_id, -1)
            later = [guard for at, guard in of_version.get(record.compile_id, ()) if at > first]
            record = replace(record, guards=tuple(_with_new_value(guard, later) for guard in record.guards))
        yield record


def _with_new_value(guard: FailedGuard, later: Sequence[FailedGuard]) -> FailedGuard:
    asked = read_guard(guard.text)
    of_next = (read_guard(one.text) for one in later)
    same = next((other for other in of_next if other.subject == asked.subject), None)
    known = None if same is None else same.demand if same.is_bound else same.old
    return replace(guard, new=asked.new or known)


_QUOTED = re.compile(r'^ *File "(?P<path>.+)", line (?P<line>\d+), in .+\n {4,}(?P<text>\S.*)$', re.M)
_TORCH = re.compile(
    r"(?P<folder>.*[/\\](?:(?:site|dist)-packages[/\\]torch|torch(?=[/\\](?:_dynamo|_inductor|_functorch|nn|optim)[/\\])))[/\\]"
)
_STANDARD = re.compile(r"(?P<folder>.*[/\\]lib[/\\]python3\.\d+t?)[/\\](?P<module>\w+)")
_RANK = re.compile(r"trace_rank_(?P<rank>\d+)[_.]")


@dataclass(slots=True)
class TracedProcess:
    """The content of a log about one process.  ``texts`` are the lines of source that it quotes, by file and line;
    ``failures`` all guards that failed."""

    pid: int
    began: float
    rank: int | None = None
    torch: str = ""
    python: str = ""
    records: list[Record] = field(default_factory=list)
    texts: dict[tuple[str, int], str] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)
    failures: list[tuple[str, FailedGuard]] = field(default_factory=list)

    def recording(self) -> list[Record]:
        """The records, with what a recording says first of its process."""
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
        return [started, *with_new_values(self.records, self.failures)]


class ProcessReader:
    """Takes the records of one process in their order."""

    def __init__(self, log: Path, first: LogRecord) -> None:
        named = _RANK.search(log.name)
        self.process = TracedProcess(first.pid, first.at, int(named["rank"]) if named else None)
        self.names: dict[int, str] = {}
        self._started: dict[str, int] = {}
        # No hook saw anything.
        self._merged = TraceAndHooks(lambda hook: False, cut=True)

    def take(self, record: LogRecord) -> None:
        """Raises one of :data:`MALFORMED` where the record is not as torch writes it."""
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
        if start := metadata.get("dynamo_start"):
            for entry in start["stack"]:
                if text := entry.get("loc"):
                    place = self._file_name(entry["filename"]), _whole(entry["line"])
                    self.process.texts[place] = text.strip()
        for made in trace_records(metadata, record.payload, record.at, self._file_name):
            kind: Any = type(made)
            checked: Traced = decoder(kind)(encode(made))
            self.process.records.extend(self._records(checked, metadata))

    def _file_name(self, number: int | str) -> str:
        if isinstance(number, str):
            return number
        _whole(number)
        name = self.names.get(number)
        if name is None:
            # A process that was forked off another one goes on with the numbers of that.
            return f"<file {number} of the trace>"
        self.process.paths.add(name)
        return name

    def _records(self, said: Traced, metadata: Mapping[str, Any]) -> Iterator[Record]:
        process = self.process
        if isinstance(said, CompileStarted):
            self._started[said.compile_id] = len(process.records)
        elif isinstance(said, TracedText) and said.kind == "break":
            self._quote(said.text)
            process.paths.update(frame.path for frame in frames_of(said.text))
            self._note_caller(said.compile_id, self._merged.fallback.stack_above(said))
        elif isinstance(said, TracedText) and said.kind == "recompiles":
            process.failures += [(said.compile_id, failed_guard(text)) for text in said.reasons]
        elif isinstance(said, CompileTimed) and not said.backward:
            metrics = metadata["compilation_metrics"]
            process.python = process.python or str(metrics.get("python_version") or "").partition(" ")[0]
            process.torch = process.torch or _version(metrics.get("pytorch_version"))
            if traceback := self._merged.fallback.error(said.compile_id):
                process.paths.update(frame.path for frame in frames_of(traceback))
                self._quote(user_part(traceback))
        for record in self._merged.records(said, metadata):
            if isinstance(record, GraphCompiled):
                process.paths.update(node.line.path for node in record.nodes if node.line)
            yield record

    def _note_caller(self, compile_id: str, above: list[StackFrame]) -> None:
        """The stack at the start of a compilation lacks its two innermost frames, most often with
        the one that called compiled code.  That of a break has it, and compiled functions after it."""
        known = self._merged.fallback.above(compile_id)
        has_entry = any(is_dynamos_file(frame.path) for frame in known)
        if has_entry or compile_id not in self._started or tuple(above[: len(known)]) != known:
            return
        caller = above[len(known) : len(known) + 1]
        if caller and not any(is_of(caller[0], code) for code in self._merged.fallback.codes.values()):
            stack = (*known, *caller)
            self._merged.fallback.correct_stack(compile_id, stack)
            # The recompile that a compilation is follows its start.
            start = self._started[compile_id]
            for index, record in enumerate(self.process.records[start : start + 2], start):
                if isinstance(record, CompileStarted | RecompileSeen) and record.compile_id == compile_id:
                    self.process.records[index] = replace(record, stack=stack)

    def _quote(self, text: str) -> None:
        for found in _QUOTED.finditer(text):
            self.process.texts[found["path"], int(found["line"])] = found["text"].strip()


def _whole(number: Any) -> int:
    """Raises ValueError for anything else than a number of a line, a file or a rank."""
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r:.80} counts nothing")
    return number


def _version(text: Any) -> str:
    """Empty where it is none."""
    return text if isinstance(text, str) and re.match(r"\d+\.\d+", text) else ""


def _folder(pattern: re.Pattern[str], paths: set[str]) -> str:
    """The folder that the first path below one shows."""
    return next((found["folder"] for path in sorted(paths) if (found := pattern.match(path))), "")


def _standard_library(paths: set[str]) -> str:
    for path in sorted(paths):
        found = _STANDARD.match(path)
        if found and found["module"] in sys.stdlib_module_names:
            return found["folder"]
    return ""


NAME = "dedicated_log_torch_trace_"
"""The beginning of the names of logs."""


@dataclass(frozen=True, slots=True)
class LogProblem:
    """A fault of a log; ``text`` is a sentence without its full stop."""

    fault: Fault
    text: str


@dataclass(frozen=True, slots=True)
class Trace:
    """The processes that logs are about, and the faults of the logs."""

    processes: Sequence[TracedProcess]
    problems: Sequence[LogProblem]


def logs_in(folder: Path) -> list[Path]:
    """The logs in a folder, among whatever else lies there; those that torch named so also where they are empty.

    Raises OSError where the folder cannot be read.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return [path for path in files if path.name.startswith(NAME) or is_log(path)]


def read_trace(logs: Sequence[Path]) -> Trace:
    """The processes in the order in which they began.  Raises OSError where a log cannot be read."""
    processes: list[TracedProcess] = []
    problems: list[LogProblem] = []
    for log in logs:
        found, damages = _read(log)
        problems += _problems(log, found, damages)
        processes += found
    return Trace(sorted(processes, key=lambda process: process.began), problems)


MALFORMED = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)
"""The exceptions of a record that is not as torch writes it: numbers can be too large, and values nested too deeply."""


def _read(log: Path) -> tuple[list[TracedProcess], list[Damage]]:
    readers: dict[int, ProcessReader] = {}
    damages: list[Damage] = []
    for record in read_log(log):
        if isinstance(record, Damage):
            damages.append(record)
            continue
        reader = readers.setdefault(record.pid, ProcessReader(log, record))
        try:
            reader.take(record)
        except MALFORMED:
            # What is cut off or changed is reported already.
            if not damages or damages[-1].line != record.line:
                damages.append(Damage(record.line, Fault.DAMAGED))
    return [reader.process for reader in readers.values()], damages


def _problems(log: Path, found: Sequence[TracedProcess], damages: Sequence[Damage]) -> Iterator[LogProblem]:
    if not found:
        yield LogProblem(Fault.NO_RECORD, f"{log.name} holds no record of the trace")
    for fault in Fault if found else ():
        if lines := [damage.line for damage in damages if damage.fault is fault]:
            yield LogProblem(fault, _fault_words(log.name, fault, lines))


_MOST_LINES = 3


def _fault_words(log: str, fault: Fault, lines: Sequence[int]) -> str:
    """``log: 1 record is damaged (line 7), read as far as possible``."""
    if fault is Fault.CUT_OFF:
        return f"{log} ends within the record at line {lines[0]}: the process was ended as it wrote, or still runs"
    shown = ", ".join(map(str, lines[:_MOST_LINES])) + (", …" if len(lines) > _MOST_LINES else "")
    damaged = counted(len(lines), "record is damaged", "records are damaged")
    return f"{log}: {damaged} (line{'' if len(lines) == 1 else 's'} {shown}), read as far as possible"
