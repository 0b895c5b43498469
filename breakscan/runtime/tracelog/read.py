"""Reads the logs of a run: one file a process, or several processes in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from breakscan.runtime.tracelog.lines import Damage, Fault, LogRecord, is_log, read_log
from breakscan.runtime.tracelog.processes import ProcessReader, TracedProcess

NAME = "dedicated_log_torch_trace_"
"""How torch begins the name of a log."""
_MOST_LINES = 3


@dataclass(frozen=True, slots=True)
class Trace:
    """What logs tell: of each process, and what is wrong with the logs, in words."""

    processes: Sequence[TracedProcess]
    problems: Sequence[str]


def logs_in(folder: Path) -> list[Path]:
    """The logs in a folder, among whatever else lies there; those that torch named so also where they are empty.

    Raises OSError where the folder cannot be read.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return [path for path in files if path.name.startswith(NAME) or is_log(path)]


def read_trace(logs: Sequence[Path]) -> Trace:
    """The processes in the order in which they began.  Raises OSError where a log cannot be read."""
    readers: list[ProcessReader] = []
    problems: list[str] = []
    # A process that was forked off another goes on with its numbers of files: what began first is read first.
    for log in sorted(logs, key=_beginning):
        found, damages = _read(log, readers)
        problems += _problems(log, found, damages)
        readers += found
    processes = [reader.process for reader in readers]
    for process in processes:
        if process.nameless:
            problems.append(
                f"{process.log.name} names {len(process.nameless)} files by numbers that another log explains, of the "
                "process that this one was forked off"
            )
    return Trace(sorted(processes, key=lambda process: process.began), problems)


def _beginning(log: Path) -> float:
    return next((record.at for record in read_log(log) if isinstance(record, LogRecord)), 0.0)


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
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            # What is cut off or changed is reported already.
            if not damages or damages[-1].line != record.line:
                damages.append(Damage(record.line, Fault.DAMAGED))
    return found, damages


def _problems(log: Path, found: Sequence[ProcessReader], damages: Sequence[Damage]) -> Iterator[str]:
    if not found:
        yield f"{log.name} holds no record of the trace" if damages else f"{log.name} is empty"
        return
    lines = {fault: [damage.line for damage in damages if damage.fault is fault] for fault in Fault}
    if foreign := lines[Fault.FOREIGN]:
        yield f"{log.name}: {_counted(foreign, 'line is no record', 'lines are no records')}, left out"
    if damaged := lines[Fault.DAMAGED]:
        yield f"{log.name}: {_counted(damaged, 'record is damaged', 'records are damaged')}, left out"
    if changed := lines[Fault.CHECKSUM]:
        told = _counted(changed, "payload differs from its checksum", "payloads differ from their checksums")
        yield f"{log.name}: {told}, read as far as possible"
    if cut_off := lines[Fault.CUT_OFF]:
        yield (
            f"{log.name} ends within the record at line {cut_off[0]}: the process was ended as it wrote, or still runs"
        )


def _counted(lines: Sequence[int], one: str, many: str) -> str:
    """``1 record is damaged (line 7)``."""
    shown = ", ".join(map(str, lines[:_MOST_LINES])) + (", …" if len(lines) > _MOST_LINES else "")
    return f"{len(lines)} {one if len(lines) == 1 else many} (line{'' if len(lines) == 1 else 's'} {shown})"
