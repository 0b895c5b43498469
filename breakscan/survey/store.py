"""The results of surveys, in an SQLite file: written as they come, found by what they depend on."""

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import shorten
from types import TracebackType

from breakscan.model.words import InputError
from breakscan.survey.manifest import Environment, PlannedUnit, StageResult, Unit

VERSION = 3
_TABLES = (
    "CREATE TABLE environments (id TEXT PRIMARY KEY, python TEXT NOT NULL, torch TEXT, packages TEXT NOT NULL)",
    "CREATE TABLE units (key TEXT PRIMARY KEY, name TEXT NOT NULL, environment TEXT NOT NULL, unit TEXT NOT NULL)",
    "CREATE TABLE results (key TEXT NOT NULL, stage TEXT NOT NULL, status TEXT NOT NULL, seconds REAL NOT NULL, "
    "peak INTEGER, facts TEXT NOT NULL, said TEXT NOT NULL, host TEXT NOT NULL, finished REAL NOT NULL, "
    "PRIMARY KEY (key, stage))",
    "CREATE TABLE surveys (id INTEGER PRIMARY KEY, began REAL NOT NULL, ended REAL, stages TEXT NOT NULL)",
    "CREATE TABLE survey_units (survey INTEGER NOT NULL, key TEXT NOT NULL, PRIMARY KEY (survey, key)) WITHOUT ROWID",
)
_PATIENCE = 60.0  # seconds to wait while another command writes


class StoreError(InputError):
    """A store cannot be used, with the file, the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    unit: Unit
    environment: Environment
    results: Mapping[str, StageResult]


class Store:
    """A store; the file is made where there is none.  With ``must_exist`` it is only read.  All methods raise
    StoreError, also for a store of another version."""

    def __init__(self, path: Path, *, must_exist: bool = False) -> None:
        self.path = path
        if must_exist and not path.is_file():
            raise StoreError(f"there is no {path}: breakscan survey run makes it")
        with store_faults(self.path):
            uri = f"{path.absolute().as_uri()}?mode={'rw' if must_exist else 'rwc'}"
            self._db = sqlite3.connect(uri, timeout=_PATIENCE, isolation_level=None, uri=True)
            try:
                self._prepare(must_exist)
            except BaseException:
                self._db.close()
                raise

    def _prepare(self, must_exist: bool) -> None:
        version = self._version()
        if version > VERSION:
            raise StoreError(f"{self.path} was written by a newer breakscan: update breakscan")
        if version == 0 and self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise StoreError(f"{self.path} is no store of a survey: name another file")
        if 0 < version < VERSION:
            raise StoreError(f"{self.path} was written by an earlier development version: name another file")
        if must_exist:
            if version == 0:
                raise _no_survey(self.path)
            self._db.execute("PRAGMA query_only=1")
            return
        # A reader sees whole results while a survey writes; one that was killed leaves whole results.
        self._db.execute("PRAGMA journal_mode=WAL")
        # Of a machine that loses its power, the last results may have to run again.
        self._db.execute("PRAGMA synchronous=NORMAL")
        if version == 0:
            with self._transaction():
                if self._version() == 0:  # another command may have made it meanwhile
                    for table in _TABLES:
                        self._db.execute(table)
                    self._db.execute(f"PRAGMA user_version={VERSION}")

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._db.close()

    def begin(self, units: Iterable[PlannedUnit], stages: Iterable[str]) -> int:
        """Notes that a survey of these units begins; returns its number."""
        environments: dict[str, Environment] = {}
        with self._transaction():
            row = (time.time(), json.dumps(list(stages)))
            cursor = self._db.execute("INSERT INTO surveys (began, stages) VALUES (?, ?)", row)
            number = int(cursor.lastrowid or 0)
            for one in units:
                environments[one.environment.id] = one.environment
                # A file can have a name that is no text.
                name = one.unit.name.encode(errors="backslashreplace").decode()
                unit = (one.key, name, one.environment.id, json.dumps(asdict(one.unit)))
                self._db.execute("INSERT OR IGNORE INTO units VALUES (?, ?, ?, ?)", unit)
                self._db.execute("INSERT OR IGNORE INTO survey_units VALUES (?, ?)", (number, one.key))
            for id_, environment in environments.items():
                packages = json.dumps(environment.packages, sort_keys=True)
                values = (id_, environment.python, environment.torch, packages)
                self._db.execute("INSERT OR IGNORE INTO environments VALUES (?, ?, ?, ?)", values)
        return number

    def end(self, number: int) -> None:
        with store_faults(self.path):
            self._db.execute("UPDATE surveys SET ended = ? WHERE id = ?", (time.time(), number))

    def endings(self, number: int) -> dict[str, dict[str, StageResult]]:
        """Return the results of a survey, by key and stage, without their facts."""
        found: dict[str, dict[str, StageResult]] = {}
        with store_faults(self.path):
            for key, *ended in self._db.execute(
                "SELECT r.key, stage, status, seconds, peak FROM survey_units s JOIN results r ON r.key = s.key "
                "WHERE s.survey = ?",
                (number,),
            ):
                found.setdefault(key, {})[ended[0]] = StageResult(*ended)
        return found

    def results(self, key: str) -> dict[str, StageResult]:
        query = "SELECT stage, status, seconds, peak, facts, said, host FROM results WHERE key = ?"
        with store_faults(self.path):
            rows = self._db.execute(query, (key,)).fetchall()
            return {
                stage: StageResult(stage, status, seconds, peak, json.loads(facts), said, host)
                for stage, status, seconds, peak, facts, said, host in rows
            }

    def put(self, key: str, result: StageResult) -> None:
        """Keeps a result; one of the same unit and stage is replaced."""
        ended = (key, result.stage, result.status, float(result.seconds), result.peak)
        row = (*ended, json.dumps(result.facts), result.said, result.host, time.time())
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def latest(self) -> int:
        with store_faults(self.path):
            row = self._db.execute("SELECT max(id) FROM surveys").fetchone()
        if row[0] is None:
            raise _no_survey(self.path)
        return int(row[0])

    def surveyed(self, number: int) -> Iterator[Surveyed]:
        """The units of a survey with their results so far, by name and conditions.  One after the other is read."""
        units = sorted(self._units(number), key=lambda one: (one[1].name, one[1].conditions, one[2].torch or ""))
        for key, unit, runs_in in units:
            yield Surveyed(unit, runs_in, self.results(key))

    def _units(self, number: int) -> Iterator[tuple[str, Unit, Environment]]:
        query = (
            "SELECT s.key, u.unit, e.python, e.packages FROM survey_units s JOIN units u ON u.key = s.key "
            "JOIN environments e ON e.id = u.environment WHERE s.survey = ?"
        )
        with store_faults(self.path):
            for key, unit, python, packages in self._db.execute(query, (number,)).fetchall():
                data = json.loads(unit)
                read = Unit(**{**data, "command": tuple(data["command"])})
                yield key, read, Environment(python, "", json.loads(packages))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with store_faults(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise


@contextmanager
def store_faults(place: object) -> Iterator[None]:
    """Names the store in the errors of whoever reads it: one that is damaged can hold anything."""
    try:
        yield
    except (sqlite3.Error, ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        problem = f"{type(error).__name__}: {error}" if isinstance(error, LookupError | AttributeError) else str(error)
        raise StoreError(f"{place} cannot be used as the store of a survey: {shorten(problem, 200)}") from error


def _no_survey(path: Path) -> StoreError:
    return StoreError(f"{path} holds no survey: breakscan survey run makes one")
