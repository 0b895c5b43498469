"""Surveys as tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from breakscan.cli.survey import survey
from breakscan.survey.export import TABLES
from breakscan.survey.plan import PlannedUnit
from breakscan.survey.store import Store
from breakscan.survey.units import Environment, StageResult, Unit

ENVIRONMENT = Environment("3.11.7", "python", {"torch": "2.13.0", "it's": "1.0"})
SITE = {
    "rule": "BRK101",
    "path": "/e/site-packages/lib/a.py",
    "line": 7,
    "function": "f",
    "reason": "why",
    "seconds": 0.5,
}
FACTS = {
    "breaks": [SITE, {**SITE, "rule": None, "seconds": None}],
    "eager": [{**SITE, "of_break": True}],
    "recompiles": [],
    "graphs": 2,
    "compile_seconds": 1.5,
}
DOCUMENTED = Path(__file__).parents[2] / "docs" / "survey.md"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "survey.db"
    ok, failed = (
        PlannedUnit(Unit(name, build="z:b", mode="eval"), ENVIRONMENT) for name in ("zoo/\u00fc 'a'", "zoo/failed")
    )
    with Store(path) as made:
        made.begin([ok, failed], ["explain"])
        made.put(ok.key, StageResult("explain", "ok", 2.0, 10**10, FACTS, None, "", "host"))
        made.put(failed.key, StageResult("explain", "failed", 1.0, None, said="one\ntwo"))
    return path


def export(store: Path, output: Path) -> Result:
    return CliRunner().invoke(survey, ["export", str(store), "--output", str(output)])


@pytest.fixture(params=["parquet", "duckdb"])
def tables(request: pytest.FixtureRequest, store: Path, tmp_path: Path) -> Any:
    duckdb: Any = pytest.importorskip("duckdb")
    output = tmp_path / ("a survey's" if request.param == "parquet" else "survey.duckdb")
    for _ in range(2):  # what is there is replaced
        done = export(store, output)
        assert done.exit_code == 0, done.output
    if request.param == "duckdb":
        return duckdb.connect(str(output))
    connection = duckdb.connect()
    for table in TABLES:
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet(?)", [str(output / f"{table}.parquet")])
    return connection


def test_the_tables_hold_the_survey(tables: Any) -> None:
    assert tables.execute(
        "SELECT name, mode, torch, status, breaks, eager, cost, costliest, packages FROM units ORDER BY name"
    ).fetchall() == [
        ("zoo/failed", "eval", "2.13.0", "failed", None, None, None, None, ENVIRONMENT.packages),
        ("zoo/\u00fc 'a'", "eval", "2.13.0", "ok", 2, 1, 0.5, "BRK101", ENVIRONMENT.packages),
    ]
    assert tables.execute(
        "SELECT kind, rule, reason, path, line, seconds FROM sites ORDER BY kind, rule NULLS LAST"
    ).fetchall() == [
        ("break", "BRK101", None, "lib/a.py", 7, 0.5),
        ("break", None, "why", "lib/a.py", 7, None),
        ("eager", "BRK101", None, "lib/a.py", 7, 0.5),
    ]
    assert tables.execute(
        "SELECT stage, r.status, peak, said FROM results r JOIN units USING (unit) ORDER BY name"
    ).fetchall() == [("explain", "failed", None, "one\ntwo"), ("explain", "ok", 10**10, "")]


def test_the_columns_have_the_types_that_are_declared(tables: Any) -> None:
    for table, columns in TABLES.items():
        found = tables.execute(f"DESCRIBE {table}").fetchall()
        assert {name: kind for name, kind, *_ in found} == columns


def test_every_column_is_documented() -> None:
    text = DOCUMENTED.read_text(encoding="utf-8").partition("## Tables")[2]
    missing = [(table, name) for table, columns in TABLES.items() for name in columns if f"`{name}`" not in text]
    assert missing == []


def test_without_duckdb_the_remedy_is_told(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = export(store, tmp_path / "out")
    assert "install breakscan with its extra 'export', as in 'breakscan[export]'" in str(done.exception)


def test_what_cannot_be_written_is_an_error(store: Path, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = export(store, tmp_path / "file")
    assert "cannot write" in str(done.exception)
    assert export(store, tmp_path / "survey.csv").exit_code == 2
