"""The process in which the files of a workspace and recordings are read, so that no keystroke waits for them."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import TypeVar

from breakscan.explain.function_costs import Costs, recorded_costs
from breakscan.serve.editor.settings_files import is_settings_file
from breakscan.serve.editor.workspace_scan import ScanStep, WorkspaceScan

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

    async def costs(self, recording: Path, folders: Sequence[Path]) -> Costs:
        """See :func:`.recorded_costs`.  Raises BrokenProcessPool where the process died, too."""
        return await self._call(recorded_costs, recording, folders)

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
        before = _scan.told if _scan is not None else ()
        _scan = WorkspaceScan(folders, before)
    elif changed:
        _scan.changed(changed)
    return _scan.step(first)
