"""The JSON schema of configuration files, in the form of SchemaStore (draft 7)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from breakscan.model.findings import Confidence
from breakscan.rulebook.config.config_file import EXTEND
from breakscan.rulebook.config.joining import KEYS
from breakscan.rulebook.config.settings import Settings

_SOURCE = "https://json.schemastore.org/breakscan.json"


def config_schema() -> dict[str, Any]:
    """The schema of a ``breakscan.toml``, and of the table ``[tool.breakscan]``."""
    defaults = {one.name: one.default for one in fields(Settings)}
    properties: dict[str, Any] = {
        EXTEND: {
            "description": "A configuration file that this one goes over, relative to the folder of this one.",
            "type": "string",
            "minLength": 1,
        }
    }
    for name, key in KEYS.items():
        default = _plain(defaults[name])
        properties[key.name] = {"description": key.meaning, **key.kind.schema()}
        if default is not None:
            properties[key.name]["default"] = {} if properties[key.name]["type"] == "object" else default
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": _SOURCE,
        "title": "breakscan",
        "description": "Settings of breakscan: breakscan.toml, or [tool.breakscan] of pyproject.toml.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def _plain(value: object) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value.value if isinstance(value, Confidence) else value
