"""A survey as tables for those who analyse: Parquet files, or a DuckDB file."""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from breakscan.model.errors import InputError
from breakscan.survey.store import Surveyed
from breakscan.survey.unit_row import row_of, sites_of


def _columns(declared: str) -> dict[str, str]:
    """The type of each column, of lines as SQL declares them."""
    return dict(line.strip().split(" ", 1) for line in declared.strip().splitlines())


TABLES: Mapping[str, Mapping[str, str]] = {
    "units": _columns(
        """
        unit VARCHAR
        name VARCHAR
        mode VARCHAR
        backend VARCHAR
        device VARCHAR
        dtype VARCHAR
        torch VARCHAR
        python VARCHAR
        packages MAP(VARCHAR, VARCHAR)
        status VARCHAR
        breaks BIGINT
        eager BIGINT
        recompiles BIGINT
        graphs BIGINT
        cost DOUBLE
        costliest VARCHAR
        compile_seconds DOUBLE
        findings BIGINT
        seen BIGINT
        offered BIGINT
        proved BIGINT
        speed DOUBLE
        """
    ),
    "results": _columns(
        """
        unit VARCHAR
        stage VARCHAR
        status VARCHAR
        seconds DOUBLE
        peak BIGINT
        said VARCHAR
        host VARCHAR
        """
    ),
    "sites": _columns(
        """
        unit VARCHAR
        kind VARCHAR
        rule VARCHAR
        reason VARCHAR
        path VARCHAR
        line BIGINT
        function VARCHAR
        seconds DOUBLE
        """
    ),
}
"""The columns of each table with their types in SQL.  ``unit`` joins them."""


class ExportError(InputError):
    """A survey cannot be exported.  Says why, and what to do."""


def export_survey(surveyed: Iterable[Surveyed], output: Path) -> list[Path]:
    """Writes a DuckDB file if ``output`` ends so, else Parquet files into a folder; returns what was written."""
    try:
        duckdb: Any = importlib.import_module("duckdb")
    except ImportError as error:
        raise ExportError(
            "survey export needs duckdb: install breakscan with its extra 'export', as in 'breakscan[export]'"
        ) from error
    with tempfile.TemporaryDirectory(prefix="breakscan-export-") as made:
        _write_rows(surveyed, Path(made))
        try:
            return _written(duckdb, Path(made), output)
        except (OSError, duckdb.Error) as error:
            raise ExportError(f"cannot write {output}: {error}") from error


def _written(duckdb: Any, made: Path, output: Path) -> list[Path]:
    whole = output.suffix == ".duckdb"
    if whole:
        output.unlink(missing_ok=True)
    else:
        output.mkdir(parents=True, exist_ok=True)
    paths = [output] if whole else [output / f"{table}.parquet" for table in TABLES]
    with closing(duckdb.connect(str(output) if whole else ":memory:")) as connection:
        for table, columns in TABLES.items():
            declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            connection.execute(f"CREATE TABLE {table} ({declared})")
            # Row by row, duckdb would take a thousand times as long.
            types = ", ".join(f"{name}: '{kind}'" for name, kind in columns.items())
            source = (
                f"read_json(?, format = 'newline_delimited', columns = {{{types}}}, maximum_object_size = 100000000)"
            )
            connection.execute(f"INSERT INTO {table} SELECT * FROM {source}", [str(made / f"{table}.json")])
            if not whole:
                path = str(output / f"{table}.parquet").replace("'", "''")
                connection.execute(f"COPY {table} TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    return paths


def _write_rows(surveyed: Iterable[Surveyed], folder: Path) -> None:
    """The rows of each table in a file, one object a line."""
    streams = {table: (folder / f"{table}.json").open("w", encoding="utf-8") for table in TABLES}
    try:
        for one in surveyed:
            for table, row in _rows(one):
                streams[table].write(json.dumps({name: row[name] for name in TABLES[table]}) + "\n")
    finally:
        for stream in streams.values():
            stream.close()


def _rows(one: Surveyed) -> Iterator[tuple[str, Mapping[str, Any]]]:
    row = row_of(one)
    environment = {"python": one.environment.python, "packages": one.environment.packages}
    yield "units", {**asdict(one.unit), **asdict(row), **environment, "unit": row.key}
    for result in one.results.values():
        told = {name: getattr(result, name, None) for name in TABLES["results"]}
        yield "results", {**told, "unit": row.key}
    for site in sites_of(one, consequences=True):
        cause = {"kind": site.cause.kind.value, "rule": site.cause.rule, "reason": site.cause.reason or None}
        where = {"path": site.path, "line": site.line, "function": site.function, "seconds": site.seconds}
        yield "sites", {"unit": row.key, **cause, **where}
