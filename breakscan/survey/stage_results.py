"""What a stage of a survey gave for one unit."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class StageStatus(str, Enum):
    """How a stage ended: ``failed`` says that the program did, ``fault`` that breakscan did."""

    OK = "ok"
    FAILED = "failed"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    MISSING = "missing"
    SKIPPED = "skipped"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class StageResult:
    """``seconds`` of wall time, the most memory in bytes (None where it is not known), the ``facts`` that reports of
    surveys need, the whole JSON ``report`` of the command (packed where it is made, so that it stays small on its way),
    and the last that it said where it did not succeed."""

    stage: str
    status: str
    seconds: float
    peak: int | None
    facts: dict[str, Any] = field(default_factory=dict)
    report: bytes | None = None
    said: str = ""
    host: str = ""


def packed(report: str) -> bytes:
    """A report as a result holds it."""
    return zlib.compress(report.encode())


def unpacked(report: bytes) -> str:
    """The text of a report.  Raises ValueError where it is damaged."""
    try:
        return zlib.decompress(report).decode()
    except zlib.error as error:
        raise ValueError(str(error)) from error
