"""Parts of a survey for several machines, and how they become one survey again."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from breakscan.cli.main import cli
from breakscan.survey.plan import PlannedUnit, part_of
from breakscan.survey.store import Store
from breakscan.survey.units import Environment, StageResult, Unit

OLD, NEW = (Environment("3.11.7", "python", {"torch": version}) for version in ("2.12.0", "2.13.0"))


def planned(names: list[str], environment: Environment = NEW) -> list[PlannedUnit]:
    return [PlannedUnit(Unit(name, build="zoo:build", mode=mode), environment) for name in names for mode in ("a", "b")]


@given(st.lists(st.text(), unique=True, max_size=20), st.integers(1, 9))
def test_each_unit_is_in_one_part(names: list[str], count: int) -> None:
    units = planned(names)
    parts = [part_of(units, number, count) for number in range(1, count + 1)]
    assert sorted(one.key for part in parts for one in part) == sorted(one.key for one in units)


def test_a_unit_stays_in_its_part_with_another_torch() -> None:
    names = [f"m{number}" for number in range(40)]
    found = [{(one.unit.name, one.unit.mode) for one in part_of(planned(names, with_), 2, 3)} for with_ in (OLD, NEW)]
    assert found[0] == found[1]
    assert 10 < len(found[0]) < 50


@pytest.mark.parametrize("text", ["", "0/3", "4/3", "1", "a/b", "1/0", "-1/3", "1/3/4", " 1/3"])
def test_a_part_must_be_one_of_them(text: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["survey", "run", str(tmp_path / "m.toml"), "--shard", text])
    assert done.exit_code == 2
    assert "3/16 is the third of 16" in done.output


def test_merged_parts_are_one_survey(tmp_path: Path) -> None:
    units = planned(["one", "two", "three", "four"])
    paths = [tmp_path / f"{number}.db" for number in (1, 2, 3)]
    for number, path in enumerate(paths, 1):
        with Store(path) as store:
            store.end(store.begin(planned(["removed"]), ["explain"]))
            mine = part_of(units, number, 3)
            begun = store.begin(mine, ["explain"])
            for one in mine:
                store.put(one.key, StageResult("explain", "failed", 1.0, None))
            store.end(begun)
    target = str(tmp_path / "all.db")
    assert CliRunner().invoke(cli, ["survey", "merge", target, *map(str, paths)]).exit_code == 0
    told = json.loads(CliRunner().invoke(cli, ["survey", "report", target, "--format", "json"]).stdout)
    assert [unit["name"] for unit in told["units"]] == sorted(["one", "two", "three", "four"] * 2)
    assert told["statuses"] == {"failed": 8}


def test_a_damaged_unit_in_a_part_is_an_error(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.db" for name in ("a", "b")]
    for name, path in zip(("one", "two"), paths, strict=True):
        with Store(path) as store:
            store.end(store.begin(planned([name]), ["explain"]))
    with closing(sqlite3.connect(paths[1], isolation_level=None)) as db:
        db.execute("UPDATE units SET unit = '{'")
    done = CliRunner().invoke(cli, ["survey", "merge", str(tmp_path / "all.db"), *map(str, paths)])
    assert "all.db is damaged (a unit: " in str(done.exception)
