"""Opens the file of a store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_PATIENCE = 60.0
"""Seconds to wait while another command writes."""


def opened_to_write(path: Path) -> sqlite3.Connection:
    """The database in a file, which is made where there is none."""
    return _connection(path, "mode=rwc")


def opened_to_read(path: Path) -> sqlite3.Connection:
    """The database in a file that exists, also where neither it nor its folder can be written."""
    try:
        db = _connection(path, "mode=rw")
        try:
            db.execute("SELECT 1 FROM sqlite_master").fetchone()
        except BaseException:
            db.close()
            raise
        return db
    except sqlite3.OperationalError:
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise  # what is in the log cannot be read without writing beside it
    return _connection(path, "mode=ro&immutable=1")


def _connection(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", timeout=_PATIENCE, isolation_level=None, uri=True)
