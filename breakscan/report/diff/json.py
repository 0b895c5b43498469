"""A comparison of two runs as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TextIO

from breakscan.explain.gates.site_match import KnownBreak
from breakscan.report.diff.comparison import RunComparison

SCHEMA = 1


def write_diff_json(comparison: RunComparison, stream: TextIO) -> None:
    """Writes one JSON object, ASCII only, and a line end."""
    made = {
        "schema": SCHEMA,
        "regressions": comparison.regressions,
        "moved": list(comparison.moved),
        "numbers": {n.key: {"before": n.before, "after": n.after} for n in comparison.numbers},
        "new": [_plain(one) for one in comparison.new],
        "gone": [_plain(one) for one in comparison.gone],
        "changed": [{"before": _plain(c.before), "after": _plain(c.after)} for c in comparison.changed],
        "recompiles": [{**asdict(c.cause), "before": c.before, "after": c.after} for c in comparison.causes],
        "new_eager": [asdict(function) for function in comparison.new_eager],
        "gone_eager": [asdict(function) for function in comparison.gone_eager],
    }
    json.dump(made, stream, indent=2)
    stream.write("\n")


def _plain(one: KnownBreak) -> dict[str, object]:
    return {**asdict(one), "verdict": one.verdict.value}
