"""The recordings of the last runs: kept for a while, so that a run can be reported again in another way."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from platformdirs import user_cache_path

from breakscan.recording.session import SessionError

VARIABLE = "BREAKSCAN_RUNS"
"""The name of an environment variable."""
MOST_RUNS = 10
MOST_BYTES = 200_000_000
"""The most bytes of all recordings that are kept."""
MOST_DAYS = 7


def recent_folder() -> Path | None:
    """The folder of the recordings that are kept, each in a folder of its own: :data:`VARIABLE` names it, and
    switches this off where it is empty.  Nobody else may read it: recordings hold source text."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named).absolute() if named else None
    return user_cache_path("breakscan", appauthor=False) / "runs"


def can_keep() -> bool:
    """Return whether a recording can be kept here."""
    folder = recent_folder()
    if folder is None:
        return False
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.access(folder, os.W_OK | os.X_OK)


def keep_recent(recording: Path) -> None:
    """Moves a recording to those that are kept, and deletes the oldest.  Where that is impossible, or the recording is
    too large, it is deleted."""
    try:
        folder = recent_folder()
        if folder is not None and can_keep() and _size(recording) <= MOST_BYTES:
            # By name, the newest is the last.
            shutil.move(recording, folder / f"{time.time_ns():020}-{os.getpid()}")
            _delete_oldest()
    except OSError:
        # A full disk: what was reported is more important than what may be asked for again.
        pass
    finally:
        shutil.rmtree(recording, ignore_errors=True)


def last_run() -> Path:
    """The folder of the newest recording.  Raises SessionError where there is none."""
    runs = _newest_first()
    if not runs:
        raise SessionError(
            f"no recording is kept: breakscan explain leaves one for {MOST_DAYS} days, unless {VARIABLE} is empty"
        )
    return runs[0]


def _newest_first() -> list[Path]:
    folder = recent_folder()
    if folder is None or not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if path.is_dir()), reverse=True)


def _delete_oldest() -> None:
    room = MOST_BYTES
    oldest = time.time() - MOST_DAYS * 86_400
    for number, run in enumerate(_newest_first()):
        room -= _size(run)
        if number >= MOST_RUNS or room < 0 or run.stat().st_mtime < oldest:
            shutil.rmtree(run, ignore_errors=True)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
