"""Reads the logs of a run: one file a process, or several processes in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from breakscan.model.words import counted
from breakscan.recording.tracelog.lines import Damage, Fault, LogRecord, is_log, read_log
from breakscan.recording.tracelog.processes import ProcessReader, TracedProcess

NAME = "dedicated_log_torch_trace_"
"""How torch begins the name of a log."""


@dataclass(frozen=True, slots=True)
class LogProblem:
    """A fault of a log; ``text`` is a sentence without its full stop."""

    fault: Fault
    text: str


@dataclass(frozen=True, slots=True)
class Trace:
    """What logs tell: of each process, and what is wrong with the logs."""

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
    readers: list[ProcessReader] = []
    problems: list[LogProblem] = []
    # A process that was forked off another goes on with its numbers of files: what began first is read first.
    for log in sorted(logs, key=_beginning):
        found, damages = _read(log, readers)
        problems += _problems(log, found, damages)
        readers += found
    processes = [reader.process for reader in readers]
    for process in processes:
        if process.nameless:
            files = f"{process.log.name} names {len(process.nameless)} files by numbers that another log explains"
            text = f"{files}, of the process that this one was forked off"
            problems.append(LogProblem(Fault.NAMELESS, text))
    return Trace(sorted(processes, key=lambda process: process.began), problems)


def _beginning(log: Path) -> float:
    return next((record.at for record in read_log(log) if isinstance(record, LogRecord)), 0.0)


MALFORMED = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)
"""What a record raises that is not as torch writes it: numbers can be too large, and values nested too deeply."""


def _read(log: Path, before: Sequence[ProcessReader]) -> tuple[list[ProcessReader], list[Damage]]:
    current: dict[int, ProcessReader] = {}
    found: list[ProcessReader] = []
    damages: list[Damage] = []
    for record in read_log(log):
        if isinstance(record, Damage):
            damages.append(record)
            continue
        reader = current.get(record.pid)
        try:
            if reader is None or reader.restarts(record):
                reader = current[record.pid] = ProcessReader(log, record, [*before, *found])
                found.append(reader)
            reader.take(record)
        except MALFORMED:
            # What is cut off or changed is reported already.
            if not damages or damages[-1].line != record.line:
                damages.append(Damage(record.line, Fault.DAMAGED))
    return found, damages


def _problems(log: Path, found: Sequence[ProcessReader], damages: Sequence[Damage]) -> Iterator[LogProblem]:
    if not found and not damages:
        yield LogProblem(Fault.EMPTY, f"{log.name} is empty")
    elif not found:
        yield LogProblem(Fault.NO_RECORD, f"{log.name} holds no record of the trace")
    for fault in Fault if found else ():
        if lines := [damage.line for damage in damages if damage.fault is fault]:
            yield LogProblem(fault, _fault_words(log.name, fault, lines))


_MOST_LINES = 3
_FAULTS = {
    Fault.FOREIGN: ("line is no record", "lines are no records", "left out"),
    Fault.DAMAGED: ("record is damaged", "records are damaged", "left out"),
    Fault.CHECKSUM: (
        "payload differs from its checksum", "payloads differ from their checksums", "read as far as possible",
    ),
}  # fmt: skip


def _fault_words(log: str, fault: Fault, lines: Sequence[int]) -> str:
    """``log: 1 record is damaged (line 7), left out``."""
    if fault is Fault.CUT_OFF:
        return f"{log} ends within the record at line {lines[0]}: the process was ended as it wrote, or still runs"
    one, many, consequence = _FAULTS[fault]
    shown = ", ".join(map(str, lines[:_MOST_LINES])) + (", …" if len(lines) > _MOST_LINES else "")
    at = f"line{'' if len(lines) == 1 else 's'} {shown}"
    return f"{log}: {counted(len(lines), one, many)} ({at}), {consequence}"
