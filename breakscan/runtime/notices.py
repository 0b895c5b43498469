"""What the reader of a report must know of the recording itself: what it lacks, and what colours it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from breakscan.rulebook.ledger import version_key
from breakscan.runtime.records import HookFailed, HookInstalled, ProcessStarted, Record

OLDEST = (2, 11)
NEWEST = (2, 15)

_WITHOUT = {
    "trace": "compile times are missing",
    "breaks": "breaks are read from its log: without columns, and without those that its log leaves out",
    "recompiles": "recompiles are read from its log: without the new value of what changed",
    "frames": "functions given up without a graph break, and errors under fullgraph=True, are missing",
    "graphs": "operations and devices of graphs are missing",
    "targets": "what torch.compile was called for is missing",
    "skips": "compiled functions that the compiler passes over in silence may be missing",
}


def notices(processes: Sequence[Sequence[Record]]) -> Iterator[str]:
    """In plain words, each once."""
    started = next((r for records in processes for r in records if isinstance(r, ProcessStarted)), None)
    if started and not OLDEST <= version_key(started.torch) <= NEWEST:
        known = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
        yield f"torch {started.torch} is newer than this breakscan was tried with ({known}): something may be missing"
    if started and started.profile_kept:
        yield "TORCH_COMPILE_JOB_ID is set: torch remembers sizes of earlier runs, so a first run recompiles more often"
    for record in (r for records in processes for r in records):
        if isinstance(record, HookInstalled) and not record.available:
            version = f"torch {started.torch}" if started else "this torch"
            yield f"{version} lacks what breakscan hooks into for {record.name}: {_WITHOUT[record.name]}"
        elif isinstance(record, HookFailed):
            missing = _WITHOUT.get(record.name, "something is missing")
            yield f"breakscan's hook for {record.name} failed, so {missing} ({record.error})"
    others = len(processes) - 1
    if others > 0:
        yield f"forked processes compiled too, and are counted in: {others}"
