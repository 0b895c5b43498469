"""Why a store cannot be used, for people."""

from __future__ import annotations

from pathlib import Path


class StoreError(Exception):
    """A store cannot be used.  Names the file, and says why and what to do."""


_ADVICE = (
    ("unable to open", "cannot be opened", "is its folder there, and may you write to it?"),
    ("readonly", "cannot be written", "name another place with --store, or make the file and its folder writable"),
    ("full", "cannot be written", "free some space: the same command goes on from there"),
    (
        "disk i/o",
        "cannot be read or written",
        "is the disk full or gone? With space, the same command goes on from there",
    ),
    ("locked", "is used by another command", "wait until that has ended"),
    ("not a database", "is no store of a survey", "name another file"),
)
"""What SQLite says, what that means for a store, and what helps."""


def store_error(path: Path, error: Exception) -> StoreError:
    """What SQLite raised, in words; whatever is not known says that the file is damaged."""
    said = str(error)
    for words, meaning, advice in _ADVICE:
        if words in said.lower():
            return StoreError(f"{path} {meaning} ({said}): {advice}")
    return damaged(path, said)


def damaged(path: Path, reason: str) -> StoreError:
    """Something in a file is not as it was written."""
    return StoreError(
        f"{path} is damaged ({reason}): take a copy of it that is whole, or move it away and run the survey again"
    )
