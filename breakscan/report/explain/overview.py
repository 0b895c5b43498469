"""The findings of a run that has many: how many of each kind, and in each file, with what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from breakscan.model.words import short_path
from breakscan.report.explain.entries import ReportEntry
from breakscan.report.explain.sections import Section
from breakscan.rulebook.document import rule_words

MANY = 20
"""Entries from which on a report begins with an overview."""
_MOST_FILES = 10


@dataclass(frozen=True, slots=True)
class Group:
    """Entries that have something in common: ``sites`` of them, met ``times`` in all, which cost ``seconds`` of the
    run."""

    name: str
    sites: int
    times: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Overview:
    """The groups by kind of finding and by file: the most expensive first, then the largest.  ``other_files`` is the
    number of files that are left out."""

    kinds: Sequence[Group]
    files: Sequence[Group]
    other_files: int


def overview(sections: Sequence[Section]) -> Overview | None:
    """None where there are few entries."""
    entries = [entry for section in sections for entry in section.entries]
    if len(entries) < MANY:
        return None
    files = _grouped(entries, lambda entry: short_path(entry.site.path))
    kinds = _grouped(entries, lambda entry: rule_words(entry.rule) or entry.name)
    return Overview(kinds, files[:_MOST_FILES], max(0, len(files) - _MOST_FILES))


def _grouped(entries: Iterable[ReportEntry], name_of: Callable[[ReportEntry], str]) -> list[Group]:
    groups: dict[str, list[ReportEntry]] = {}
    for entry in entries:
        groups.setdefault(name_of(entry), []).append(entry)
    made = [
        Group(name, len(own), sum(entry.count for entry in own), sum(entry.seconds for entry in own))
        for name, own in groups.items()
    ]
    return sorted(made, key=lambda group: (-group.seconds, -group.sites, group.name))
