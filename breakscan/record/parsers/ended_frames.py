"""Reads what Dynamo says of a frame that it does not compile: the text of an exception, or the reason of a skip
(the supported versions of torch)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from breakscan.record.parsers.tracebacks import frames_of
from breakscan.record.records.source import StackFrame

_LIMIT = re.compile(r"exceeding the (\w+) cache size limit \(currently set to (\d+)\)")
_LIMIT_EXCEEDED = "recompile limit exceeded"
_GENERATOR = "Attempt to trace generator"
_FROM_USER = re.compile(r"^(?:from user code|Found from|Original traceback) ?: *$", re.M)
"""Dynamo, Inductor and the interpreter of FX each have their own words for it."""


class Skip(Enum):
    """Why Dynamo skips a frame without an exception: a part of its reason."""

    NO_TENSOR = "no tensor-related objects"
    NO_OPERATION = "No ops traced"
    FILE = "skipfiles"
    DISPATCH_MODE = "dispatch mode"
    SWITCHED_OFF = "tracing is disabled"


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of recompiles that was reached: the name of its setting, and its value."""

    setting: str
    value: int


def skip_of(reason: str) -> Skip | None:
    """The kind of a skip; None for one that is not known, and where torch gives no reason, as 2.11."""
    return next((skip for skip in Skip if skip.value in reason), None)


def limit_of(text: str) -> Limit | None:
    """The limit that the text names."""
    found = _LIMIT.search(text)
    return Limit(found[1], int(found[2])) if found else None


def exceeds_limit(text: str) -> bool:
    """Whether the text says that a frame was compiled too often."""
    return _LIMIT_EXCEEDED in text


def is_generator(text: str) -> bool:
    """Whether the text says that the frame is a generator's, which Dynamo does not compile."""
    return text.startswith(_GENERATOR)


def user_part(text: str) -> str:
    """The part of Dynamo's text that shows the user's code; empty where there is none."""
    return _FROM_USER.split(text)[-1] if _FROM_USER.search(text) else ""


def user_frames(text: str) -> list[StackFrame]:
    """The frames of the user's code, outermost first."""
    return frames_of(user_part(text))
