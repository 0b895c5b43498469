"""The JSON of a command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TextIO

from breakscan import __version__


def write_json_report(schema: int, report: Mapping[str, Any], stream: TextIO) -> None:
    """Writes the number of the schema, the version of breakscan and the report as one JSON object, ASCII only, and a
    line end."""
    head = {"schema": schema, "tool": {"name": "breakscan", "version": __version__}}
    json.dump({**head, **report}, stream, indent=2, default=repr)  # options of a backend may be anything
    stream.write("\n")
