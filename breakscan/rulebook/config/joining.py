"""Values of settings that go over others: a file over the one that it extends, options over a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from breakscan.rulebook.config.keys import Key
from breakscan.rulebook.config.settings import KEY, Settings

KEYS: Mapping[str, Key] = {one.name: one.metadata[KEY] for one in fields(Settings) if KEY in one.metadata}
"""The keys of configuration files, by the field that each sets."""


def joined(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The values of both, by field: those of ``above`` replace those of ``below`` or add to them, as their keys say.
    A ``select`` also drops what ``below`` ignores; ``target`` and ``fullgraph`` say both how code is compiled, so each
    replaces both."""
    values = dict(below)
    if above.get("fullgraph"):
        values["target"] = "compile"
    elif above.get("target", "compile") != "compile":
        values["fullgraph"] = False
    if "select" in above:
        values.pop("ignore", None)
    for name, value in above.items():
        adds = name in KEYS and KEYS[name].adds
        values[name] = (*values.get(name, ()), *value) if adds else value
    return values
