"""The files of a workspace from which the compiler reaches findings in others, found in a separate process, so that no
keystroke waits for it."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread

from breakscan.check.pipeline.check import no_collector
from breakscan.check.pipeline.checker import Checker, Shown
from breakscan.rulebook.config import NearestSettings
from breakscan.source.files import discover

Roots = dict[Path, tuple[Path, ...]]
"""For each file with findings the fewest other files whose checks report all of them."""

_Key = tuple[str, int, int]
"""A finding of a file: its rule and where it starts."""


def compiled_from(folders: Sequence[Path]) -> Roots:
    """Check all files of some folders.  The cache has the results of those for which nothing changed since.

    Raises ConfigError and RuleError for a wrong configuration.
    """
    settings = NearestSettings()
    shown = Shown(settings)
    checker = Checker(settings)
    found: dict[Path, dict[Path, set[_Key]]] = {}
    with no_collector():
        for path in discover(folders, settings).files:
            for finding in (checker.known(path) or checker.check(path)).findings:
                if shown.shows(finding):
                    site = finding.site
                    ways = found.setdefault(Path(os.path.abspath(site.path)), {})
                    ways.setdefault(path, set()).add((finding.rule, site.line, site.column))
        checker.release()
    return {path: roots for path, ways in found.items() if (roots := tuple(_fewest_roots(path, ways)))}


def _fewest_roots(path: Path, ways: Mapping[Path, set[_Key]]) -> Iterator[Path]:
    """Files whose checks report all findings of a file, itself left out: each time the one that reports most."""
    left = set[_Key]().union(*ways.values()) - ways.get(path, set())
    while left:
        best = min(ways, key=lambda root: (-len(ways[root] & left), root))
        left -= ways[best]
        yield best


class ScanProcess:
    """A process that scans a workspace, and gives way to what else runs."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    async def roots(self, folders: Sequence[Path]) -> Roots:
        """Scan the workspace.  Raises as :func:`compiled_from`, and BrokenProcessPool where the process died."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _start)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, compiled_from, folders)
        except BrokenProcessPool:
            self._pool = None
            raise

    def end(self) -> None:
        """Ends the process at once."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()


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
