"""The files of a workspace from which the compiler reaches findings in others, kept up to date as files change, in a
separate process, so that no keystroke waits for it."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import TypeVar

from breakscan.check.pipeline.check import no_collector
from breakscan.check.pipeline.checker import Checker, Shown
from breakscan.check.pipeline.results import FileResult
from breakscan.rulebook.config import NearestSettings
from breakscan.source.files import discover, is_settings_file
from breakscan.source.regular_files import Digests

STEP_SECONDS = 0.5
"""Duration of a step, up to the end of a file."""

_Key = tuple[str, int, int]
"""A finding of a file: its rule and where it starts."""


@dataclass(frozen=True, slots=True)
class ScanStep:
    """The changes of a step.  ``roots`` are for each file those from which the compiler reaches its findings; ``left``
    is the number of files still to read."""

    roots: Mapping[Path, tuple[Path, ...]]
    left: int


@dataclass(frozen=True, slots=True)
class _Scanned:
    """The part of a file's result that is kept: the numbers of the files that it depends on, and the files with
    findings."""

    depends: array[int]
    reaches: frozenset[Path]


class WorkspaceScan:
    """Checks the files of some folders step by step, and after a change those that depend on what has changed.

    ``before`` are files for which an earlier scan had results.  All methods raise ConfigError and RuleError for a wrong
    configuration.
    """

    def __init__(self, folders: Sequence[Path], before: Iterable[Path] = ()) -> None:
        self.folders = folders
        self._settings = NearestSettings()
        self._shown = Shown(self._settings)
        self._checker: Checker | None = None
        self._scanned: dict[Path, _Scanned] = {}
        self._numbers: dict[str, int] = {}
        """Of files that results rest on: thousands of results name the same hundreds of files."""
        self._digests: dict[str, str] = {}
        self._found: dict[Path, dict[Path, frozenset[_Key]]] = {}
        """For each file the files whose checks report findings in it, with these."""
        self._roots: dict[Path, tuple[Path, ...]] = {}
        self._touched: set[Path] = set()
        self._unconfirmed = set(before)
        self._stale: dict[Path, None] = dict.fromkeys(self._discovered())

    @property
    def reported(self) -> Collection[Path]:
        """The files for which there are results."""
        return self._roots.keys()

    def changed(self, paths: Iterable[Path]) -> None:
        """Python files or notebooks may have changed, come or gone."""
        digests = Digests()
        others = {str(path) for path in paths if digests.of(str(path)) != self._digests.get(str(path))}
        if not others:
            return
        self._release()
        now = set(self._discovered())
        gone = [path for path in self._scanned if path not in now]
        for path in gone:
            self._forget(path)
            self._stale.pop(path, None)
        others.update(map(str, gone))
        numbers = {self._numbers[path] for path in others if path in self._numbers}
        self._digests |= {path: digests.of(path) for path in others & self._digests.keys()}
        self._stale |= dict.fromkeys(path for path in now if path not in self._scanned)
        self._stale |= dict.fromkeys(
            path for path, known in self._scanned.items() if not numbers.isdisjoint(known.depends)
        )

    def step(self, first: Collection[Path] = (), seconds: float = STEP_SECONDS) -> ScanStep:
        """Reads some of the files that have yet to be read: first those from which files ``first`` were reached."""
        started = time.monotonic()
        waiting = sorted(self._stale, key=lambda path: (not self._concerns(path, first), path))
        with no_collector():
            for path in waiting:
                self._take(path)
                if time.monotonic() - started > seconds:
                    break
        if not self._stale:
            self._release()
            self._touched |= self._unconfirmed
            self._unconfirmed = set()
        changed = {}
        for path in self._touched:
            roots = tuple(self._fewest_roots(path))
            if roots != self._roots.get(path, ()) or path in self._unconfirmed:
                changed[path] = self._roots[path] = roots
        self._unconfirmed -= self._touched
        self._touched = set()
        return ScanStep(changed, len(self._stale))

    def _discovered(self) -> tuple[Path, ...]:
        return discover(self.folders, self._settings).files

    def _concerns(self, path: Path, first: Collection[Path]) -> bool:
        known = self._scanned.get(path)
        return path in first or (known is not None and not known.reaches.isdisjoint(first))

    def _take(self, path: Path) -> None:
        if self._checker is None:
            self._checker = Checker(self._settings)
        result = self._checker.known(path) or self._checker.check(path)
        self._stale.pop(path, None)
        self._forget(path)
        keys: dict[Path, set[_Key]] = {}
        for finding in result.findings:
            if self._shown.shows(finding):
                site = finding.site
                keys.setdefault(Path(os.path.abspath(site.path)), set()).add((finding.rule, site.line, site.column))
        for file, found in keys.items():
            self._found.setdefault(file, {})[path] = frozenset(found)
        self._touched |= keys.keys()
        depends = array("L", self._numbered(result))
        self._scanned[path] = _Scanned(depends, frozenset(keys))

    def _numbered(self, result: FileResult) -> Iterator[int]:
        for path, digest in result.depends.items():
            self._digests.setdefault(path, digest)
            yield self._numbers.setdefault(path, len(self._numbers))

    def _forget(self, path: Path) -> None:
        known = self._scanned.pop(path, None)
        if known is None:
            return
        for file in known.reaches:
            del self._found[file][path]
        self._touched |= known.reaches

    def _fewest_roots(self, path: Path) -> Iterator[Path]:
        """Files whose checks report all findings of a file, itself left out: each time the one that reports most."""
        ways = dict(self._found.get(path, {}))
        left = frozenset[_Key]().union(*ways.values()) - ways.pop(path, frozenset())
        while left:
            best = min(ways, key=lambda root: (-len(ways[root] & left), root))
            left -= ways[best]
            yield best

    def _release(self) -> None:
        if self._checker is not None:
            self._checker.release()
            self._checker = None


T = TypeVar("T")


class ScanProcess:
    """A scan of a workspace in a process of its own, which gives way to what else runs."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    async def step(self, folders: Sequence[Path], changed: Collection[Path], first: Collection[Path]) -> ScanStep:
        """Does the next step: see :meth:`.WorkspaceScan.step`.  Files ``changed`` since the last one.

        Raises ConfigError and RuleError for a wrong configuration, BrokenProcessPool where the process died.
        """
        return await self._call(_step, folders, changed, first)

    async def _call(self, function: Callable[..., T], *arguments: object) -> T:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _start)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)
        except BrokenProcessPool:
            self._pool = None
            raise

    def end(self) -> None:
        """Ends the process at once."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()


_scan: WorkspaceScan | None = None


def _start() -> None:
    with suppress(AttributeError):  # not on Windows
        os.nice(10)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Editors kill servers that take their time, and nobody else would end this process then."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)


def _step(folders: Sequence[Path], changed: Collection[Path], first: Collection[Path]) -> ScanStep:
    global _scan
    if _scan is None or folders != _scan.folders or any(map(is_settings_file, changed)):
        before = _scan.reported if _scan is not None else ()
        _scan = WorkspaceScan(folders, before)
    elif changed:
        _scan.changed(changed)
    return _scan.step(first)
