"""Reads the logs that TORCH_TRACE writes: what a run left that breakscan did not start.  A record is a line such as
``V0401 12:34:56.789000 4711 torch/_dynamo/utils.py:1] {"dynamo_start": …}``, followed by its payload, each line of it
indented by a tab; ``has_payload`` is the payload's MD5."""

import hashlib
import json
import re
import sys
from calendar import timegm
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, pairwise
from pathlib import Path
from time import gmtime, struct_time
from typing import Any, BinaryIO

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
)
from breakscan.recording.traced import Stack, TraceAndHooks, Traced, TracedText, is_of, trace_records

_CHUNK = 1 << 20
_HEAD = re.compile(
    rb"(?:\[rank\d+\]:)?[VIWEC](?P<month>\d\d)(?P<day>\d\d) "
    rb"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d(?:\.\d+)?) +(?P<pid>\d+) \S.*?:\d+\] (?P<json>\{.*)"
)
_MOST_HEADS = 20  # lines that may stand before the first record of a log


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record: the line that it stands in, from 1; the process that wrote it; when, in seconds since the epoch, the
    time zone of the log left aside; and its payload."""

    line: int
    pid: int
    at: float
    metadata: dict[str, Any]
    payload: str | None


class Fault(Enum):
    DAMAGED = "damaged"  # the line is no record, or not as it was written
    CUT_OFF = "cut-off"  # the log ends in a record
    NO_RECORD = "no-record"  # there is no record in all of the log


@dataclass(frozen=True, slots=True)
class Damage:
    line: int
    fault: Fault


def read_log(path: Path) -> Iterator[LogRecord | Damage]:
    """The records of a log, and what is damaged in it.  A record whose payload is not what was written follows the note
    of that.  Raises OSError where the file cannot be read."""
    with path.open("rb") as file:
        changed = gmtime(path.stat().st_mtime)
        line = 1
        for block, following in pairwise(chain(_blocks(file), [[]])):
            yield from _read_block(b"".join(block), line, changed, is_last=not following)
            line += len(block)


def is_log(path: Path) -> bool:
    """Return whether a file begins as a log does."""
    try:
        with path.open("rb") as file:
            start = file.read(_CHUNK)
    except OSError:
        return False
    heads = [line for line in start.splitlines() if not line.startswith(b"\t")]
    return any(_HEAD.match(line) for line in heads[:_MOST_HEADS])


def _blocks(stream: BinaryIO) -> Iterator[list[bytes]]:
    """The lines that do not begin with a tab, each with those after it that do."""
    block: list[bytes] = []
    for line in stream:
        if block and not line.startswith(b"\t"):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _read_block(block: bytes, line: int, changed: struct_time, *, is_last: bool) -> Iterator[LogRecord | Damage]:
    head, _, rest = block.partition(b"\n")
    text = head.rstrip(b"\r")
    if not text.strip():
        return
    found = _HEAD.match(text)
    if found is None:
        yield Damage(line, Fault.CUT_OFF if is_last and text[:1] == b"V" else Fault.DAMAGED)
        return
    try:
        metadata = json.loads(found["json"])
        at = _seconds(found, changed)
    except (ValueError, RecursionError):
        yield Damage(line, Fault.CUT_OFF if is_last else Fault.DAMAGED)
        return
    payload = None
    if "has_payload" in metadata:
        plain = rest.replace(b"\r\n", b"\n") if head.endswith(b"\r") else rest
        payload = plain.removesuffix(b"\n").removeprefix(b"\t").replace(b"\n\t", b"\n")
    if payload is not None and hashlib.md5(payload, usedforsecurity=False).hexdigest() != metadata["has_payload"]:
        yield Damage(line, Fault.CUT_OFF if is_last else Fault.DAMAGED)
    yield LogRecord(
        line, int(found["pid"]), at, metadata, None if payload is None else payload.decode(errors="replace")
    )


def _seconds(found: re.Match[bytes], changed: struct_time) -> float:
    """A log has no year: that of its last change, or the one before."""
    month = int(found["month"])
    year = changed.tm_year - (month > changed.tm_mon)
    date = (year, month, int(found["day"]), int(found["hour"]), int(found["minute"]), 0)
    return timegm(date) + float(found["second"])


def with_new_values(records: Iterable[Record], failures: Sequence[tuple[str, FailedGuard]]) -> Iterator[Record]:
    """The records of one process; ``failures`` are all guards that failed in it, in order, each with the id of the
    compile that was to follow.  The value that a guard met is the one that the next version was compiled for.  A later
    failure has it."""
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


class TracedProcess:
    """The content of a log about one process, whose records it takes in their order."""

    def __init__(self, log: Path, first: LogRecord) -> None:
        named = _RANK.search(log.name)
        self.rank = int(named["rank"]) if named else None
        self.began = first.at
        self.texts: dict[tuple[str, int], str] = {}  # the lines of source that the log quotes, by file and line
        self._pid = first.pid
        self._torch = self._python = ""
        self._records: list[Record] = []
        self._paths: set[str] = set()
        self._failures: list[tuple[str, FailedGuard]] = []
        self._names: dict[int, str] = {}
        self._started: dict[str, int] = {}
        # No hook saw anything.
        self._merged = TraceAndHooks(lambda hook: False, cut=True)

    def recording(self) -> list[Record]:
        """The records, with what a recording says first of its process."""
        started = ProcessStarted(
            self._pid,
            rank=self.rank,
            time=self.began,
            clock=self.began,
            torch=self._torch,
            python=self._python,
            torch_folder=_folder(_TORCH, self._paths),
            standard_library=_folder(_STANDARD, self._paths),
        )
        return [started, *with_new_values(self._records, self._failures)]

    def take(self, record: LogRecord) -> None:
        """Raises one of :data:`MALFORMED` where the record is not as torch writes it."""
        metadata = record.metadata
        if "str" in metadata:
            name, number = metadata["str"]
            self._names[_whole(number)] = str(name)
            self._paths.add(str(name))
            return
        if self.rank is None and metadata.get("rank") is not None:
            self.rank = _whole(metadata["rank"])
        if start := metadata.get("dynamo_start"):
            for entry in start["stack"]:
                if text := entry.get("loc"):
                    self.texts[self._file_name(entry["filename"]), _whole(entry["line"])] = text.strip()
        for made in trace_records(metadata, record.payload, record.at, self._file_name):
            kind: Any = type(made)
            checked: Traced = decoder(kind)(encode(made))
            self._records.extend(self._records_of(checked, metadata))

    def _file_name(self, number: int | str) -> str:
        if isinstance(number, str):
            return number
        # A process that was forked off another one goes on with the numbers of that.
        name = self._names.get(_whole(number), f"<file {number} of the trace>")
        if number in self._names:
            self._paths.add(name)
        return name

    def _records_of(self, said: Traced, metadata: Mapping[str, Any]) -> Iterator[Record]:
        if isinstance(said, CompileStarted):
            self._started[said.compile_id] = len(self._records)
        elif isinstance(said, TracedText) and said.kind == "break":
            self._quote(said.text)
            self._paths.update(frame.path for frame in frames_of(said.text))
            self._note_caller(said.compile_id, self._merged.stacks(said)[0])
        elif isinstance(said, TracedText) and said.kind == "recompiles":
            self._failures += [(said.compile_id, failed_guard(text)) for text in said.reasons]
        elif isinstance(said, CompileTimed) and not said.backward:
            metrics = metadata["compilation_metrics"]
            self._python = self._python or str(metrics.get("python_version") or "").partition(" ")[0]
            self._torch = self._torch or "".join(re.findall(r"^\d+\.\d+.*", str(metrics.get("pytorch_version"))))
            traceback = self._merged.errors.get(said.compile_id, "")
            self._paths.update(frame.path for frame in frames_of(traceback))
            self._quote(user_part(traceback))
        for record in self._merged.records(said, metadata):
            if isinstance(record, GraphCompiled):
                self._paths.update(node.line.path for node in record.nodes if node.line)
            yield record

    def _note_caller(self, compile_id: str, above: Stack) -> None:
        """The stack at the start of a compilation lacks its two innermost frames, most often with
        the one that called compiled code.  That of a break has it, and compiled functions after it."""
        known = self._merged.above.get(compile_id, ())
        has_entry = any(is_dynamos_file(frame.path) for frame in known)
        if has_entry or compile_id not in self._started or above[: len(known)] != known:
            return
        caller = above[len(known) : len(known) + 1]
        if caller and not any(is_of(caller[0], code) for code in self._merged.codes.values()):
            self._merged.above[compile_id] = stack = (*known, *caller)
            # The recompile that a compilation is follows its start.
            start = self._started[compile_id]
            for index, record in enumerate(self._records[start : start + 2], start):
                if isinstance(record, CompileStarted | RecompileSeen) and record.compile_id == compile_id:
                    self._records[index] = replace(record, stack=stack)

    def _quote(self, text: str) -> None:
        for found in _QUOTED.finditer(text):
            self.texts[found["path"], int(found["line"])] = found["text"].strip()


def _whole(number: Any) -> int:
    """Raises ValueError for anything else than a number of a line, a file or a rank."""
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r:.80} counts nothing")
    return number


def _folder(pattern: re.Pattern[str], paths: set[str]) -> str:
    found = filter(None, map(pattern.match, sorted(paths)))
    return next((one["folder"] for one in found if one.groupdict().get("module", "re") in sys.stdlib_module_names), "")


NAME = "dedicated_log_torch_trace_"  # the beginning of the names of logs


@dataclass(frozen=True, slots=True)
class Trace:
    """The processes of logs, and the faults of the logs, each as a sentence without its full stop."""

    processes: Sequence[TracedProcess]
    problems: Sequence[tuple[Fault, str]]


def logs_in(folder: Path) -> list[Path]:
    """The logs in a folder, among whatever else lies there; those that torch named so also where they are empty.
    Raises OSError where the folder cannot be read."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return [path for path in files if path.name.startswith(NAME) or is_log(path)]


def read_trace(logs: Sequence[Path]) -> Trace:
    """The processes in the order in which they began.  Raises OSError where a log cannot be read."""
    processes: list[TracedProcess] = []
    problems: list[tuple[Fault, str]] = []
    for log in logs:
        found, damages = _read(log)
        processes += found
        if not found:
            problems.append((Fault.NO_RECORD, f"{log.name} holds no record of the trace"))
        every = [(fault, [damage.line for damage in damages if damage.fault is fault]) for fault in Fault if found]
        problems += [(fault, _fault_words(log.name, fault, lines)) for fault, lines in every if lines]
    return Trace(sorted(processes, key=lambda process: process.began), problems)


MALFORMED = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)
"""The exceptions of a record that is not as torch writes it: numbers can be too large, and values nested too deeply."""


def _read(log: Path) -> tuple[list[TracedProcess], list[Damage]]:
    processes: dict[int, TracedProcess] = {}
    damages: list[Damage] = []
    for record in read_log(log):
        if isinstance(record, Damage):
            damages.append(record)
            continue
        if record.pid not in processes:
            processes[record.pid] = TracedProcess(log, record)
        try:
            processes[record.pid].take(record)
        except MALFORMED:
            # What is cut off or changed is reported already.
            if not damages or damages[-1].line != record.line:
                damages.append(Damage(record.line, Fault.DAMAGED))
    return list(processes.values()), damages


_MOST_LINES = 3


def _fault_words(log: str, fault: Fault, lines: Sequence[int]) -> str:
    """``log: 1 record is damaged (line 7), read as far as possible``."""
    if fault is Fault.CUT_OFF:
        return f"{log} ends within the record at line {lines[0]}: the process was ended as it wrote, or still runs"
    shown = ", ".join(map(str, lines[:_MOST_LINES])) + (", …" if len(lines) > _MOST_LINES else "")
    damaged = counted(len(lines), "record is damaged", "records are damaged")
    return f"{log}: {damaged} (line{'' if len(lines) == 1 else 's'} {shown}), read as far as possible"
