"""The JSON contract of ``check``."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from report_results import BEHIND, EAGER, SPLIT, UNPARSED, report, result

import breakscan
from breakscan.model.findings import CheckResult, CheckTarget, Confidence, Kind, Mode, Region, Severity
from breakscan.report.check import write_json
from breakscan.rulebook.library import load_library

SCHEMA = json.loads((Path(breakscan.__file__).parent / "schemas" / "check.schema.json").read_text(encoding="utf-8"))

TRIED = list(load_library().select("BRK101")[0].rewrites)


def written(found: CheckResult) -> Any:
    stream = io.StringIO()
    write_json(report(found), stream)
    assert stream.getvalue().isascii()
    assert stream.getvalue().endswith("}\n")
    return json.loads(stream.getvalue())


def valid(data: Any) -> bool:
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(data)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_whole_object() -> None:
    data = written(
        result(EAGER, SPLIT, errors=(UNPARSED,), suppressed=2, targets=(CheckTarget("2.13", "2.13", Mode.FULLGRAPH),))
    )
    assert valid(data)
    assert data == {
        "schema": 1,
        "tool": {"name": "breakscan", "version": breakscan.__version__},
        "target": {"torch": "2.13", "fullgraph": True, "mode": "fullgraph"},
        "targets": [{"torch": "2.13", "fullgraph": True, "mode": "fullgraph"}],
        "findings": [
            {
                "rule": "BRK101",
                "name": "branch-on-tensor",
                "kind": "graph-break",
                "severity": "error",
                "confidence": "certain",
                "message": "a Python branch on a tensor's value",
                "site": {"path": "src/model.py", "line": 3, "column": 8, "end_line": 3, "end_column": 15},
                "function": "Block.forward",
                "region": {"path": "train.py", "line": 41, "how": "torch.compile(model)", "entry": "Model.forward"},
                "gb": ["GB0170", "GB7000"],
                "rewrite": {"id": "where", "safety": "unsafe"},
                "rewrites": TRIED,
                "condition": None,
                "behind": None,
                "observed": None,
                "mode": "default",
                "torch": "2.13",
            },
            {
                "rule": "BRK101",
                "name": "branch-on-tensor",
                "kind": "graph-break",
                "severity": "warning",
                "confidence": "conditional",
                "message": "a Python branch on a tensor's value",
                "site": {"path": "src/model.py", "line": 5, "column": 4, "end_line": 7, "end_column": 6},
                "function": None,
                "region": None,
                "gb": ["GB0170"],
                "rewrite": None,
                "rewrites": TRIED,
                "condition": "`mask` is given",
                "behind": None,
                "observed": None,
                "mode": "default",
                "torch": "2.13",
            },
        ],
        "errors": [
            {
                "path": "src/bad.py",
                "line": 2,
                "column": 7,
                "message": "cannot be parsed: invalid syntax",
                "syntax": True,
            }
        ],
        "warnings": [],
        "summary": {"files": 41, "findings": 2, "known": 0, "by_rule": {"BRK101": 2}},
    }


def test_findings_behind_another_are_listed_and_name_its_site() -> None:
    data = written(result(EAGER, BEHIND))
    assert valid(data)
    assert [f["behind"] for f in data["findings"]] == [None, data["findings"][0]["site"]]
    assert data["summary"]["findings"] == 2


def test_a_root_whose_function_has_no_name() -> None:
    data = written(result(replace(EAGER, region=Region("train.py", 41, "torch.compile(lambda x: x)"))))
    assert valid(data)
    assert data["findings"][0]["region"]["entry"] is None


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("severity", list(Severity))
def test_every_word_is_in_the_schema(kind: Kind, severity: Severity) -> None:
    findings = [replace(EAGER, kind=kind, severity=severity, confidence=confidence) for confidence in Confidence]
    assert valid(written(result(*findings)))


def test_names_beyond_ascii_and_beyond_unicode_come_back() -> None:
    error = replace(UNPARSED, path="模型/\udcff.py")
    data = written(result(errors=(error,)))
    assert valid(data)
    assert data["errors"][0]["path"] == "模型/\udcff.py"


@pytest.mark.parametrize("change", ["extra", "missing", "line", "kind", "rule"])
def test_the_schema_refuses_what_is_not_the_contract(change: str) -> None:
    data = written(result(EAGER))
    finding = data["findings"][0]
    if change == "extra":
        finding["more"] = 1
    elif change == "missing":
        del finding["gb"]
    elif change == "line":
        finding["site"]["line"] = 0
    elif change == "kind":
        finding["kind"] = "break"
    else:
        data["summary"]["by_rule"] = {"E501": 1}
    assert not valid(data)
