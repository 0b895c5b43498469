"""Arguments of calls: read, or refused in words that help."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("mcp")

from hypothesis import given, settings
from hypothesis import strategies as st

from breakscan.serve.agents.arguments import (
    CheckArguments,
    ExplainArguments,
    FixArguments,
    RuleArguments,
    ToolFailure,
    TuneArguments,
    VerifyArguments,
    input_schema,
    read_arguments,
)

MODELS = [CheckArguments, ExplainArguments, FixArguments, RuleArguments, TuneArguments, VerifyArguments]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = sorted({name for model in MODELS for name in model.model_fields})


@settings(max_examples=300, deadline=None)
@given(model=st.sampled_from(MODELS), values=st.dictionaries(st.sampled_from(NAMES) | st.text(), JSON, max_size=4))
def test_any_json_is_read_or_refused(model: Any, values: dict[str, Any]) -> None:
    said = "one line"
    try:
        read_arguments(model, values)
    except ToolFailure as failure:
        said = str(failure)
    assert said
    assert "\n" not in said
    assert len(said) < 3000


@pytest.mark.parametrize(
    ("model", "values", "why"),
    [
        (CheckArguments, {"path": ["x"]}, "there is no argument path: did you mean paths"),
        (CheckArguments, {"limit": 0}, "limit: "),
        (CheckArguments, {"limit": "many"}, "limit: "),
        (CheckArguments, {"paths": {"a": 1}}, "paths: "),
        (CheckArguments, {"paths": [""]}, r"paths\.0: "),
        (CheckArguments, {"diff": "--output=x"}, "diff: "),
        (RuleArguments, {}, "rule: "),
        (RuleArguments, {"rule": "--help"}, "rule: "),
        (ExplainArguments, {}, "name a program"),
        (ExplainArguments, {"program": "a.py", "last": True}, "name a program"),
        (ExplainArguments, {"program": "a.py", "seconds": float("nan")}, "seconds: "),
    ],
)
def test_what_is_wrong_is_named(model: Any, values: dict[str, Any], why: str) -> None:
    with pytest.raises(ToolFailure, match=why):
        read_arguments(model, values)


def test_a_list_may_come_as_its_json_or_as_one_word() -> None:
    assert read_arguments(CheckArguments, {"paths": '["a.py", "b.py"]'}).paths == ["a.py", "b.py"]
    assert read_arguments(CheckArguments, {"paths": "a.py"}).paths == ["a.py"]
    assert read_arguments(CheckArguments, {"paths": "3"}).paths == ["3"]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_schemas_are_short_and_describe_each_argument(model: Any) -> None:
    schema = input_schema(model)
    assert all(one["description"] and "title" not in one for one in schema["properties"].values())
    assert schema["additionalProperties"] is False
    assert len(json.dumps(schema)) < 2000
