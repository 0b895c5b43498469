"""The libraries whose functions were traced."""

from __future__ import annotations

from collections.abc import Iterable

from breakscan.record.records import LibrarySeen, Record


def library_versions(records: Iterable[Record]) -> dict[str, str]:
    """Their versions, by the names that they are imported by."""
    return {record.name: record.version for record in records if isinstance(record, LibrarySeen)}
