"""Keeps what compiler caches were asked short: most of a key is the same for all graphs of a program."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from breakscan.record.parsers.cache_keys import digest_of
from breakscan.record.records.generated import CacheLooked, CacheSettings
from breakscan.record.traced import TracedLookup


class CacheLookups:
    """The settings that are recorded of this process."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._known: dict[str, Mapping[str, str]] = {}

    def take(self, said: TracedLookup) -> Iterator[CacheSettings | CacheLooked]:
        """What to record of a lookup, new settings first."""
        if self._pid != os.getpid():
            # Its records go to a file of their own.
            self._pid, self._known = os.getpid(), {}
        digest = None
        if said.settings:
            digest = digest_of(f"{name} {value}" for name, value in sorted(said.settings.items()))
            if digest not in self._known:
                yield self._new(digest, said.settings)
                self._known[digest] = said.settings
        yield CacheLooked(said.compile_id, said.cache, said.outcome, said.reason, said.guards, dict(said.parts), digest)

    def _new(self, digest: str, settings: Mapping[str, str]) -> CacheSettings:
        """What is as in the first settings is left out."""
        base, first = next(iter(self._known.items()), (None, {}))
        changed = {name: value for name, value in settings.items() if first.get(name) != value}
        return CacheSettings(digest, base, changed)
