"""Runs a variant with Dynamo alone, which can show in seconds that compiling it would be in vain.

Where Dynamo breaks a graph depends on the program and on the settings, and not on the backend. A backend may add
guards: it can cause more recompiles than Dynamo alone, and never fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from breakscan.explain.explanation import Explanation
from breakscan.prove.bench.eager_baseline import EagerBaseline
from breakscan.prove.bench.result import BenchRow, MeasurementStatus, Problem, Variant
from breakscan.prove.worker.baseline import run_compiled
from breakscan.prove.worker.compiled_code import explained
from breakscan.prove.worker.observation import Observation, ObservationKind
from breakscan.prove.worker.protocol import Compile, Stage
from breakscan.prove.worker.worker import ProgramChange, Worker, WorkerError


def trace_alone(
    variant: Variant, baseline: EagerBaseline, folder: Path, started: Callable[[Worker], None] = lambda _: None
) -> Explanation | None:
    """Runs the calls of a variant with Dynamo alone. ``folder`` is new, ``started`` is given the process.

    Returns None if that shows nothing, as it fails or has other calls or values: compiling the variant shows how.
    """
    if baseline.choices.own is None:
        # Its callables are compiled in different ways.
        return None
    options = {**(variant.options if variant.options is not None else baseline.choices.kept), "backend": "eager"}
    try:
        with Worker(baseline.program, ProgramChange({}, variant.settings), folder, server=baseline.server) as worker:
            started(worker)
            about = worker.ready()
            if about.run.unknown_settings or about.run.lost_settings:
                return None
            if baseline.other_than(about) or baseline.not_taken(worker):
                return None
            worker.ask(Compile(options))
            result = worker.ask(run_compiled(worker, patient=False))
            return None if result.failure is not None else explained(worker, (), {})[0]
    except WorkerError:
        return None


def captures_more(explanation: Explanation, than: Explanation) -> bool:
    """Whether there are fewer breaks, or fewer functions that run eager, than in another run."""
    return explanation.break_events < than.break_events or explanation.eager_frames < than.eager_frames


def is_over_limit(explanation: Explanation) -> bool:
    """Whether a function was compiled again until torch fell back to eager."""
    return any(frame.over_limit for frame in explanation.frames)


def first_cause(explanation: Explanation) -> str:
    """Returns what changes from one compilation to the next, empty if nothing is compiled again."""
    return next((one.subject for one in explanation.recompiles), "")


def unsteady_row(variant: Variant, explanation: Explanation) -> BenchRow:
    """Returns the row of a variant that is compiled again until torch falls back to eager."""
    cause = Observation(ObservationKind.RECOMPILES_TO_LIMIT, first_cause(explanation))
    return _row(variant, MeasurementStatus.UNSTEADY, Problem(Stage.RECOMPILING, cause), explanation)


def useless_row(variant: Variant, explanation: Explanation) -> BenchRow:
    """Returns the row of a variant whose settings remove no break."""
    problem = Problem(Stage.NOT_RUN, Observation(ObservationKind.REMOVES_NO_BREAK))
    return _row(variant, MeasurementStatus.SKIPPED, problem, explanation)


def _row(variant: Variant, status: MeasurementStatus, problem: Problem, explanation: Explanation) -> BenchRow:
    return BenchRow(
        variant,
        status,
        problem,
        breaks=explanation.break_events,
        recompiles=len(explanation.recompiles),
        graphs=len(explanation.graphs),
        eager_frames=explanation.eager_frames,
    )
