"""Makes the compile ids of a recording unique.

Dynamo counts from 0/0 again after ``torch._dynamo.reset()``, and every process counts for itself: ``r1:0/0``
is the first compile after one reset, ``p1:0/0`` that of the first forked process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from breakscan.record.records import CompileStarted, Record


def with_unique_ids(records: Iterable[Record], process: int) -> Iterator[Record]:
    """The records of a process, each with its compile id made unique."""
    seen: set[str] = set()
    resets = 0
    for record in records:
        if isinstance(record, CompileStarted):
            if record.compile_id in seen:
                seen, resets = set(), resets + 1
            seen.add(record.compile_id)
        prefix = f"{f'p{process}:' if process else ''}{f'r{resets}:' if resets else ''}"
        yield _prefixed(record, prefix)


def _prefixed(record: Record, prefix: str) -> Record:
    has_id = any(field.name == "compile_id" for field in fields(record))
    compile_id = getattr(record, "compile_id", None)
    if not prefix or not has_id or compile_id is None:
        return record
    changed: Any = {"compile_id": prefix + compile_id}
    return replace(record, **changed)
