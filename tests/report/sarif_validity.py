"""Whether a log is SARIF 2.1.0, and only what breakscan uses of it.

``BREAKSCAN_SARIF_SCHEMA`` may name a copy of the standard's own schema (``sarif-schema-2.1.0.json`` of OASIS, which may
not be kept here): then that is asked as well.
"""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema

_SUBSET = json.loads((Path(__file__).parents[1] / "data" / "sarif-subset.schema.json").read_text(encoding="utf-8"))
_STANDARD = os.environ.get("BREAKSCAN_SARIF_SCHEMA")


def validate_sarif(log: Any) -> None:
    """Raises ValidationError where it is not."""
    jsonschema.Draft202012Validator(_SUBSET).validate(log)
    if _STANDARD:
        schema = json.loads(Path(_STANDARD).read_text(encoding="utf-8"))
        jsonschema.Draft4Validator(schema, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER).validate(log)
    (run,) = log["runs"]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(ids) == len(set(ids))
    assert all(ids[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    prints = [(r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], *r["partialFingerprints"].values())
              for r in run["results"]]  # fmt: skip
    assert len(prints) == len(set(prints)), "two results that are taken for one"
