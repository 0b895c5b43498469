"""Looks for stores of surveys that crash or mislead ``breakscan survey``.

    python benchmarks/robustness_stores.py STORE [--mutants N] [--seed N]

Each mutant is the file of STORE with bytes flipped, cut off at any place, pages zeroed, repeated or replaced by
garbage, a table dropped, or cells changed.  Each goes through all doors, in this process: report, diff, merge (as
source and as target), and a run that asks for all of its units again.

A fault is: anything raised but a StoreError, a StoreError that does not name the file, or a report that is not that of
STORE without an error.  Reports of which a result is missing are counted apart: the next run does it again.  The exit
status is 1 if a fault was found.
"""

from __future__ import annotations

import argparse
import io
import random
import shutil
import sqlite3
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from breakscan.report.formats import SURVEY
from breakscan.survey.comparison import compared
from breakscan.survey.engine import Arriving
from breakscan.survey.keyed_tasks import KeyedTask
from breakscan.survey.manifest import SurveyManifest
from breakscan.survey.overview import overview
from breakscan.survey.plan import PlannedUnit
from breakscan.survey.stage_results import StageResult
from breakscan.survey.store import Store
from breakscan.survey.store_errors import StoreError
from breakscan.survey.survey import run_survey

TABLES = ("environments", "units", "results", "reports", "surveys", "survey_units")


def mutant(content: bytes, page: int, choose: random.Random, path: Path) -> str:
    """Writes a changed store to a path, and says what was done."""
    data = bytearray(content)
    pages = len(data) // page
    change = choose.choice(["flip", "flip", "flip", "cut", "zero", "garbage", "repeat", "header", "drop", "cell"])
    at = choose.randrange(pages) * page
    if change == "flip":
        for _ in range(choose.choice([1, 1, 8, 64])):
            data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
    elif change == "header":
        data[choose.randrange(100)] = choose.randrange(256)
    elif change == "cut":
        del data[choose.randrange(1, len(data)) :]
    elif change == "zero":
        data[at : at + page] = bytes(page)
    elif change == "garbage":
        data[at : at + page] = choose.randbytes(page)
    elif change == "repeat":
        other = choose.randrange(pages) * page
        data[at : at + page] = data[other : other + page]
    path.write_bytes(data)
    if change in ("drop", "cell"):
        table = choose.choice(TABLES)
        with sqlite3.connect(path) as db:
            if change == "drop":
                db.execute(f"DROP TABLE {table}")
            else:
                columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
                value = choose.choice(["[]", "{}", "", b"\xff", 3, -1, 1e300, '{"breaks": 1}'])
                row = db.execute(
                    f"SELECT max(rowid) FROM {table}" if table != "survey_units" else "SELECT 1"
                ).fetchone()
                where = "" if table == "survey_units" else f" WHERE rowid = {row[0]}"
                column = choose.choice(columns)
                change = f"cell {table}.{column}"
                try:
                    db.execute(f"UPDATE OR REPLACE {table} SET {column} = ?{where}", (value,))
                except sqlite3.Error:
                    change = "nothing"
        db.close()
    return change


class Answers:
    """An engine that answers at once."""

    def run(self, tasks: Sequence[KeyedTask], *, alone: bool) -> Arriving:
        for one in tasks:
            for stage in one.task.stages:
                yield one.key, StageResult(stage.value, "failed", 1.0, None)

    def close(self) -> None:
        pass


def report(path: Path) -> str:
    """The report of a store."""
    with Store(path, must_exist=True) as store:
        stream = io.StringIO()
        SURVEY.write("json", overview(store.surveyed(store.latest())), stream)
    return stream.getvalue()


def merged(target: Path, source: Path) -> str:
    """Nothing: what came is not compared."""
    with Store(target) as into, Store(source, must_exist=True) as other:
        into.merge(other)
    return ""


def ran(path: Path, units: Sequence[PlannedUnit], manifest: SurveyManifest) -> str:
    """Nothing: a survey went on in the store."""
    with Store(path) as store:
        number = run_survey(manifest, units, store, Answers(), again=["failed"])
        overview(store.surveyed(number))
    return ""


def difference(path: Path, whole: Path) -> str:
    """What has changed in a mutant."""
    with Store(whole, must_exist=True) as before, Store(path, must_exist=True) as after:
        found = compared(before.surveyed(before.latest()), after.surveyed(after.latest()))
    return f"{len(found.changes)} {len(found.only_before)} {len(found.only_after)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        whole = Path(made, "whole.db")
        shutil.copy(options.store, whole)
        with Store(whole) as store:  # brings it up to date, and its log into the file
            surveyed = list(store.surveyed(store.latest()))
        with sqlite3.connect(whole) as db:
            page = int(db.execute("PRAGMA page_size").fetchone()[0])
        db.close()
        content = whole.read_bytes()
        units = [PlannedUnit(one.unit, one.environment) for one in surveyed]
        manifest = SurveyManifest(Path(made), (), ())
        expected = report(whole)
        outcomes: Counter[str] = Counter()
        faults = 0
        for number in range(options.mutants):
            choose = random.Random(f"{options.seed} {number}")
            path = Path(made, "mutant.db")
            change = mutant(content, page, choose, path)
            fresh = Path(made, "target.db")
            doors: dict[str, Callable[[], str]] = {
                "report": partial(report, path),
                "diff": partial(difference, path, whole),
                "merge from": partial(merged, fresh, path),
                "run": partial(ran, path, units, manifest),
                "merge into": partial(merged, path, whole),
            }
            for door, enter in doors.items():
                try:
                    told = enter()
                    outcome = "as before" if door != "report" or told == expected else _less(told, expected)
                except StoreError as error:
                    outcome = "error" if path.name in str(error) else f"error without the name: {error}"
                except Exception:
                    outcome = traceback.format_exc()
                if outcome not in ("as before", "error", "a result is missing"):
                    faults += 1
                    print(f"mutant {number} ({change}), {door}: {outcome}", flush=True)
                    outcome = "fault"
                outcomes[f"{door}: {outcome}"] += 1
            for left in (*path.parent.glob("mutant.db*"), *path.parent.glob("target.db*")):
                left.unlink()
    for name, count in sorted(outcomes.items()):
        print(f"{count:6} {name}")
    sys.exit(1 if faults else 0)


def _less(told: str, expected: str) -> str:
    waiting = told.count('"status": "waiting"') + told.count('"status":"waiting"')
    return "a result is missing" if waiting else f"another report: {len(told)} for {len(expected)}"


if __name__ == "__main__":
    main()
