"""The tables of a store, and how a store of the first version gets them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from breakscan.survey.units import digest

VERSION = 2
_TABLES = (
    "CREATE TABLE environments (id TEXT PRIMARY KEY, python TEXT NOT NULL, torch TEXT, packages TEXT NOT NULL)",
    "CREATE TABLE units (key TEXT PRIMARY KEY, name TEXT NOT NULL, environment TEXT NOT NULL, unit TEXT NOT NULL)",
    # Without the reports, which are long: whoever reads all results does not read them.
    "CREATE TABLE results (key TEXT NOT NULL, stage TEXT NOT NULL, status TEXT NOT NULL, seconds REAL NOT NULL, "
    "peak INTEGER, facts TEXT NOT NULL, said TEXT NOT NULL, host TEXT NOT NULL, finished REAL NOT NULL, "
    "digest TEXT NOT NULL, PRIMARY KEY (key, stage))",
    "CREATE TABLE reports (key TEXT NOT NULL, stage TEXT NOT NULL, report BLOB NOT NULL, PRIMARY KEY (key, stage))",
    "CREATE TABLE surveys "
    "(id INTEGER PRIMARY KEY, began REAL NOT NULL, ended REAL, stages TEXT NOT NULL, units INTEGER NOT NULL)",
    "CREATE TABLE survey_units (survey INTEGER NOT NULL, key TEXT NOT NULL, PRIMARY KEY (survey, key)) WITHOUT ROWID",
)


def make_tables(db: sqlite3.Connection) -> None:
    """Makes the tables, in a transaction that is open."""
    for table in _TABLES:
        db.execute(table)
    db.execute(f"PRAGMA user_version={VERSION}")


def result_digest(key: str, stage: str, status: str, seconds: float, peak: int | None, *texts: str) -> str:
    """A digest of a result (``texts``: facts, said, host): a byte that is not as it was written shows."""
    return digest([key, stage, status, seconds, peak, *texts])


def upgrade(db: sqlite3.Connection) -> None:
    """Gives a store of version 1 the tables of now, with its results, in a transaction that is open.

    Its keys held the path of the folder that commands ran in: it is taken for that of the manifest, as it was if the
    manifest names none.  Of units that differ by this path alone, the result that came last stays.
    """
    old = ("environments", "units", "results", "surveys", "survey_units")
    for name in old:
        db.execute(f"ALTER TABLE {name} RENAME TO {name}_1")
    make_tables(db)
    db.execute("INSERT INTO environments SELECT id, python, torch, packages FROM environments_1")
    keys = {}
    for key, name, environment, text in db.execute("SELECT key, name, environment, unit FROM units_1").fetchall():
        unit = {**json.loads(text), "folder": "."}
        keys[key] = digest([unit, environment])
        db.execute("INSERT OR IGNORE INTO units VALUES (?, ?, ?, ?)", (keys[key], name, environment, json.dumps(unit)))
    db.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _results(db, keys))
    reports = "SELECT key, stage, report FROM results_1 WHERE report IS NOT NULL ORDER BY finished"
    rows = ((keys[key], stage, report) for key, stage, report in db.execute(reports))
    db.executemany("INSERT OR REPLACE INTO reports VALUES (?, ?, ?)", rows)
    pairs = ((survey, keys[key]) for survey, key in db.execute("SELECT survey, key FROM survey_units_1"))
    db.executemany("INSERT OR IGNORE INTO survey_units VALUES (?, ?)", pairs)
    db.execute(
        "INSERT INTO surveys SELECT id, began, ended, stages, "
        "(SELECT count(*) FROM survey_units WHERE survey = id) FROM surveys_1"
    )
    for name in old:
        db.execute(f"DROP TABLE {name}_1")


def _results(db: sqlite3.Connection, keys: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    columns = "key, stage, status, seconds, peak, facts, said, host, finished"
    for key, stage, status, seconds, peak, facts, said, host, finished in db.execute(
        f"SELECT {columns} FROM results_1 ORDER BY finished"
    ):
        row = (keys[key], stage, status, seconds, peak, facts, said, host)
        yield *row, finished, result_digest(*row)
