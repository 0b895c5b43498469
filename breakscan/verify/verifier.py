"""Proves changes, one by one, against the program as it is.

Two arms run the program as it is: the reference, whose values all others are given, and a second one, that shows how
far two equal processes lie apart.  Each change gets an arm of its own.
"""

from __future__ import annotations

import contextlib
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from breakscan.findings import Site
from breakscan.repair.line_map import LineMap
from breakscan.rulebook.library import Library
from breakscan.runtime.explain.explanation import Explanation, FrameStatus
from breakscan.source.paths import display_path
from breakscan.verify.candidates import Candidate, diff_of
from breakscan.verify.executed_changes import evidence
from breakscan.verify.proof import KernelCode, Metrics, Proof, ProofVerdict
from breakscan.worker import timing as measure
from breakscan.worker.baseline import Baseline, compiled_paths
from breakscan.worker.captured_words import other_calls, require_calls
from breakscan.worker.compare import Plain, ResultDifference, differences, load_outcomes
from breakscan.worker.compiled_code import explained, kernels_of_step
from breakscan.worker.timing import Ratio, Unsteady
from breakscan.worker.worker import UserProgram, Worker, WorkerError

Say = Callable[[str], None]


class _Rejected(Exception):
    """A change is rejected, and need not be looked at further."""


@dataclass(slots=True)
class _Seen:
    """What one arm came to."""

    explanation: Explanation
    metrics: Metrics


@dataclass(slots=True)
class _Reasons:
    found: list[str] = field(default_factory=list)
    equal: bool | None = None

    def add(self, reason: str) -> None:
        if reason not in self.found:
            self.found.append(reason)

    def stop(self, reason: str) -> None:
        """Raises _Rejected."""
        self.add(reason)
        raise _Rejected


class Verifier:
    """Enter it: the program is started.  ``folder`` is new, and can be deleted behind the block."""

    def __init__(self, program: UserProgram, folder: Path, library: Library, say: Say) -> None:
        self.program = program
        self.same: Ratio | None = None
        self.notes: list[str] = []
        self.executed: dict[str, list[int]] = {}
        self.about: dict[str, Any] = {}
        self._folder = folder
        self._library = library
        self._say = say
        self._workers = contextlib.ExitStack()
        self._number = 0
        self._prepared = False
        self._unrepeatable: list[str] = []
        self._original_differs: list[ResultDifference] = []
        self._first: Worker
        self._second: Worker
        self._reference: Baseline
        self._compiled: dict[str, list[Plain]] = {}
        self._starts: list[dict[str, str]] = []
        self._wavering: set[str] = set()
        self.seen: _Seen
        self._seconds = 0.0

    def __enter__(self) -> Verifier:
        """Raises NothingToMeasure and ArmError."""
        try:
            self._start()
        except BaseException:
            self._workers.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.close()

    # -- the program as it is -----------------------------------------------------------------------------------

    def _start(self) -> None:
        self._say("running the program")
        self._first = self._workers.enter_context(self._worker(Candidate("")))
        self._second = self._workers.enter_context(self._worker(Candidate("")))
        self.about = self._first.ready()
        require_calls(self.about)
        self._second.ready()
        self._starts = self._first.ask("start")
        self._wavering = self._other_starts(self._second)
        self._reference = Baseline(self._first)
        self._say("compiling the program as it is")
        self.seen = self._compile(self._first, Candidate(""))

    def watch(self, files: Sequence[str]) -> None:
        """Runs the original eager, notes which lines of these files it executes, and how well it repeats itself."""
        self.executed = self._reference.run(files)
        self._unrepeatable = self._reference.unrepeatable(self._second)
        self.notes += self._reference.notes
        self._compiled = self._reference.compiled(self._first)
        self._original_differs = self._reference.differences(self._compiled)
        if self._original_differs:
            worst = self._original_differs[0].text
            self.notes.append(f"compiled, the program as it is differs from eager already: {worst}")

    def _worker(self, candidate: Candidate) -> Worker:
        self._number += 1
        return Worker(self.program, candidate.change, self._folder / f"arm{self._number}")

    def _other_starts(self, worker: Worker) -> set[str]:
        """What the program has come to otherwise before the first calls."""
        found: set[str] = set()
        for own, other in zip(self._starts, worker.ask("start"), strict=False):
            found |= {name for name in own if name in other and own[name] != other[name]}
        return found

    # -- compiling ----------------------------------------------------------------------------------------------

    def _compile(self, worker: Worker, candidate: Candidate) -> _Seen:
        told = worker.ask("compiled", **compiled_paths(worker))
        texts = {
            (path, number): line
            for path, (_, after) in candidate.texts.items()
            for number, line in enumerate(after.split("\n"), 1)
        }
        explanation, _ = explained(worker, self._library, texts)
        return _Seen(explanation, _metrics(explanation, told["first_call_seconds"], told["calls"] / told["doors"]))

    # -- a change -----------------------------------------------------------------------------------------------

    def prove(self, candidate: Candidate) -> Proof:
        """Runs the program with the change, and says what is found."""
        self._say(f"{candidate.label}: running the program")
        reasons = _Reasons()
        proof = Proof(
            candidate.label,
            ProofVerdict.REJECTED,
            (),
            None,
            self.seen.metrics,
            rule=candidate.finding.rule if candidate.finding else None,
            rewrite=candidate.rewrite,
            site=candidate.finding.site if candidate.finding else None,
            difference=candidate.difference,
            diff=diff_of(candidate, {path: display_path(path, os.getcwd()) for path in candidate.texts}),
            members=candidate.members,
            breaks_there=bool(candidate.targets or candidate.softened) or candidate.finding is None,
        )
        try:
            with self._worker(candidate) as worker:
                proof = self._judge(worker, candidate, proof, reasons)
        except _Rejected:
            pass
        except WorkerError as error:
            reasons.add(f"the program does not run with it: {error}")
        if reasons.found:
            proof = replace(proof, verdict=ProofVerdict.REJECTED, reasons=tuple(reasons.found))
        return replace(proof, outputs_equal=reasons.equal)

    def _judge(self, worker: Worker, candidate: Candidate, proof: Proof, reasons: _Reasons) -> Proof:
        about = worker.ready()
        self._require_same_calls(about, reasons)
        self._require_loaded(about, candidate, reasons)
        if self._unrepeatable:
            reasons.stop(f"cannot be compared: the program does not repeat itself: {self._unrepeatable[0]}")
        self._require_same_start(worker, about, reasons)
        self._say(f"{candidate.label}: compiling")
        seen = self._compile(worker, candidate)
        maps = _line_maps(candidate)
        proof = replace(proof, after=seen.metrics, revealed=tuple(self._revealed(seen, maps)))
        proof = replace(proof, unrun=self._require_equal(worker, candidate, about, reasons))
        self._require_fewer_breaks(seen, candidate, maps, proof.revealed, reasons)
        if reasons.found:
            return proof
        self._say(f"{candidate.label}: timing")
        return self._time(worker, proof, reasons)

    def _require_same_calls(self, about: Mapping[str, Any], reasons: _Reasons) -> None:
        if about["error"] and about["error"] != self.about["error"]:
            reasons.stop(f"the program fails with it: {about['error']}")
        if other := other_calls(about, self.about):
            reasons.stop(f"cannot be compared: {other}")

    def _require_loaded(self, about: Mapping[str, Any], candidate: Candidate, reasons: _Reasons) -> None:
        missing = [display_path(path, os.getcwd()) for path in candidate.texts if path not in about["loaded"]]
        if missing:
            reasons.stop(f"the rewritten code did not run: {', '.join(missing)} was not loaded")
        if about["unknown_settings"]:
            reasons.stop(f"torch has no setting {', '.join(about['unknown_settings'])}")
        if about["lost_settings"]:
            reasons.stop(f"the setting did not hold: the program sets {', '.join(about['lost_settings'])} itself")

    def _require_same_start(self, worker: Worker, about: Mapping[str, Any], reasons: _Reasons) -> None:
        if about["warm_cache"]:
            reasons.stop(
                f"cannot be compared: a compiler cache is warm on one side only ({about['warm_cache']} files are in it "
                "before anything is compiled: the program chooses its folder itself)"
            )
        problems = self._reference.hand_over(worker)
        if problems:
            reasons.stop(f"cannot be compared: {'; '.join(problems[:3])}{_more(problems[3:])}")
        others = sorted(self._other_starts(worker) - self._wavering)
        drawn = [name for name in others if name in _generators(self._starts)]
        values = [name for name in others if name not in drawn]
        if drawn:
            reasons.add(
                f"cannot be compared: random numbers are drawn otherwise before the first call: {_listed(drawn)}"
            )
        if values:
            reasons.add(f"cannot be compared: other values before the first call: {_listed(values)}")
        if others:
            raise _Rejected

    def _require_equal(
        self, worker: Worker, candidate: Candidate, about: Mapping[str, Any], reasons: _Reasons
    ) -> tuple[str, ...]:
        """Returns the lines of the change that did not run."""
        path = str(worker.folder / "eager.pt")
        told = worker.ask("eager", path=path, watched=list(candidate.texts))
        unrun: list[str] = []
        for name, (before, after) in candidate.texts.items():
            found = evidence(before, after, {*told["lines"][name], *about["ran"].get(name, ())})
            if not found.statements:
                reasons.stop("it changes no code")
            if found.in_functions and not found.ran:
                reasons.stop("the rewritten code did not run: none of its changed lines was executed")
            unrun += found.unrun
        unequal = differences(self._reference.eager, load_outcomes(path), self._reference.double, strict=True)
        for difference in unequal:
            reasons.add(f"eager, {difference.text}")
        runs = self._reference.compiled(worker)
        compiled_differs = self._reference.differences(runs)
        if compiled_differs and self._original_differs:
            # It need not be better than the program as it is.
            compiled_differs = [
                difference
                for name, outcomes in runs.items()
                if name == "random" or not self._reference.random
                for difference in differences(self._compiled[name], outcomes, None, strict=False, random=False)
            ]
        for difference in compiled_differs:
            reasons.add(f"compiled, {difference.text}")
        reasons.equal = not unequal and not compiled_differs
        return tuple(unrun)

    def _require_fewer_breaks(
        self,
        seen: _Seen,
        candidate: Candidate,
        maps: Mapping[str, LineMap],
        revealed: Sequence[str],
        reasons: _Reasons,
    ) -> None:
        before, after = self.seen.metrics, seen.metrics
        for target in candidate.targets:
            if any(_still_there(site.site, target, maps) for site in seen.explanation.breaks):
                reasons.add(f"the break at {target.path}:{target.line} is still there")
        if candidate.softened and (after.eager_frames, after.breaks) >= (before.eager_frames, before.breaks):
            reasons.add(
                f"it softens nothing: {after.breaks} breaks, {before.breaks} before, and {after.eager_frames} "
                f"functions that run eager, {before.eager_frames} before"
            )
        # Where a function is compiled that was given up, breaks come to light that were hidden: its time will tell.
        if after.breaks > before.breaks and after.eager_frames >= before.eager_frames:
            also = f": now at {_listed(revealed)}, too" if revealed else ""
            reasons.add(f"it breaks the graph {after.breaks} times, not {before.breaks}{also}")
        if after.eager_frames > before.eager_frames:
            reasons.add(f"{after.eager_frames} functions run eager, not {before.eager_frames}")
        if after.recompiles > before.recompiles:
            new = after.recompiles - before.recompiles
            cause = next((one.subject for one in seen.explanation.recompiles), "")
            reasons.add(f"it is compiled {new} more {'time' if new == 1 else 'times'} ({cause} changes)")

    def _revealed(self, seen: _Seen, maps: Mapping[str, LineMap]) -> list[str]:
        """Where it breaks and did not before, as places in the files as they are: often what another break has
        hidden."""
        was = [site.site for site in self.seen.explanation.breaks]
        return [
            f"{one.site.path}:{_line_before(one.site, maps)}"
            for one in seen.explanation.breaks
            if not any(_still_there(one.site, site, maps) for site in was)
        ]

    # -- time ---------------------------------------------------------------------------------------------------

    def _time(self, worker: Worker, proof: Proof, reasons: _Reasons) -> Proof:
        if not self._prepared:
            self._seconds = self._first.ask("prepare")
            self._second.ask("prepare")
            self._prepared = True
            self.seen.metrics = replace(self.seen.metrics, memory_bytes=self._first.ask("memory"))
        seconds = worker.ask("prepare")
        blocks = {"before": self._first.block, "same": self._second.block, "after": worker.block}
        try:
            times = measure.interleave(blocks, [self._seconds, seconds])
        except Unsteady as error:
            which = "it" if str(error) == "after" else "the program as it is"
            reasons.stop(f"{which} is compiled again and again while it is timed")
        self.same = measure.ratio([times["before"]], times["same"])
        claim = measure.ratio([times["before"], times["same"]], times["after"])
        faster = measure.is_faster(claim, self.same)
        assert proof.after is not None
        before = replace(self.seen.metrics, step_seconds=statistics.median(times["before"] + times["same"]))
        steady = {"memory_bytes": worker.ask("memory"), "launches": worker.ask("launches")}
        after = replace(proof.after, step_seconds=statistics.median(times["after"]), **steady)
        verdict = ProofVerdict.ACCEPTED if faster else ProofVerdict.NO_FASTER
        slower = measure.is_slower(claim, self.same)
        return replace(proof, verdict=verdict, before=before, after=after, ratio=claim, slower=slower)

    def launches(self) -> Mapping[str, int] | None:
        """What a step of the program as it is hands to the device.  To be asked when nothing is timed any more: the
        profiler slows down the process in which it has run."""
        if self._prepared:
            with contextlib.suppress(WorkerError):
                counted: dict[str, int] | None = self._first.ask("launches")
                return counted
        return None


def _metrics(explanation: Explanation, first_call: float, steps: float) -> Metrics:
    """``steps`` is how often each callable was called while it was recorded."""
    code = [
        KernelCode(graph.function or "", made.phase, made.code)
        for graph in explanation.graphs
        for made in graph.generated
        if made.code
    ]
    return Metrics(
        breaks=explanation.break_events,
        recompiles=len(explanation.recompiles),
        graphs=len(explanation.graphs),
        eager_frames=sum(frame.status is FrameStatus.EAGER for frame in explanation.frames),
        kernels=kernels_of_step(explanation, steps),
        compile_seconds=explanation.compile_seconds,
        first_call_seconds=first_call,
        code=tuple(code),
    )


def _line_maps(candidate: Candidate) -> dict[str, LineMap]:
    return {display_path(path, os.getcwd()): LineMap(text, new) for path, (text, new) in candidate.texts.items()}


def _still_there(site: Site, target: Site, maps: Mapping[str, LineMap]) -> bool:
    return site.path == target.path and target.line <= _line_before(site, maps) <= target.end_line


def _line_before(site: Site, maps: Mapping[str, LineMap]) -> int:
    """Where it stands in the file as it is."""
    return maps[site.path].before(site.line) if site.path in maps else site.line


def _generators(starts: Sequence[Mapping[str, str]]) -> set[str]:
    words = ("random", "torch's CPU generator", "the generator of", "numpy.random")
    return {name for start in starts for name in start if name.startswith(words)}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + _more(names[3:])


def _more(rest: Sequence[str]) -> str:
    return f" and {len(rest)} more" if rest else ""
