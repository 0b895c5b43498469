"""The JSON of ``bench``, as ``breakscan/schemas/bench.schema.json`` describes it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any, TextIO

from breakscan import __version__
from breakscan.prove.bench.result import Bench, BenchRow, DeviceComparison
from breakscan.report.shared.observation_words import detail_words, observation_words

SCHEMA = 1


def write_bench_json(bench: Bench, stream: TextIO) -> None:
    """Writes all ways as one JSON object, ASCII only, and a line end."""
    told = {
        "schema": SCHEMA,
        "tool": {"name": "breakscan", "version": __version__},
        "program": list(bench.argv),
        "environment": dict(bench.environment),
        "calls": [
            {"callable": name, "captured": count, "backward": name in bench.backward}
            for name, count in bench.callables.items()
        ],
        "notes": [observation_words(note) for note in bench.notes],
        "interrupted": bench.interrupted,
        "compiled_at_once": bench.compiled_at_once,
        "devices": [_device(one) for one in bench.devices],
        "eager": asdict(bench.eager) if bench.eager else None,
        "same": asdict(bench.same) if bench.same else None,
        "ways": [_variant(row) for row in bench.rows],
        "best": bench.best,
        "as_fast": list(bench.as_fast),
        "write": bench.write,
        "least_time": [{"way": one.label, "from_call": one.from_call, "write": one.write} for one in bench.least_time],
    }
    json.dump(told, stream, indent=2, default=repr)
    stream.write("\n")


def _device(device: DeviceComparison) -> dict[str, Any]:
    return {
        "device": device.label,
        "use": device.use.value,
        "slower": asdict(device.slower) if device.slower else None,
        "beside": asdict(device.beside) if device.beside else None,
        "difference": detail_words(device.difference) if device.difference else None,
        "error": device.error,
    }


def _variant(row: BenchRow) -> dict[str, Any]:
    told = asdict(replace(row, problem=None))
    del told["variant"], told["status"]
    if row.problem is not None:
        told["problem"] = {"stage": row.problem.stage.value, "error": observation_words(row.problem.observation)}
    return {
        "way": row.label,
        "options": dict(row.variant.options or {}),
        "settings": dict(row.variant.settings),
        "regional": row.variant.regional.value if row.variant.regional else None,
        "standing": row.status.value,
        **told,
    }
