"""Reads a log of torch's structured trace record by record, however long it is.

A record is a line such as ``V0401 12:34:56.789000 4711 torch/_dynamo/utils.py:1] {"dynamo_start": …}``, followed
by its payload, each line of it indented by a tab; ``has_payload`` is the payload's MD5.
"""

from __future__ import annotations

import hashlib
import json
import re
from calendar import timegm
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from time import gmtime, struct_time
from typing import Any, BinaryIO

CHUNK = 1 << 20
LARGEST = 1 << 27
"""Bytes of a record that are kept; what follows them is ignored."""

_HEAD = re.compile(
    rb"(?:\[rank\d+\]:)?[VIWEC](?P<month>\d\d)(?P<day>\d\d) "
    rb"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d(?:\.\d+)?) +(?P<pid>\d+) \S.*?:\d+\] (?P<json>\{.*)"
)
_MOST_HEADS = 20
"""Lines that may stand before the first record of a log."""


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
    """The faults of a log, or of lines of it."""

    DAMAGED = "damaged"
    """The line is no record, or not as it was written."""
    CUT_OFF = "cut-off"
    """The log ends in a record."""
    NO_RECORD = "no-record"
    """There is no record in all of the log."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A line of a log at which something is wrong."""

    line: int
    fault: Fault


def read_log(path: Path) -> Iterator[LogRecord | Damage]:
    """The records of a log, and what is damaged in it.

    A record whose payload is not what was written follows the note of that.  Raises OSError where the file
    cannot be read.
    """
    with path.open("rb") as file:
        changed = gmtime(path.stat().st_mtime)
        blocks = _blocks(file)
        line = 1
        block = next(blocks, None)
        while block is not None:
            following = next(blocks, None)
            yield from _read_block(block, line, changed, is_last=following is None)
            line += block.lines
            block = following


def is_log(path: Path) -> bool:
    """Return whether a file begins as a log does."""
    try:
        with path.open("rb") as file:
            start = file.read(CHUNK)
    except OSError:
        return False
    heads = [line for line in start.splitlines() if not line.startswith(b"\t")]
    return any(_HEAD.match(line) for line in heads[:_MOST_HEADS])


@dataclass(slots=True)
class _Block:
    """A line that does not begin with a tab, and those after it that do."""

    text: bytes
    lines: int


def _blocks(stream: BinaryIO) -> Iterator[_Block]:
    held: list[bytes] = []
    size = lines = 0
    begins = True
    while piece := stream.readline(CHUNK):
        if begins and size and not piece.startswith(b"\t"):
            yield _Block(b"".join(held), lines)
            held, size, lines = [], 0, 0
        begins = piece.endswith(b"\n")
        lines += begins
        if size < LARGEST:
            held.append(piece)
        size += len(piece)
    if size:
        yield _Block(b"".join(held), lines)


def _read_block(block: _Block, line: int, changed: struct_time, *, is_last: bool) -> Iterator[LogRecord | Damage]:
    head, _, rest = block.text.partition(b"\n")
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
    payload = _payload(rest, windows=head.endswith(b"\r")) if "has_payload" in metadata else None
    if payload is not None and hashlib.md5(payload, usedforsecurity=False).hexdigest() != metadata["has_payload"]:
        yield Damage(line, Fault.CUT_OFF if is_last else Fault.DAMAGED)
    yield LogRecord(
        line, int(found["pid"]), at, metadata, None if payload is None else payload.decode(errors="replace")
    )


def _payload(text: bytes, *, windows: bool) -> bytes:
    if windows:
        text = text.replace(b"\r\n", b"\n")
    return text.removesuffix(b"\n").removeprefix(b"\t").replace(b"\n\t", b"\n")


def _seconds(found: re.Match[bytes], changed: struct_time) -> float:
    """A log has no year: that of its last change, or the one before."""
    month = int(found["month"])
    year = changed.tm_year - (month > changed.tm_mon)
    date = (year, month, int(found["day"]), int(found["hour"]), int(found["minute"]), 0)
    return timegm(date) + float(found["second"])
