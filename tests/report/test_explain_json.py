"""The JSON contract of ``explain``."""

import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import explain_results as made
import jsonschema
import pytest

import breakscan
from breakscan.explanation import breaks, frames, graphs, recompiles, run_totals
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.frames import FrameStatus
from breakscan.model.findings import Origin, Place, Verdict
from breakscan.recording.records import StepsProfiled
from breakscan.report.explain.json import FOR_REMEDIES, WORDS
from breakscan.rulebook.document import Rule

SCHEMA = json.loads((Path(breakscan.__file__).parent / "schemas" / "explain.schema.json").read_text(encoding="utf-8"))


def written(told: Explanation, **report: Any) -> Any:
    text = made.written("json", told, **report)
    assert text.isascii()
    assert text.endswith("\n}\n")
    return json.loads(text)


def validate(data: Any) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(data)


def keys_of(data: Any) -> set[str]:
    if isinstance(data, dict):
        return set(data) | {key for value in data.values() for key in keys_of(value)}
    return {key for item in data for key in keys_of(item)} if isinstance(data, list) else set()


def properties_of(schema: Any) -> dict[str, Any]:
    if isinstance(schema, list):
        return {key: value for item in schema for key, value in properties_of(item).items()}
    if not isinstance(schema, dict):
        return {}
    inner = {key: value for item in schema.values() for key, value in properties_of(item).items()}
    return inner | schema["properties"] if isinstance(schema.get("properties"), dict) else inner


def test_every_key_is_written_and_described() -> None:
    data = written(made.explanation())
    validate(data)
    described = properties_of(SCHEMA)
    assert keys_of(data) >= set(described)
    for key, schema in described.items():
        target = SCHEMA["$defs"].get(schema.get("$ref", "").removeprefix("#/$defs/"), {})
        assert schema.get("description") or target.get("description"), f"{key} is not described"


def test_every_field_of_an_explanation_is_written() -> None:
    """A new field of these classes needs its key: the schema and docs/json.md describe it."""
    kept = keys_of(written(made.explanation()))
    for kind in classes_of(Explanation, set()):
        names = {RENAMED.get((kind, field.name), field.name) for field in fields(kind)}
        assert kind in WORDS or names - kept <= NOT_WRITTEN.get(kind, set()), kind.__name__


def classes_of(kind: Any, known: set[type]) -> set[type]:
    """The dataclasses that one consists of, by the types of its fields."""
    if is_dataclass(kind) and kind not in {*known, *WORDS, Rule}:
        known.add(kind)
        for hint in get_type_hints(kind).values():
            classes_of(hint, known)
    for part in get_args(kind):
        classes_of(part, known)
    return known


RENAMED = {(Explanation, "status"): "exit_status"}
NOT_WRITTEN = {
    Explanation: {"export_problems", "export_rules"},
    graphs.Generated: {"code"},
    breaks.BreakSite: {"disabled", "keeps", "is_whole", "hooked", "is_causal", "in_thread", "checkpointed", "fails"},
    frames.UncompiledFrame: {"helps", "only_compiled", "quoted"},
    recompiles.Recompile: {"also", "hit_limit", "how", "opened", "passed", "made_by", *FOR_REMEDIES},
    run_totals.StepProfile: {"means"},
    StepsProfiled: {"key"},
    recompiles.HowCompiled: {"calls", "dynamic", "torch"},
}
"""Generated code is in its file, and remedies are those of problems."""


def test_an_empty_run_is_valid() -> None:
    data = written(Explanation((), 2, 0.1, "", "", (), False, None, (), (), (), (), (), 0, 0.0, ()))
    validate(data)
    assert data["environment"]["torch"] is None
    assert data["ranks"] is None
    assert data["breaks"] == []


@pytest.mark.parametrize("verdict", [Verdict.SPLITS, Verdict.EAGER, Verdict.RAISES])
@pytest.mark.parametrize("place", list(Place))
def test_every_word_is_in_the_schema(verdict: Verdict, place: Place) -> None:
    breaks = [replace(made.BREAK, verdict=verdict, place=place, origin=origin) for origin in Origin]
    frames = [replace(made.FRAME, status=status) for status in FrameStatus]
    validate(written(made.explanation(breaks=breaks, frames=frames)))


def test_numbers_are_rounded_and_stay_numbers() -> None:
    data = written(made.explanation(calls=(replace(made.explanation().calls[0], seconds=float("nan")),)))
    assert data["script"]["seconds"] == 212.3456789
    assert data["summary"]["compile_seconds"] == 38.123
    assert data["breaks"][0]["price"]["host_seconds"] == 0.0012346
    assert data["calls"][0]["seconds"] is None


def test_each_entry_has_a_line_of_its_own() -> None:
    lines = made.written("json", made.explanation()).splitlines()
    entry = next(line for line in lines if '"rule": "BRK201"' in line)
    assert json.loads(entry.strip().rstrip(","))["site"]["path"] == "src/model.py"
    assert sum(line.startswith('    {"number":') for line in lines) == 2
