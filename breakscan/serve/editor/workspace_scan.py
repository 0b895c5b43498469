"""The files of a workspace from which the compiler reaches others, found in a separate process: no keystroke waits."""

import asyncio
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread

from breakscan.check.pipeline.check import check_paths
from breakscan.rulebook.config import NearestSettings
from breakscan.source.files import discover

Roots = dict[Path, tuple[Path, ...]]  # for each file with findings the others whose checks report all


def compiled_from(folders: Sequence[Path]) -> Roots:
    """Check all files of some folders.  The cache has the results of those for which nothing changed since.  Raises
    ConfigError and RuleError for a wrong configuration."""
    settings = NearestSettings()
    found = check_paths(discover(folders, settings).files, settings, jobs=1).roots
    return {Path(os.path.abspath(path)): tuple(map(Path, roots)) for path, roots in found.items()}


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
