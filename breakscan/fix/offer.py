"""What ``fix`` has for a finding."""

from __future__ import annotations

from enum import IntEnum


class Offer(IntEnum):
    """The kinds of edits, by what ``fix`` is asked for to show them; the least is the best."""

    SAFE = 0
    UNSAFE = 1
    SOFTENING = 2
