"""Why a function is not compiled, as values: ``reports/explain/reason_words.py`` words them."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.record.parsers.frames import Limit, Skip


@dataclass(frozen=True, slots=True)
class Quoted:
    """What torch or an exception says; empty where nothing is said."""

    text: str


@dataclass(frozen=True, slots=True)
class OverLimit:
    """It was recompiled too often.  ``limit`` is None where torch does not name it."""

    limit: Limit | None
    raises: bool = False


@dataclass(frozen=True, slots=True)
class RaisedInTrace:
    """What code raised that Dynamo ran while it traced, and the line of that code."""

    path: str
    line: int
    error: str


Reason = Quoted | Skip | OverLimit | RaisedInTrace
