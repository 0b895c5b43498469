"""Adds the new values to the recompiles of a log, which itself says only what had to hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from breakscan.record.parsers.guard_text import Within, read_guard
from breakscan.record.records.guards import FailedGuard, RecompileSeen
from breakscan.record.records.record import Record


@dataclass(frozen=True, slots=True)
class GuardFailure:
    """A guard that failed when ``compile_id`` was to be compiled."""

    compile_id: str
    guard: FailedGuard


def with_new_values(records: Iterable[Record], failures: Sequence[GuardFailure]) -> Iterator[Record]:
    """The records of one process; ``failures`` are all guards that failed in it, in order.

    The value that a guard met is the one that the next version was compiled for.  A later failure of that version
    tells it.
    """
    of_version: dict[str, list[tuple[int, FailedGuard]]] = {}
    began: dict[str, int] = {}
    for index, failure in enumerate(failures):
        of_version.setdefault(failure.guard.compile_id, []).append((index, failure.guard))
        began.setdefault(failure.compile_id, index)
    for record in records:
        if isinstance(record, RecompileSeen) and record.compile_id is not None:
            first = began.get(record.compile_id, -1)
            later = [guard for at, guard in of_version.get(record.compile_id, ()) if at > first]
            record = replace(record, guards=tuple(_with_new_value(guard, later) for guard in record.guards))
        yield record


def _with_new_value(guard: FailedGuard, later: Sequence[FailedGuard]) -> FailedGuard:
    asked = read_guard(guard.text)
    next_version = (read_guard(other.text) for other in later)
    new = next((other.old for other in next_version if other.subject == asked.subject), None)
    return replace(guard, new=asked.new or (new.code if isinstance(new, Within) else new))
