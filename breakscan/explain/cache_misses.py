"""Why a compiler cache had nothing: by what its key is made of, compared with earlier lookups for the same function.

Torch itself tells no more than whether the cache has something under the same key whose guards do not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from breakscan.explain.compiled import CacheMiss, CacheUse, KeyChange, MissKind
from breakscan.record.records import CacheLooked, CacheSettings, Code, CompileStarted, Record

_BACKWARD = "fx_kwargs[is_backward]"
_MOST_COMPARED = 8
"""Earlier lookups for a function that a new one is compared with."""


@dataclass(frozen=True, slots=True)
class _Lookup:
    compile_id: str
    parts: Mapping[str, str]


def cache_uses(records: Sequence[Record]) -> dict[str, list[CacheUse]]:
    """What the caches had for each compilation of a process."""
    codes = {r.compile_id: r.code for r in records if isinstance(r, CompileStarted)}
    settings = _settings(records)
    earlier: dict[tuple[Code | None, str, str | None], list[_Lookup]] = {}
    uses: dict[str, list[CacheUse]] = {}
    for looked in records:
        if isinstance(looked, CacheLooked):
            parts = {**settings.get(looked.settings or "", {}), **looked.parts}
            about = codes.get(looked.compile_id), looked.cache, parts.get(_BACKWARD)
            known = earlier.setdefault(about, [])
            miss = _miss(looked, parts, known) if looked.outcome == "miss" else None
            use = CacheUse(looked.cache, looked.outcome, looked.reason, miss)
            uses.setdefault(looked.compile_id, []).append(use)
            if parts:
                known.append(_Lookup(looked.compile_id, parts))
    return uses


def _settings(records: Iterable[Record]) -> dict[str, Mapping[str, str]]:
    found: dict[str, Mapping[str, str]] = {}
    for record in records:
        if isinstance(record, CacheSettings):
            found[record.digest] = {**found.get(record.base or "", {}), **record.values}
    return found


def _miss(looked: CacheLooked, parts: Mapping[str, str], earlier: Sequence[_Lookup]) -> CacheMiss:
    """By the earlier lookup that differs least."""
    if looked.guards is not None:
        return CacheMiss(MissKind.GUARDS, looked.guards or None)
    if not parts or not earlier:
        return CacheMiss(MissKind.NEW)
    nearest = min(reversed(earlier[-_MOST_COMPARED:]), key=lambda lookup: len(list(_changes(lookup.parts, parts))))
    changes = tuple(_changes(nearest.parts, parts))
    kind = MissKind.CHANGED if changes else MissKind.LOST
    return CacheMiss(kind, than=nearest.compile_id, changes=changes)


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[KeyChange]:
    for name in {**old, **new}:
        before, now = old.get(name), new.get(name)
        if before != now:
            yield KeyChange(name, _shown(before), _shown(now))


def _shown(value: str | None) -> str | None:
    return None if value is None or value.startswith("#") else value
