"""Checks files one by one, and keeps their results for later runs."""

from __future__ import annotations

from pathlib import Path

from breakscan.check.pipeline.cache_fingerprint import Caches
from breakscan.check.pipeline.deep_stack import with_deep_stack
from breakscan.check.pipeline.file_checkers import FileCheckers
from breakscan.check.pipeline.observed import with_observed
from breakscan.check.pipeline.results import FileResult
from breakscan.rulebook.config import FileSettings


class ResultKeeper:
    """Checks files with ``checkers``, and keeps their results in the caches that settings name.  It takes files to be
    as they were when it first read them."""

    def __init__(self, settings: FileSettings, checkers: FileCheckers | None = None) -> None:
        self._settings = settings
        self._checkers = checkers or FileCheckers(settings)
        self._caches = Caches(settings, Path.cwd())
        self._observing = FileCheckers(settings, observing=True)

    def known(self, path: Path) -> FileResult | None:
        """The result of an earlier run for a file at an absolute path, where it still holds."""
        cache = self._caches.of(path)
        return cache.get(path) if cache is not None else None

    def check(self, path: Path) -> FileResult:
        """The result for a file at an absolute path, found out anew."""
        result = with_deep_stack(self._checkers.check_file, path)
        observations = self._settings.of(path).observations
        if observations is not None and observations.concern(result.depends.values()):
            observed = with_deep_stack(self._observing.check_file, path)
            result = with_observed(result, observed, observations)
        cache = self._caches.of(path)
        if cache is not None and not result.errors:
            cache.put(path, result)
        return result

    def release(self, keep: FileCheckers | None = None) -> None:
        """Lets go of all trees but those of ``keep``."""
        for checkers in (self._checkers, self._observing):
            if checkers is not keep:
                checkers.release()
