"""Runs of the whole program with and without changes, as their parent sees them, and their comparison."""

import os
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.function_values import observations_of
from breakscan.fix.source_map import SourceMap
from breakscan.model.findings import Severity
from breakscan.model.observations import Observations
from breakscan.model.problem import Problem, ProblemKind
from breakscan.prove.equal import TOLERANCES
from breakscan.prove.faster import Ratio, Rounds
from breakscan.prove.original import explained
from breakscan.prove.process import LOOKS, WorkerProcess
from breakscan.prove.program_run import WholeProgram
from breakscan.prove.proof import RunFigures, Texts
from breakscan.prove.protocol import (
    FLOAT,
    IN_STEP,
    OF_CALL,
    BlockTime,
    CallSite,
    Description,
    LoopSite,
    RunReport,
    RunRequest,
)
from breakscan.prove.worker import Candidate, Crash, OutOfTime, Worker, WorkerError, Workers
from breakscan.source.paths import display_path

ROOM = 8.0
"""The times of the tolerance of a single operation that values at the end of a run may be apart."""
USUAL = 4.0
"""The times of the noise of the program itself."""
RANDOM = 0.05
"""The noise from which on values say nothing: they depend on other random numbers."""
STEADY = 1e-6
"""The noise up to which Python's floats are compared: those that vary more are times, which no other run has."""
TOLERATED = {**TOLERANCES, FLOAT: TOLERANCES["torch.float32"]}
FEWEST = 0.5
"""The share of the values with a tolerance that must be there: a change may turn some into others."""
PLAIN_SECONDS = 3.5 * LOOKS
"""Seconds from which on plain calls count: before Python 3.12, they are found by looks at the stacks."""
WARMING = 2
"""Steps that are left out after compiling, if there are enough others: the first ones fill caches."""
ENOUGH = 8
MOST_ROUNDS = 64
Site = TypeVar("Site", LoopSite, CallSite)
VALUES = "values.pt"
"""The file of the values that a run ended with, in the folder of its process."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the program.  ``dtypes`` are those of the values that it ended with by path, if these were kept;
    ``distances`` are those from the values of another run, ``seconds`` those of its process; ``plain`` are the
    functions that are called plainly."""

    about: Description
    report: RunReport
    explanation: Explanation
    observations: Observations
    dtypes: Mapping[str, str]
    distances: Mapping[str, float]
    worker: Worker
    seconds: float
    plain: frozenset[tuple[str, ...]]

    def figures(self, loop: int | None) -> RunFigures:
        """Its figures; ``loop`` is the number of the loop, an iteration of which is a step."""
        shown = self.explanation
        clean = [one.seconds for one in self.steps(loop) if not one.compiles]
        return RunFigures(
            breaks=shown.break_events,
            recompiles=len(shown.recompiles),
            eager_functions=shown.eager_frames + len(self.plain),
            graphs=len(shown.graphs),
            compile_seconds=shown.compile_seconds,
            run_seconds=self.report.run_seconds,
            step_seconds=statistics.median(clean) if clean else None,
            memory_bytes=self.report.memory_bytes,
        )

    @property
    def lines(self) -> int:
        """The number of lines of which operations were compiled."""
        return len({line for graph in self.explanation.graphs for line in graph.lines})

    def steps(self, loop: int | None) -> Sequence[BlockTime]:
        """The steps of the loop with this number."""
        loops = self.report.loops
        return loops[loop] if loop is not None and loop < len(loops) else ()


def _is_plain(problem: Problem, known: Run | None) -> bool:
    """Return whether a function is called plainly, for long enough not to be missed or as in the ``known`` run."""
    is_it = problem.kind is ProblemKind.PLAIN_CALLS and problem.severity is not Severity.INFO
    is_known = known is not None and problem.functions in known.plain
    return is_it and (is_known or problem.cost is None or problem.cost > PLAIN_SECONDS)


def step_loop(loops: Sequence[Sequence[BlockTime]]) -> int | None:
    """The number of the loop whose steps without compiles take most of the run; of equal ones the innermost."""
    covered = [sum(step.seconds for step in loop if not step.compiles) for loop in loops]
    most = max(covered, default=0.0)
    if not most:
        return len(loops) - 1 if loops else None
    return max(number for number, seconds in enumerate(covered) if seconds > 0.9 * most)


def ratio_of(before: Run, after: Run, loop: int | None) -> Ratio | None:
    """The speed ratio of two runs, from the steps in which neither compiles; None where there are none."""
    pairs = [
        (one.seconds, other.seconds)
        for one, other in zip(before.steps(loop), after.steps(loop), strict=False)
        if not one.compiles and not other.compiles
    ]
    if len(pairs) >= ENOUGH:
        pairs = pairs[WARMING:]
    if not pairs:
        return None
    size = -(-len(pairs) // MOST_ROUNDS)
    blocks = [pairs[at : at + size] for at in range(0, len(pairs), size)]
    befores, afters = ([sum(pair[side] for pair in block) for block in blocks] for side in (0, 1))
    return Rounds({"before": befores, "after": afters}).ratio("after", "before")


class Runs:
    """Runs the program with the texts of its files replaced.  ``loops`` are those of the program as it is, whose steps
    are timed, ``calls`` those of which results are kept, and ``originals`` the texts of its files."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self.loops: tuple[LoopSite, ...] = ()
        self.calls: tuple[CallSite, ...] = ()
        self.originals: Texts = {}

    def run(
        self,
        texts: Texts,
        request: RunRequest,
        longest: float,
        cache_of: Run | None = None,
        known: Run | None = None,
        keep: bool = False,
        fails: bool = False,
        again: bool = True,
    ) -> Run:
        """Runs the program with these texts, compares its values with the ``known`` run's, and keeps them if ``keep``.

        Raises WorkerError where it fails, if not ``fails``, takes longer than ``longest`` seconds, or did not load a
        text, and OutOfTime where the time of all is up."""
        back = {path: SourceMap.of_change(text, self.originals[path]) for path, text in texts.items()}

        def now(site: Site) -> Site:
            return replace(site, line=back[site.path].before(site.line)) if site.path in back else site

        loops = tuple(map(now, self.loops))
        calls = {now(one): f"{display_path(one.path, os.getcwd())}:{one.line}" for one in self.calls}
        # They are watched in a new text, also where nothing else changes.
        paths = {one.path for one in loops} | {one.path for one in calls}
        watched = {path: self.originals[path] for path in paths} | dict(texts)
        candidate = Candidate("", texts={path: (self.originals[path], text) for path, text in watched.items()})
        began = time.monotonic()
        cache = cache_of.worker if cache_of else None
        try:
            with self.workers.start(candidate, cache, whole=replace(request, loops=loops, calls=calls)) as worker:
                worker.until = min(worker.until, began + longest)
                about = worker.ask(WorkerProcess.describe)
                if about.error and not fails:
                    raise WorkerError(about.error)
                missing = [path for path in texts if path not in about.loaded]
                if missing:
                    raise WorkerError(f"{display_path(missing[0], os.getcwd())} was not loaded")
                report = worker.ask(WholeProgram.report)
                dtypes = worker.ask(WholeProgram.save, str(worker.folder / VALUES)) if keep else {}
                distances = worker.ask(WholeProgram.distances, str(known.worker.folder / VALUES)) if known else {}
                shown, processes = explained(worker, self.workers.library, texts)
                # It has nothing left to do, and the pool of Inductor's compile processes takes seconds to end.
                worker.kill()
        except OutOfTime:
            if worker.until < self.workers.until:
                raise WorkerError(f"it took longer than {longest:.0f} s") from None
            raise
        except Crash:  # seen on CPython 3.11, in a proof as well: the change need not be the cause
            if not again:
                raise
            return self.run(texts, request, longest, cache_of, known, keep, fails, again=False)
        seconds = time.monotonic() - began
        plain = frozenset(one.functions for one in shown.problems if _is_plain(one, known))
        return Run(about, report, shown, observations_of(processes), dtypes, distances, worker, seconds, plain)


class EndValues:
    """Compares the values that a run ends with, and what its calls return, with those of the program as it is.
    ``noise`` holds how far those of runs of the program as it is are apart, compiled and eager; ``trains`` says that it
    runs backward passes, of which the gradients and weights show the results."""

    def __init__(self, noise: Sequence[Mapping[str, float]], dtypes: Mapping[str, str], trains: bool = False) -> None:
        self.noise = noise
        self._trains = trains
        self._of_calls: dict[str, float] = {}
        """The noise of what each call returns."""
        for one in noise:
            for path in filter(_call_of, one):
                self._of_calls[_call_of(path)] = max(self._of_calls.get(_call_of(path), 0.0), one[path])
        self._dtypes = {path: dtype for path, dtype in dtypes.items() if dtype != FLOAT or self._of(path) <= STEADY}
        self._floats = [path for path, dtype in self._dtypes.items() if dtype in TOLERATED]
        self._results = [path for path in self._dtypes if _call_of(path)]
        named = [path for path in self._floats if not _call_of(path)]
        compared = (named, () if trains and named else self._results)
        self.is_possible = bool(self._floats) and all(
            statistics.median(map(self._of, paths)) < RANDOM for paths in compared if paths
        )
        """False where there is nothing to compare, or where values depend on the random numbers of compiled code."""

    def compares(self, distances: Mapping[str, float]) -> bool:
        """Return whether the values of a run show what its compiled code computes: weights alone do not."""
        is_there = self._trains or not self._results or any(path in distances for path in self._results)
        return self.is_possible and is_there

    def difference(self, distances: Mapping[str, float], room: float = ROOM) -> str | None:
        """The path of the value that differs most, with how far it does, or how few values are there; None if they are
        equal, or cannot be compared.  ``room`` is the number of tolerances that they may be apart."""
        if not self.is_possible:
            return None
        kept = [path for path in self._floats if IN_STEP not in path and not _call_of(path)]
        there = sum(path in distances for path in kept)
        if there < FEWEST * len(kept):
            return f"{there} of {len(kept)} values are there at the end of the run"
        known = {path: room * TOLERATED.get(dtype, 0.0) for path, dtype in self._dtypes.items() if path in distances}
        allowed = {path: max(most, USUAL * self._of(path)) or 1e-300 for path, most in known.items()}
        times = {path: distances[path] / most for path, most in allowed.items()}
        at = max(times, key=times.__getitem__, default="")
        is_equal = times.get(at, 0.0) <= 1
        return None if is_equal else f"{at} differs by {distances[at]:.2g} (allowed {allowed[at]:.2g})"

    def _of(self, path: str) -> float:
        return self._of_calls.get(_call_of(path), max((one.get(path, 0.0) for one in self.noise), default=0.0))


def _call_of(path: str) -> str:
    """The call whose result has a part of this path: ``model() at train.py:12``; empty for other values."""
    return path.partition(OF_CALL)[2].partition(" of ")[2]
