"""Lookups in the compiler's caches, and the reasons of misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from breakscan.model.words import listed
from breakscan.recording.records import CacheLooked, CacheSettings, Code, CompileStarted, Record


class MissKind(str, Enum):
    """The reason of a miss."""

    NEW = "new"
    """Nothing was stored under the key, and nothing was looked up before that could be compared."""
    GUARDS = "guards"
    """The stored code holds for other sizes."""
    CHANGED = "changed"
    """The key is another than that of an earlier lookup for the same function."""
    LOST = "lost"
    """The key is that of an earlier lookup for the same function, after which nothing was stored."""


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A part of a key that is another than before; the values are None where they are too long to be kept."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class CacheMiss:
    """The reason of a miss: the ``guards`` that did not hold, or the ``changes`` since the lookup for ``than``."""

    kind: MissKind
    guards: str | None = None
    than: str | None = None
    changes: tuple[KeyChange, ...] = ()


@dataclass(frozen=True, slots=True)
class CacheUse:
    """A compiler cache and what it had: ``hit``, ``miss`` with why, or ``bypass`` with the reason."""

    cache: str
    outcome: str
    reason: str | None
    miss: CacheMiss | None = None


_MOST_CHANGES = 3
_KEY_PARTS = {"gm": "graph", "example_inputs": "inputs"}
_OF_GRAPH = ("fx_kwargs[", "aot_config")
"""Parts that follow from the graph."""
_OPTIONS = ("inductor_config[", "inductor_config_comms[", "fx_kwargs[")


def misses_in_words(uses: Iterable[CacheUse]) -> str:
    """The reasons of misses, each once, with how often."""
    reasons = Counter(miss_words(use.miss) for use in uses if use.miss is not None)
    return listed([f"{words} ({count}×)" for words, count in reasons.most_common()], "reason")


def miss_words(miss: CacheMiss) -> str:
    """The reason of a miss: ``graph and inputs are others than for 0/0``."""
    if miss.kind is MissKind.GUARDS:
        guards = f": {miss.guards}" if miss.guards else ""
        return f"what is stored holds for other sizes{guards}"
    if miss.kind is MissKind.LOST:
        return f"nothing was stored after the lookup for {miss.than}, with the same key"
    if miss.kind is MissKind.NEW:
        return "nothing was stored under the key"
    changes = [
        _change_words(change)
        for change in sorted(miss.changes, key=lambda one: one.name in _KEY_PARTS)
        if _is_telling(change, miss)
    ]
    return f"the key is another than for {miss.than}: {listed(changes, 'part', _MOST_CHANGES)}"


def _is_telling(change: KeyChange, miss: CacheMiss) -> bool:
    is_graph_new = any(other.name == "gm" for other in miss.changes)
    return not (is_graph_new and change.name.startswith(_OF_GRAPH))


def _change_words(change: KeyChange) -> str:
    name = _KEY_PARTS.get(change.name)
    if name is not None:
        return f"other {name}" if name == "inputs" else f"another {name}"
    setting = change.name
    for option in _OPTIONS:
        setting = setting.removeprefix(option)
    setting = setting.removesuffix("]") if setting != change.name else setting
    if change.old is None and change.new is None:
        return f"another {setting}"
    return f"{setting} is {change.new}, was {change.old}"


_BACKWARD = "fx_kwargs[is_backward]"
_MOST_COMPARED = 8
"""Earlier lookups for a function that a new one is compared with."""


@dataclass(frozen=True, slots=True)
class _Lookup:
    compile_id: str
    parts: Mapping[str, str]


def cache_uses(records: Sequence[Record]) -> dict[str, list[CacheUse]]:
    """The lookups for each compilation of a process."""
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
    """The reason of a miss, by the earlier lookup that differs least."""
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
