"""The rank that reports waits for the other ranks of its machine."""

from __future__ import annotations

import time
from collections.abc import Callable

from breakscan.record.job import is_running
from breakscan.record.session import Session, SessionError, rank_folder, read_manifest

MOST_SECONDS = 30.0
_SECONDS_IN_SILENCE = 2.0
_SECONDS_WHEN_ASKED_TO_END = 3.0
"""torchrun asks all ranks at once to end, and gives them half a minute."""
_PAUSE = 0.05


def wait_for_ranks(session: Session, say: Callable[[list[int]], None], asked_to_end: Callable[[], bool]) -> None:
    """Waits until the other ranks of this machine have ended, at most ``MOST_SECONDS``.

    ``say`` is called once with what it waits for, if that takes more than a moment.
    """
    started = time.monotonic()
    deadline = started + MOST_SECONDS
    hurried = said = False
    while (running := unfinished_ranks(session)) and (now := time.monotonic()) < deadline:
        if not said and now > started + _SECONDS_IN_SILENCE:
            say(running)
            said = True
        if not hurried and asked_to_end():
            deadline = min(deadline, now + _SECONDS_WHEN_ASKED_TO_END)
            hurried = True
        time.sleep(_PAUSE)


def unfinished_ranks(session: Session) -> list[int]:
    """The other ranks of this machine that have not ended, or not begun."""
    own = session.rank
    return [] if own is None else [r for r in own.local_ranks if r != own.rank and not _has_ended(session, r)]


def _has_ended(session: Session, rank: int) -> bool:
    try:
        manifest = read_manifest(rank_folder(session.root, rank))
    except SessionError:
        return False
    return manifest.ended is not None or not is_running(manifest.pid)
