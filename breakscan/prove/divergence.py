"""Finds the stage and the operation at which compiled code first differs from eager, and a setting that helps."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from breakscan.prove.compiled_parts import CompiledParts
from breakscan.prove.equal import Part, ResultDifference
from breakscan.prove.original import Original
from breakscan.prove.proof import Divergence
from breakscan.prove.protocol import CompiledPart, CompileOption, GraphOperation, Stage
from breakscan.prove.worker import UNCHANGED, Worker, WorkerError
from breakscan.source.paths import display_path

STAGES = {
    "eager": Stage.DYNAMO,
    "aot_eager": Stage.AOT_AUTOGRAD,
    "aot_eager_decomp_partition": Stage.DECOMPOSITIONS,
    "inductor": Stage.INDUCTOR,
}
"""The stages of compiling, by the backend that ends with each of them."""
SETTINGS: Sequence[tuple[str, CompileOption]] = (
    ("emulate_precision_casts", True),
    ("eager_numerics.division_rounding", True),
    ("pattern_matcher", False),
    ("joint_graph_constant_folding", False),
    ("max_fusion_size", 1),
    ("layout_optimization", False),
    ("cpp.simdlen", 1),
    ("cpp.enable_floating_point_contract_flag", "off"),
    ("split_reductions", False),
    ("triton.mix_order_reduction", False),
    ("inplace_buffers", False),
    ("allow_buffer_reuse", False),
)
"""Settings of Inductor that are tried: first those that cost the least."""
LONGEST = 120.0
"""Seconds after which nothing more is tried."""
WHOLE = 10**9
_SHOWN = 9
_SHOWS = "import runpy, sys\ntry: runpy.run_path({!r})\nexcept AssertionError: sys.exit({})"
"""Ends with a status of its own if the results of a program differ, whatever else may be wrong with it."""


class _Lost(Exception):
    """The search cannot go on: a part does not run by itself, or it takes too long."""


def find_divergence(original: Original, differences: Sequence[ResultDifference], program: Path | None) -> Divergence:
    """Runs the first call that differs in a further process, in parts, and writes a minimal ``program``."""
    first: dict[object, ResultDifference] = {}
    for difference in differences:
        first.setdefault((difference.part, difference.path), difference)
    found = Divergence(tuple(first.values()))
    search = None
    with contextlib.suppress(WorkerError), original.workers.start(UNCHANGED, original.first) as worker:
        worker.ready()
        if not original.hand_over(worker):
            search = _Search(worker, original, found, program)
            search.run()
    return search.found if search is not None else found


def _bisect(low: int, high: int, holds: Callable[[int], bool]) -> tuple[int, int]:
    """The neighbours between which ``holds`` changes from False to True."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


class _Search:
    def __init__(self, worker: Worker, original: Original, found: Divergence, program: Path | None) -> None:
        self.found = found
        self._torch = worker.ready().torch
        self._program = program
        self._worker = worker
        self._original = original
        self._call = found.differences[0].call
        self._until = time.monotonic() + LONGEST
        self._operations: Sequence[GraphOperation] = ()
        # Values of random numbers are compared where compiled code draws the same ones.
        self._settings: Mapping[str, CompileOption] = {"fallback_random": True} if original.run.random else {}

    def run(self) -> None:
        """Search, and fill in the stage, the operation and the setting as far as they are found."""
        with contextlib.suppress(_Lost):
            if not self._differs():
                if not self._settings:
                    return
                self.found = replace(self.found, setting=next(iter(self._settings.items())))
                self._settings = {}
                if not self._differs():
                    return
            self._find_stage()

    def _find_stage(self) -> None:
        backend = next((one for one in STAGES if self._differs(part=CompiledPart(one, 0, WHOLE))), None)
        self.found = replace(self.found, stage=STAGES.get(backend or "", Stage.BACKEND))
        if backend is None or backend == "eager":
            return
        with contextlib.suppress(_Lost):
            self._find_operation(backend)
        if backend == "inductor" and self.found.setting is None:
            self.found = replace(self.found, setting=next(filter(self._agrees_with, SETTINGS), None))

    def _find_operation(self, backend: str) -> None:
        """Finds the operation with which a part from the beginning starts to differ, and the shortest such part."""
        ends = [0, *(number for number, one in enumerate(self._operations, 1) if one.ends_part)]
        _, last = _bisect(0, len(ends) - 1, lambda at: self._differs(part=CompiledPart(backend, 0, ends[at])))
        self.found = replace(self.found, operation=self._operation(ends[last - 1], ends[last]))
        part = CompiledPart(backend, 0, ends[last])
        first, _ = _bisect(0, last, lambda at: not self._differs(part=replace(part, first=ends[at])))
        if first < last - 1:
            self.found = replace(self.found, since=self._operation(ends[first], ends[first + 1]))
        if self._program is not None:
            self._write_program(self._program, replace(part, first=ends[first], keep=True))

    def _operation(self, first: int, last: int) -> GraphOperation:
        # The others up to the next end take its result apart, or switch modes.
        added = self._operations[first:last]
        operation = next((one for one in added if one.path), added[0])
        return replace(operation, path=display_path(operation.path, os.getcwd()) if operation.path else "")

    def _write_program(self, program: Path, part: CompiledPart) -> None:
        """Writes a part as a program, if it differs by itself."""
        self._differs(part=part)
        first = self.found.differences[0]
        words = f"torch {self._torch}: compiled differs from eager ({part.backend})"
        # The worker takes back what it writes elsewhere.
        written = self._worker.folder / "program.py"
        if self._worker.ask(CompiledParts.write_program, str(written), words, first.allowed or 0.0):
            code = _SHOWS.format(str(written), _SHOWN)
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=LONGEST, check=False)
            if done.returncode == _SHOWN:
                for path in self._worker.folder.glob("program.py*"):
                    shutil.copy(path, f"{program}{path.name.removeprefix(written.name)}")
                self.found = replace(self.found, program=display_path(str(program), os.getcwd()))

    def _agrees_with(self, setting: tuple[str, CompileOption]) -> bool:
        try:
            return not self._differs(dict([setting]))
        except WorkerError:
            if self._worker.ended:
                raise
            # This torch does not have the setting.
            return False

    def _differs(self, settings: Mapping[str, CompileOption] | None = None, part: CompiledPart | None = None) -> bool:
        """Runs the call. Raises _Lost if it raises where the compiled program does not, or if time is up."""
        if time.monotonic() > self._until:
            raise _Lost
        settings = {**self._settings, **(settings or {})}
        operations, run = self._worker.ask(
            CompiledParts.run, self._original.eager_reference, self._call, settings, part
        )
        self._operations = operations or self._operations
        differences = self._original.differences_of_part(run, bool(self._settings))
        raises = any(one.part is Part.EXCEPTION for one in differences)
        if raises and not any(one.part is Part.EXCEPTION for one in self.found.differences):
            raise _Lost
        return bool(differences)
