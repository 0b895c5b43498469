"""The store of surveys."""

import sqlite3
from pathlib import Path

import pytest

from breakscan.__main__ import main
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


@pytest.mark.parametrize("facts", ["{", "[1]", '{"breaks": 3}', '{"breaks": [], "eager": [{}], "recompiles": []}'])
def test_damaged_results_are_named(tmp_path: Path, facts: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(tmp_path / "s.db") as store:
        store.begin([ONE], ["explain"])
        store.put(ONE.key, RESULT)
    damaged = sqlite3.connect(tmp_path / "s.db")
    damaged.execute("UPDATE results SET facts = ?, status = 'ok'", (facts,))
    damaged.commit()
    damaged.close()
    store_path = str(tmp_path / "s.db")
    assert main(["survey", "report", store_path]) == 2
    assert "s.db cannot be used as the store of a survey: " in capsys.readouterr().err
    assert main(["survey", "diff", store_path, store_path]) == 2


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
