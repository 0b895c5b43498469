"""The store of surveys."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from breakscan.survey.plan import PlannedUnit
from breakscan.survey.stage_results import StageResult, packed
from breakscan.survey.store import Store
from breakscan.survey.store_errors import StoreError
from breakscan.survey.units import Environment, Unit

ENVIRONMENT = Environment("3.11.7", "/bin/python", {"torch": "2.13.0"})
ONE, TWO = (PlannedUnit(Unit(name, command=("a.py", name)), ENVIRONMENT) for name in ("one", "two"))
REPORT = '{"a": "\u00fc"}'
RESULT = StageResult("explain", "ok", 1.5, 1000, {"breaks": []}, packed(REPORT), "", "host")


def test_results_come_back(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        number = store.begin([TWO, ONE], ["explain"])
        store.put(ONE.key, RESULT)
        store.put(TWO.key, StageResult("explain", "timeout", 9.0, None, said="…"))
    with Store(tmp_path / "s.db", must_exist=True) as store:
        assert store.latest() == number
        first, second = store.surveyed(number)
        assert (first.unit, second.unit) == (ONE.unit, TWO.unit)
        assert first.environment.packages == ENVIRONMENT.packages
        assert first.results["explain"] == StageResult("explain", "ok", 1.5, 1000, {"breaks": []}, None, "", "host")
        assert store.report(ONE.key, "explain") == REPORT
        assert store.report(TWO.key, "explain") is None
        assert store.endings(number) == {
            ONE.key: {"explain": StageResult("explain", "ok", 1.5, 1000)},
            TWO.key: {"explain": StageResult("explain", "timeout", 9.0, None)},
        }


def test_a_survey_holds_its_own_units_alone(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.begin([ONE, TWO], ["explain"])
        store.put(ONE.key, RESULT)
        later = store.begin([ONE], ["explain"])
        assert [one.unit.name for one in store.surveyed(later)] == ["one"]
        assert [len(one.results) for one in store.surveyed(later)] == [1]


def test_stores_are_merged_without_doubles(tmp_path: Path) -> None:
    with Store(tmp_path / "a.db") as a, Store(tmp_path / "b.db") as b:
        a.begin([ONE], ["explain"])
        a.put(ONE.key, RESULT)
        b.begin([ONE, TWO], ["explain"])
        b.put(ONE.key, StageResult("explain", "failed", 1.0, None))
        b.put(TWO.key, RESULT)
        assert a.merge(b)[0] == 1
        one, two = a.surveyed(a.latest())
        assert (one.results["explain"].status, two.results["explain"].status) == ("ok", "ok")
        assert a.merge(b)[0] == 0


def test_a_reader_sees_what_is_there_while_another_writes(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as writer:
        number = writer.begin([ONE, TWO], ["explain"])
        with Store(tmp_path / "s.db", must_exist=True) as reader:
            assert [len(one.results) for one in reader.surveyed(number)] == [0, 0]
            writer.put(ONE.key, RESULT)
            assert [len(one.results) for one in reader.surveyed(number)] == [1, 0]


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no .*gone\.db"):
        Store(tmp_path / "gone.db", must_exist=True)
    (tmp_path / "text.db").write_text("no database, but a text that is long enough to be read as one", encoding="utf-8")
    with pytest.raises(StoreError, match="is no store of a survey"):
        Store(tmp_path / "text.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (a)")
    other.close()
    with pytest.raises(StoreError, match="is no store of a survey: name another file"):
        Store(tmp_path / "other.db")
    newer = sqlite3.connect(tmp_path / "newer.db")
    newer.execute("PRAGMA user_version=99")
    newer.close()
    with pytest.raises(StoreError, match="newer breakscan"):
        Store(tmp_path / "newer.db")
    with Store(tmp_path / "empty.db") as store, pytest.raises(StoreError, match="holds no survey"):
        store.latest()


VERSION_1 = """
CREATE TABLE environments (id TEXT PRIMARY KEY, python TEXT NOT NULL, torch TEXT, packages TEXT NOT NULL);
CREATE TABLE units (key TEXT PRIMARY KEY, name TEXT NOT NULL, environment TEXT NOT NULL, unit TEXT NOT NULL);
CREATE TABLE results (
    key TEXT NOT NULL, stage TEXT NOT NULL, status TEXT NOT NULL, seconds REAL NOT NULL, peak INTEGER,
    facts TEXT NOT NULL, report BLOB, said TEXT NOT NULL, host TEXT NOT NULL, finished REAL NOT NULL,
    PRIMARY KEY (key, stage));
CREATE TABLE surveys (id INTEGER PRIMARY KEY, began REAL NOT NULL, ended REAL, stages TEXT NOT NULL);
CREATE TABLE survey_units (survey INTEGER NOT NULL, key TEXT NOT NULL, PRIMARY KEY (survey, key));
PRAGMA user_version=1;
"""


def version_1(path: Path) -> Path:
    """A store as the first version wrote it: keys hold the folder, and the last result is of a checkout elsewhere."""
    db = sqlite3.connect(path)
    db.executescript(VERSION_1)
    packages = json.dumps(ENVIRONMENT.packages)
    db.execute("INSERT INTO environments VALUES (?, '3.11.7', '2.13.0', ?)", (ENVIRONMENT.id, packages))
    db.execute("INSERT INTO surveys VALUES (4, 1.0, 2.0, '[\"explain\"]')")
    for number, folder in enumerate(("/home/a", "/home/b")):
        key = f"old {number}"
        unit = {**asdict(ONE.unit), "folder": folder}
        db.execute("INSERT INTO units VALUES (?, 'one', ?, ?)", (key, ENVIRONMENT.id, json.dumps(unit)))
        db.execute(
            "INSERT INTO results VALUES (?, 'explain', 'ok', 1.5, 1000, '{\"breaks\": []}', ?, '', 'host', ?)",
            (key, packed(REPORT) if number else None, number),
        )
        db.execute("INSERT INTO survey_units VALUES (4, ?)", (key,))
    db.commit()
    db.close()
    return path


def test_a_store_of_version_1_keeps_its_results(tmp_path: Path) -> None:
    path = version_1(tmp_path / "s.db")
    before = path.read_bytes()
    expected = StageResult("explain", "ok", 1.5, 1000, {"breaks": []}, None, "", "host")
    with Store(path, must_exist=True) as store:
        (one,) = store.surveyed(store.latest())
        assert (one.unit, one.results) == (ONE.unit, {"explain": expected})
        with Store(tmp_path / "all.db") as into:
            assert into.merge(store)[0] == 1
            assert into.results(ONE.key) == {"explain": expected}
            assert into.report(ONE.key, "explain") == REPORT
    assert path.read_bytes() == before, "who only reads changes nothing"
    with Store(path) as store:
        assert store.latest() == 4
        assert store.results(ONE.key) == {"explain": expected}
        number = store.begin([ONE], ["explain"])
        assert list(store.endings(number)) == [ONE.key]


def test_whoever_reads_changes_nothing(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.begin([ONE], ["explain"])
    with Store(tmp_path / "s.db", must_exist=True) as store:
        store.latest()
        with pytest.raises(StoreError, match="cannot be written"):
            store.put(ONE.key, RESULT)
    assert [one.name for one in tmp_path.iterdir()] == ["s.db"]


def test_the_report_of_another_run_does_not_come_without_its_result(tmp_path: Path) -> None:
    with Store(tmp_path / "a.db") as a, Store(tmp_path / "b.db") as b:
        a.begin([ONE], ["explain"])
        a.put(ONE.key, StageResult("explain", "timeout", 1.0, None))
        b.begin([ONE], ["explain"])
        b.put(ONE.key, RESULT)
        assert a.merge(b)[0] == 0
        assert a.report(ONE.key, "explain") is None
        with pytest.raises(StoreError, match="cannot be merged with itself"):
            a.merge(a)


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    odd = PlannedUnit(Unit("a\udcff.py", command=("a\udcff.py",)), ENVIRONMENT)
    with Store(tmp_path / "s.db") as store:
        (one,) = store.surveyed(store.begin([odd], ["explain"]))
        assert one.unit == odd.unit


def test_what_cannot_be_opened_or_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"gone/s\.db cannot be opened .* is its folder there"):
        Store(tmp_path / "gone" / "s.db")
    with Store(tmp_path / "s.db") as store:
        store.begin([ONE], ["explain"])
        store._db.execute("PRAGMA max_page_count=1")
        with pytest.raises(StoreError, match=r"s\.db cannot be written \(database or disk is full\): free some space"):
            store.put(ONE.key, replace(RESULT, said="long" * 100_000))
        store._db.execute("PRAGMA max_page_count=10000")
        store.put(ONE.key, RESULT)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE results SET facts = '{\"breaks\": [{}]}'", "a result of explain: it is not as it was written"),
        ("UPDATE results SET status = 'okay'", "a result of explain: it is not as it was written"),
        ("UPDATE results SET facts = x'ff'", "a result of explain: "),
        ("UPDATE results SET facts = cast(x'ff' AS TEXT)", "Could not decode to UTF-8"),
        ("UPDATE units SET unit = '[]'", "a unit: "),
        ("UPDATE units SET unit = 'x'", "a unit: "),
        ("UPDATE environments SET packages = '{}'", "an environment: it is not as it was written"),
        ("UPDATE environments SET packages = '[]'", "an environment: "),
        ("DELETE FROM environments", "an environment: "),
        ("DELETE FROM units", "a unit: "),
        ("DELETE FROM survey_units", "units of the survey are missing"),
        ("DROP TABLE results", "no such table: results"),
    ],
)
def test_a_cell_that_is_not_as_it_was_written_is_said(tmp_path: Path, change: str, said: str) -> None:
    path = tmp_path / "s.db"
    with Store(path) as store:
        store.begin([ONE], ["explain"])
        store.put(ONE.key, RESULT)
    db = sqlite3.connect(path)
    db.execute(change)
    db.commit()
    db.close()
    with Store(path, must_exist=True) as store, pytest.raises(StoreError) as raised:
        list(store.surveyed(store.latest()))
    assert str(raised.value).startswith(f"{path} is damaged ({said}")
    assert "take a copy of it that is whole, or move it away and run the survey again" in str(raised.value)


def test_a_damaged_report_is_said(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.put(ONE.key, RESULT)
        store._db.execute("UPDATE reports SET report = x'00'")
        with pytest.raises(StoreError, match="damaged"):
            store.report(ONE.key, "explain")
