"""Answers of the tools: the JSON of a command, cut to what an agent reads.  In answers, a place is
``file:line:column``, and a remedy its text.  Values that are empty are left out.  The longest list is read a page at a
time: ``more`` is the number of entries that follow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from breakscan.model.problem import ProblemKind

Report = Mapping[str, Any]
Answer = dict[str, Any]
MOST_LINES = 240  # of a diff


@dataclass(frozen=True, slots=True)
class Kept:
    """The keys of a report that its answer has, the list that is read by pages, and the keys of its entries."""

    keys: tuple[str, ...]
    paged: str
    of_entries: tuple[str, ...]


KEPT = {
    "check": Kept(
        ("summary", "errors", "warnings"),
        "findings",
        tuple("site rule name severity message confidence function condition behind rewrites remedies".split()),
    ),
    "fix": Kept(("summary", "errors"), "files", ("path", "written", "diff", "safe", "unsafe", "declined", "without")),
    "explain": Kept(
        ("summary", "notices"),
        "problems",
        tuple("site kind rule gb_id what why consequences functions count takes remedies hints".split()),
    ),
    "verify": Kept(
        ("calls", "compiled", "unreached", "declined", "notes", "applied", "not_applied", "held_back"),
        "proofs",
        ("label", "site", "rule", "rewrite", "verdict", "says", "reasons", "breaks", "unseen", "varied", "held_back"),
    ),
    "tune": Kept(("says", "best", "notes", "applied", "not_applied"), "tried", ("names", "verdict", "reason")),
}
_INSIDE = {
    "finding": ("site", "rule"),
    "without": ("site", "rule"),
    "remedies": ("text",),
    "reasons": ("reason",),
    "candidates": ("names", "kind"),
    **dict.fromkeys(("unseen", "varied", "compiled"), ("says",)),
}
"""The keys of objects under these keys; of a single one, its value is left."""


def answer(command: str, report: Report, offset: int, limit: int, **more: Any) -> Answer:
    """Return the answer of a tool from the report of its command, with ``more`` that is not in that."""
    kept = KEPT[command]
    entries = [one for one in report[kept.paged] if _is_read(one)]
    page = [_picked(one, kept.of_entries) for one in entries[offset : offset + limit]]
    left = len(entries) - offset - limit
    values = {**_picked(report, kept.keys), **more, kept.paged: page, "more": left if left > 0 else None}
    return {key: shown for key, one in values.items() if (shown := _plain(one, key)) is not None}


def _is_read(entry: Report) -> bool:
    """Return False for a problem that another one explains, and for a function that loses nothing."""
    lossless = (ProblemKind.FUNCTION.value, None)
    return entry.get("cause") is None and (entry.get("kind"), entry.get("verdict", "")) != lossless


def _picked(values: Report, keys: Sequence[str]) -> Answer:
    return {key: values[key] for key in keys if key in values}


def _plain(value: Any, key: str = "") -> Any:
    """Return a value in fewer words; None for an empty one."""
    if isinstance(value, str):
        lines = value.splitlines(keepends=True)
        rest = f"… {len(lines) - MOST_LINES} lines more" if len(lines) > MOST_LINES else ""
        return "".join(lines[:MOST_LINES]) + rest or None
    if isinstance(value, list):
        return [shown for one in value if (shown := _plain(one, key)) is not None] or None
    if not isinstance(value, Mapping):
        return float(f"{value:.4g}") if isinstance(value, float) else value
    if {"path", "line", "column"} <= value.keys():
        message = f": {value['message']}" if "message" in value else ""
        cell = f"cell {value['cell']}:" if "cell" in value else ""
        return f"{value['path']}:{cell}{value['line']}:{value['column']}{message}"
    keys = _INSIDE.get(key, tuple(value))
    if len(keys) == 1:
        return _plain(value.get(keys[0]))
    shown = {name: _plain(one, name) for name, one in _picked(value, keys).items()}
    return {name: one for name, one in shown.items() if one is not None and one is not False} or None
