"""Runs a program in one way, and measures that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from breakscan.bench.best import pays_after
from breakscan.bench.eager_baseline import LONGEST, EagerBaseline
from breakscan.bench.result import BenchRow, MeasurementStatus, Problem, Variant
from breakscan.bench.step_time import pace_of
from breakscan.runtime.explain.explanation import Explanation, FrameStatus
from breakscan.runtime.records import CompileTimed, Record
from breakscan.worker.baseline import compiled_paths
from breakscan.worker.compile_failure import RUN_TIME
from breakscan.worker.compiled_code import explained, kernels_of_step
from breakscan.worker.timing import EAGER, Unsteady
from breakscan.worker.worker import ProgramChange, Worker, WorkerError

Say = Callable[[str], None]

STAGES = ("dynamo", "aot_autograd", "inductor")
"""Each runs within the one before it."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A row, the folder of its process, and what that was recorded to do, where it was."""

    row: BenchRow
    folder: Path
    explanation: Explanation | None = None


class _Stopped(Exception):
    """A way is not measured further."""


class Trial:
    """One way, in an arm of its own.  ``say`` is told what goes on."""

    def __init__(self, variant: Variant, baseline: EagerBaseline, number: int, say: Say) -> None:
        self.row = BenchRow(variant, MeasurementStatus.MEASURED)
        self.explanation: Explanation | None = None
        self._baseline = baseline
        self._say = say
        self._folder = baseline.folder / f"way{number}"

    def run(self) -> Tried:
        """Whatever goes wrong is in the row."""
        variant = self.row.variant
        try:
            self._say("running the program")
            with Worker(self._baseline.program, ProgramChange({}, variant.settings), self._folder) as worker:
                self._measure(worker)
        except _Stopped:
            pass
        except WorkerError as error:
            self._fail(MeasurementStatus.FAILED, error.stage or RUN_TIME, error.first_line)
        return Tried(self.row, self._folder, self.explanation)

    def _measure(self, worker: Worker) -> None:
        about = worker.ready()
        self._require_comparable(about)
        handed = self._baseline.hand_over(worker)
        if handed:
            self._stop(MeasurementStatus.FAILED, RUN_TIME, f"it cannot be given the values of eager runs: {handed[0]}")
        options = self.row.variant.options
        if options is not None:
            worker.ask("compile", how=dict(options))
        self._say("compiling")
        told: dict[str, Any] = {}
        try:
            told = worker.ask("compiled", **compiled_paths(worker), patient=False)
        finally:
            self._explain(worker, told)
        if told["failed"]:
            self._stop(MeasurementStatus.FAILED, *told["failed"])
        self._require_steady(told)
        unlike = self._baseline.unlike(worker)
        if unlike:
            self._fail(MeasurementStatus.DIFFERS, "results", unlike[0].text)
        self._say("timing")
        self._time(worker)

    def _require_comparable(self, about: Mapping[str, Any]) -> None:
        if about["unknown_settings"]:
            self._stop(
                MeasurementStatus.SKIPPED, "not run", f"torch has no setting {', '.join(about['unknown_settings'])}"
            )
        if about["lost_settings"]:
            self._stop(
                MeasurementStatus.SKIPPED, "not run", f"the program sets {', '.join(about['lost_settings'])} itself"
            )
        other = self._baseline.other_than(about)
        if other:
            self._stop(MeasurementStatus.FAILED, RUN_TIME, other)
        if about["warm_cache"]:
            self._baseline.note(
                "the program chooses the folder of its compiler caches itself, and they are not empty: the seconds of "
                "compiling, and after how many calls it pays, are too small"
            )

    def _explain(self, worker: Worker, told: Mapping[str, Any]) -> None:
        """What was recorded, of failed runs as well."""
        explanation, processes = explained(worker, (), {})
        self.explanation = explanation
        stages = _stages(processes)
        if not told and not stages["total"]:
            # The process has ended before anything of it was written down.
            return
        self.row = replace(
            self.row,
            breaks=explanation.break_events,
            recompiles=len(explanation.recompiles),
            graphs=len(explanation.graphs),
            eager_frames=sum(frame.status is FrameStatus.EAGER for frame in explanation.frames),
            compile_seconds=stages,
        )
        if told.get("calls"):
            self.row = replace(
                self.row,
                kernels=kernels_of_step(explanation, told["calls"] / told["doors"]),
                first_call_seconds=told["first_call_seconds"],
                cold_seconds=told["cold_seconds"],
                cold_steps=told["cold_calls"] / told["doors"],
            )

    def _require_steady(self, told: Mapping[str, Any]) -> None:
        assert self.explanation is not None
        given_up = [frame for frame in self.explanation.frames if frame.over_limit]
        if given_up:
            self._stop(MeasurementStatus.UNSTEADY, "recompiling", self._recompiling("until torch gives it up"))
        if told["endless"]:
            self._stop(MeasurementStatus.UNSTEADY, "recompiling", self._recompiling("at every call"))

    def _recompiling(self, how_long: str) -> str:
        assert self.explanation is not None
        cause = next((one.subject for one in self.explanation.recompiles), "")
        return f"it is compiled again {how_long}{f': {cause} changes' if cause else ''}"

    def _time(self, worker: Worker) -> None:
        try:
            pace = pace_of(worker, LONGEST)
        except Unsteady as error:
            if str(error) == EAGER:
                self._stop(MeasurementStatus.FAILED, RUN_TIME, "the program compiles something while it runs eager")
            self._stop(MeasurementStatus.UNSTEADY, "recompiling", self._recompiling("again while it is timed"))
        assert self._baseline.same is not None
        self._baseline.steps += pace.eager
        row = replace(
            self.row,
            processes=1,
            step_seconds=pace.step_seconds,
            ratio=pace.ratio,
            memory_bytes=pace.memory_bytes,
            launches=worker.ask("launches"),
        )
        differs = row.status is MeasurementStatus.DIFFERS
        self.row = replace(row, pays_after_calls=None if differs else pays_after(row, self._baseline.same))

    def _fail(self, status: MeasurementStatus, stage: str, error: str) -> None:
        self.row = replace(self.row, status=status, problem=Problem(stage, error))

    def _stop(self, status: MeasurementStatus, stage: str, error: str) -> None:
        """Raises _Stopped."""
        self._fail(status, stage, error)
        raise _Stopped


def _stages(processes: Sequence[Sequence[Record]]) -> dict[str, float]:
    """The seconds of all compiles, and of each stage without the one within it."""
    found = {"total": 0.0}
    for timed in (record for process in processes for record in process if isinstance(record, CompileTimed)):
        found["total"] += timed.seconds
        # A backward that is compiled later has the last stage alone.
        whole = [timed.phases.get(stage, 0.0) for stage in STAGES]
        for stage, seconds, inner in zip(STAGES, whole, [*whole[1:], 0.0], strict=True):
            if seconds:
                found[stage] = found.get(stage, 0.0) + max(0.0, seconds - inner)
    return found
