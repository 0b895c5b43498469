"""The names of the pages of units, and what such a page is made of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from breakscan.survey.store import Store, Surveyed
from breakscan.survey.unit_row import UnitRow, row_of

FOLDER = "units"
_LONGEST = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")


@dataclass(frozen=True, slots=True)
class UnitReport:
    """A unit, and the JSON that each stage wrote."""

    row: UnitRow
    surveyed: Surveyed
    reports: Mapping[str, Mapping[str, Any]]


def unit_reports(store: Store, surveyed: Iterable[Surveyed]) -> Iterator[UnitReport]:
    """What the pages of units are made of, one after the other: all together can be large."""
    for one in surveyed:
        row = row_of(one)
        texts = {stage: store.report(row.key, stage) for stage in one.results}
        yield UnitReport(row, one, {stage: json.loads(text) for stage, text in texts.items() if text is not None})


def page_names(rows: Iterable[UnitRow]) -> dict[str, str]:
    """The path of the page of each unit, by its key: of names that any file system and address can hold."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for row in rows:
        words = "-".join(filter(None, (row.name, *row.conditions, row.torch)))
        name = _UNSAFE.sub("-", words).strip("-.")[:_LONGEST] or "unit"
        if name.lower() in taken:
            name = f"{name}-{row.key}"
        taken.add(name.lower())
        names[row.key] = f"{FOLDER}/{name}.html"
    return names
