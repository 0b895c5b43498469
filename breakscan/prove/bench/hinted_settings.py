"""Finds the settings that remove the breaks of a run, according to Dynamo's hints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from breakscan.explain.breaks import BreakSite

_NAMED = re.compile(r"config\.(?P<name>[a-z]\w*)\b`?\s*(?:=|to)\s*`?(?P<value>True|False)\b")
_RISKY = "silent incorrectness"
_NOT_NAMED = {"Unsupported Tensor.backward() call": {"dynamo.trace_autograd_ops": True}}
"""Settings that Dynamo's hints leave out, by the type of the break."""


def flags_for(breaks: Iterable[BreakSite]) -> dict[str, object]:
    """Returns the settings that the hints of these breaks name, with their values."""
    found: dict[str, object] = {}
    for site in breaks:
        hints = " ".join(site.hints)
        if _RISKY not in hints:
            found |= {f"dynamo.{one['name']}": one["value"] == "True" for one in _NAMED.finditer(hints)}
        found |= _NOT_NAMED.get(site.gb_type, {})
    return found


def as_written(settings: Mapping[str, object]) -> str:
    """Returns a setting as a line of code: ``torch._dynamo.config.capture_scalar_outputs = True``."""
    lines = []
    for key, value in settings.items():
        room, _, name = key.partition(".")
        lines.append(f"torch._{room}.config.{name} = {value!r}")
    return "; ".join(lines)
