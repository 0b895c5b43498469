"""The store of surveys."""

import sqlite3
from pathlib import Path

import pytest

from breakscan.survey.manifest import Environment, PlannedUnit, StageResult, Unit
from breakscan.survey.store import Store, StoreError

ENVIRONMENT = Environment("3.11.7", "/bin/python", {"torch": "2.13.0"})
ONE, TWO = (PlannedUnit(Unit(name, command=("a.py", name)), ENVIRONMENT) for name in ("one", "two"))
RESULT = StageResult("explain", "ok", 1.5, 1000, {"breaks": []}, "", "host")


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
        assert first.results["explain"] == RESULT
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
    with pytest.raises(StoreError, match="cannot be used as the store of a survey: file is not a database"):
        Store(tmp_path / "text.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (a)")
    other.close()
    with pytest.raises(StoreError, match="is no store of a survey: name another file"):
        Store(tmp_path / "other.db")
    for version, words in ((99, "newer breakscan"), (1, "earlier development version")):
        other = sqlite3.connect(tmp_path / f"{version}.db")
        other.execute(f"PRAGMA user_version={version}")
        other.close()
        with pytest.raises(StoreError, match=words):
            Store(tmp_path / f"{version}.db")
    (tmp_path / "nothing.db").touch()
    with pytest.raises(StoreError, match="holds no survey"):
        Store(tmp_path / "nothing.db", must_exist=True)
    with Store(tmp_path / "empty.db") as store, pytest.raises(StoreError, match="holds no survey"):
        store.latest()
