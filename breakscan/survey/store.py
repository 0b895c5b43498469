"""The results of surveys, in an SQLite file: written as they come, found again by what they depend on."""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from breakscan.survey.plan import PlannedUnit
from breakscan.survey.stage_results import StageResult
from breakscan.survey.units import Environment, Unit

VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS environments (
    id TEXT PRIMARY KEY, python TEXT NOT NULL, torch TEXT, packages TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS units (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, environment TEXT NOT NULL, unit TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS results (
    key TEXT NOT NULL, stage TEXT NOT NULL, status TEXT NOT NULL, seconds REAL NOT NULL, peak INTEGER,
    facts TEXT NOT NULL, report BLOB, said TEXT NOT NULL, host TEXT NOT NULL, finished REAL NOT NULL,
    PRIMARY KEY (key, stage));
CREATE TABLE IF NOT EXISTS surveys (
    id INTEGER PRIMARY KEY, began REAL NOT NULL, ended REAL, stages TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS survey_units (
    survey INTEGER NOT NULL, key TEXT NOT NULL, PRIMARY KEY (survey, key));
"""


class StoreError(Exception):
    """A store cannot be used.  Names the file, and says why and what to do."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A unit of a survey with its results, by stage."""

    unit: Unit
    environment: Environment
    results: Mapping[str, StageResult]


class Store:
    """A store; the file is made where there is none, unless ``must_exist``.  Raises StoreError."""

    def __init__(self, path: Path, *, must_exist: bool = False) -> None:
        self.path = path
        if must_exist and not path.is_file():
            raise StoreError(f"there is no {path}: breakscan survey run makes it")
        try:
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            empty = not self._db.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{path} is no store of a survey: {error}. Name another file") from error
        if version > VERSION:
            raise StoreError(f"{path} was written by a newer breakscan: update breakscan")
        if version != VERSION and not empty:
            raise StoreError(f"{path} is no store of a survey: name another file")
        # A reader sees whole results while a survey writes; one that was killed leaves whole results.
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version={VERSION}; COMMIT;")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._db.close()

    def begin(self, units: Iterable[PlannedUnit], stages: Iterable[str]) -> int:
        """Notes that a survey of these units begins; returns its number."""
        with closing(self._db.cursor()) as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("INSERT INTO surveys (began, stages) VALUES (?, ?)", (time.time(), json.dumps(list(stages))))
            number = int(cursor.lastrowid or 0)
            for one in units:
                environment = one.environment
                packages = json.dumps(environment.packages, sort_keys=True)
                cursor.execute(
                    "INSERT OR IGNORE INTO environments VALUES (?, ?, ?, ?)",
                    (environment.id, environment.python, environment.torch, packages),
                )
                unit = json.dumps(asdict(one.unit))
                cursor.execute(
                    "INSERT OR IGNORE INTO units VALUES (?, ?, ?, ?)", (one.key, one.unit.name, environment.id, unit)
                )
                cursor.execute("INSERT INTO survey_units VALUES (?, ?)", (number, one.key))
            cursor.execute("COMMIT")
        return number

    def end(self, number: int) -> None:
        """Notes that a survey has all its results."""
        self._db.execute("UPDATE surveys SET ended = ? WHERE id = ?", (time.time(), number))

    def done(self, keys: Iterable[str], again: Iterable[str] = ()) -> dict[str, dict[str, StageResult]]:
        """The results that there are, by key and stage, but for those with a status of ``again``."""
        wanted, unwanted = set(keys), set(again)
        found: dict[str, dict[str, StageResult]] = {}
        for key, stage, status, seconds, peak, facts, said, host in self._db.execute(
            "SELECT key, stage, status, seconds, peak, facts, said, host FROM results"
        ):
            if key in wanted and status not in unwanted:
                result = StageResult(stage, status, seconds, peak, json.loads(facts), None, said, host)
                found.setdefault(key, {})[stage] = result
        return found

    def put(self, key: str, result: StageResult) -> None:
        """Keeps a result; one of the same unit and stage is replaced."""
        report = None if result.report is None else zlib.compress(result.report.encode())
        row = (key, result.stage, result.status, result.seconds, result.peak, json.dumps(result.facts))
        self._db.execute(
            "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, report, result.said, result.host, time.time()),
        )

    def report(self, key: str, stage: str) -> str | None:
        """The whole JSON of a command; None where it wrote none."""
        row = self._db.execute("SELECT report FROM results WHERE key = ? AND stage = ?", (key, stage)).fetchone()
        return None if row is None or row[0] is None else zlib.decompress(row[0]).decode()

    def latest(self) -> int:
        """The number of the last survey.  Raises StoreError where there is none."""
        row = self._db.execute("SELECT max(id) FROM surveys").fetchone()
        if row[0] is None:
            raise StoreError(f"{self.path} holds no survey: breakscan survey run makes one")
        return int(row[0])

    def surveyed(self, number: int) -> Iterator[Surveyed]:
        """The units of a survey with their results so far, by name and conditions."""
        rows = self._db.execute(
            "SELECT u.key, u.unit, e.python, e.packages FROM survey_units s JOIN units u ON u.key = s.key "
            "JOIN environments e ON e.id = u.environment WHERE s.survey = ?",
            (number,),
        ).fetchall()
        results = self.done(row[0] for row in rows)
        found = []
        for key, unit, python, packages in rows:
            data = json.loads(unit)
            data["command"] = tuple(data["command"])
            environment = Environment(python, "", json.loads(packages))
            found.append(Surveyed(Unit(**data), environment, results.get(key, {})))
        yield from sorted(found, key=lambda one: (one.unit.name, one.unit.conditions, one.environment.torch or ""))

    def merge(self, other: Store) -> int:
        """Takes the surveys of another store, and the results that are not here; returns how many results came."""
        before = self._count()
        self._db.execute("ATTACH ? AS other", (str(other.path),))
        self._db.execute("BEGIN IMMEDIATE")
        for table in ("environments", "units", "results"):
            self._db.execute(f"INSERT OR IGNORE INTO {table} SELECT * FROM other.{table}")
        moved = int(self._db.execute("SELECT coalesce(max(id), 0) FROM surveys").fetchone()[0])
        self._db.execute("INSERT INTO surveys SELECT id + ?, began, ended, stages FROM other.surveys", (moved,))
        self._db.execute("INSERT INTO survey_units SELECT survey + ?, key FROM other.survey_units", (moved,))
        self._db.execute("COMMIT")
        self._db.execute("DETACH other")
        return self._count() - before

    def _count(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM results").fetchone()[0])
