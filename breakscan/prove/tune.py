"""The pipeline of ``tune``: from a program to the fastest equal one that can be found in some time, as a patch.

Each change is tried in a run of the whole program, up to the same step.  First come programs with fewer problems: they
are looked for in runs in which graphs are not compiled, as those take seconds.  The first one that is not slower is
proved as ``verify`` does, and timed in turns with the program as it is.  In the time that is left, modes and parts are
tried on top of it, and proved in the same way."""

import contextlib
import itertools
import math
import operator
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from breakscan.fix.planner import LAST_RESORT, WantedRewrites
from breakscan.fix.source_map import SourceMap
from breakscan.model.findings import Origin, Site
from breakscan.model.remedy import RemedyKind
from breakscan.prove import faster as measure
from breakscan.prove.changed_code import UnseenCode
from breakscan.prove.faster import Ratio
from breakscan.prove.observation import NothingToMeasure, Observation, ObservationKind, environment_of, notes_of
from breakscan.prove.original import running_original
from breakscan.prove.probe import text_of
from breakscan.prove.proof import (
    Best,
    Evidence,
    Goal,
    NotApplied,
    ProgramChange,
    Proof,
    ProofVerdict,
    RunFigures,
    Texts,
    Trial,
    TrialVerdict,
    Tuning,
    VariedDifference,
)
from breakscan.prove.protocol import RunRequest
from breakscan.prove.rewrites import Rewrites, diff_of
from breakscan.prove.runs import ROOM, TOLERATED, EndValues, Run, Runs, ratio_of, step_loop
from breakscan.prove.tune_changes import FASTER, NOT_COMPILED, SOLVING, Changes, TunedProgram, changes_of
from breakscan.prove.verify import Verifier, write_candidate
from breakscan.prove.worker import ALL, Candidate, Crash, OutOfTime, Say, UserProgram, WorkerError, Workers, workers_of
from breakscan.rulebook.config import FileSettings
from breakscan.source.paths import display_path

SHARE = 0.1
"""Of the time that there is, that one run may take without compiling."""
FOR_PROOF = 0.4
"""Of the time that is left, that is kept for the proof and the last comparison."""
LONGEST = 120.0
"""Seconds that a run with a change may take, besides four times those of the program as it is."""
CLEARLY = 1.05
"""The ratio from which on a single run counts as faster."""
NOISE = 1.1
"""The ratio that two single runs of one program are taken to show."""
SLOWER = 1.25
"""The ratio by which steps may look slower in a single run, and be where compiling less often makes up for it."""
AS_MUCH = 0.8
"""The share of the lines in graphs from which on a program compiles as much as that as it is."""
FOR_EAGER = 1.2
"""The ratio from which on it is better not to compile at all: more steps would make up for a smaller one."""
NOTHING_COMPILED = "nothing is compiled with it"
LEFT_EAGER = "it leaves compiled code eager, and is not clearly faster"
MOST_HIDDEN = 3
"""The changes, each of which leaves as many problems, after which no others are looked for."""
SAME = 0.1
"""The times of the tolerance of an operation that values may be apart which the same operations compute."""
FAR = 500.0
"""Those from which on a difference is none of rounding, whatever the compiled calls compute."""
PAIRS = 3
"""Runs of both programs in turns at the end, if there is time."""
FEWEST_PAIRS = 2
"""Those where they are far apart."""
MOST_PAIRS = 9
"""Those where fewer do not decide."""
EXACT = "emulate_precision_casts"
"""The setting with which Inductor rounds as eager does, which is worth it where the program compares the two."""
NO_TIME = "no time was left (--time)"


@dataclass(frozen=True, slots=True)
class TuneQuestion:
    """The goal, and the time for it.  ``apply`` writes the best program, ``apply_unseen`` also if it is held back."""

    goal: Goal
    seconds: float
    apply: bool
    apply_unseen: bool
    settings: FileSettings


def tune(program: UserProgram, question: TuneQuestion, say: Say) -> Tuning:
    """Runs the program many times, and writes nothing unless ``apply``.  SIGINT or SIGTERM ends it, with what is known
    until then.  Raises NothingToMeasure if the program cannot be measured, WorkerError if it cannot be run."""
    with workers_of(program, question.settings) as workers:
        return _Tune(workers, question, say).run()


@dataclass(frozen=True, slots=True)
class _Made:
    """A program with changes: edits of ``fix``, and others in their order.  ``ratio`` says how much better a single run
    of it is, ``steps`` how much faster its steps are.  ``unsure`` is a value at its end that differs as by rounding:
    the compiled calls decide.  ``exact`` says that it computes what eager does, unlike the program as it is, and
    ``screened`` that it computes the same where Inductor compiles nothing."""

    run: Run
    edits: tuple[Candidate, ...] = ()
    changes: tuple[ProgramChange, ...] = ()
    texts: Texts = field(default_factory=dict)
    ratio: float = 1.0
    steps: Ratio | None = None
    unsure: str | None = None
    exact: bool = False
    screened: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its changes."""
        return (*(one.label for one in self.edits), *(one.name for one in self.changes))

    @property
    def kind(self) -> RemedyKind:
        """The kind of its last change."""
        return self.changes[-1].kind if self.changes else RemedyKind.EDIT

    @property
    def problems(self) -> tuple[int, int, int]:
        return self.run.figures(None).problems

    def __len__(self) -> int:
        return len(self.edits) + len(self.changes)


_SEVERAL = (RemedyKind.SHAPES, RemedyKind.CONSTRUCT)
"""The kinds of changes that are tried together where they do not help by themselves."""
_SAME_OPERATIONS = (RemedyKind.SETTING, RemedyKind.SHAPES, RemedyKind.REGION)
"""The kinds of changes with which a program computes the same operations in the same order."""
_SAME = Ratio(1.0, 1 / NOISE, NOISE)
"""Two runs of one program, where they were not compared."""


@dataclass(frozen=True, slots=True)
class _Turns:
    """Runs in turns: the ratio of their steps, that of runs of the program as it is, and the last figures of both."""

    ratio: Ratio | None
    same: Ratio
    before: RunFigures
    after: RunFigures

    @property
    def is_faster(self) -> bool:
        return self.ratio is not None and measure.is_faster(self.ratio, self.same)

    def is_slower(self, than: float = 1.0) -> bool:
        """Return True if all of the interval is below the ratio of another program, or the median far below it."""
        if self.ratio is None:
            return False
        is_clear = not self.ratio.disturbed and self.ratio.high < than / measure.LEAST
        return is_clear or self.ratio.median < than / SLOWER


def _beside(before: RunFigures, after: RunFigures, ratio: Ratio | None) -> RunFigures:
    """The figures of a run with the time of a step as it was compared: in another minute, all steps take longer."""
    seconds = before.step_seconds
    return after if ratio is None or seconds is None else replace(after, step_seconds=seconds / ratio.median)


def _is_eager(one: _Made) -> bool:
    """Return True for the program that is meant to compile nothing, which no other change is made to."""
    return any(change.name == NOT_COMPILED for change in one.changes)


class _Tune:
    def __init__(self, workers: Workers, question: TuneQuestion, say: Say) -> None:
        self.workers = workers
        self.question = question
        self.runs = Runs(workers)
        self._say = say
        self._began = time.monotonic()
        self.tried: list[Trial] = []
        self.seen: set[tuple[tuple[str, str], ...]] = set()
        """The texts of the programs that were tried."""
        self.barred: list[Candidate] = []
        """The edits of programs that the proof refused."""
        self.files: dict[Path, None] = {}
        """Those with problems."""
        self.notes: list[str | Observation] = []
        self.eager: Run | None = None
        self.spare: tuple[_Made, Best] | None = None
        """The program that compiles nothing, where it was proved before others."""
        self.cold: dict[tuple[str, ...], Run] = {}
        """Runs with empty caches, by the names of changes."""
        self.loop: int | None = None
        self.result: Best | None = None
        self.number = 0
        self.of = 0

    # -- the program as it is -----------------------------------------------------------------------------------------

    def run(self) -> Tuning:
        """Tunes the program."""
        self.say("running the program")
        self.longest = max(5.0, SHARE * self.question.seconds)
        self.look = self.runs.run({}, RunRequest(seconds=self.longest), 10 * self.question.seconds, fails=True)
        error = self.look.about.error
        if not error and not self.look.report.blocks:
            raise NothingToMeasure(
                "the program compiles nothing: torch.compile was not called (--compile module:name asks)"
            )
        if not self.look.report.cuda:
            self.workers.server.check_compiler()
        files = self.look.report.files
        self.runs.originals = self.texts = {path: text for path in files if (text := text_of(path)) is not None}
        self.runs.loops = tuple(one for one in self.look.report.found if one.path in self.texts)
        self.runs.calls = tuple(one for one in self.look.report.calls if one.path in self.texts)
        self.trains = self.look.report.backward
        self.base = self.plain = self.look
        self.best = self.chosen = _Made(self.base)
        self._keep(0.0)
        interrupted = False
        try:
            if error:
                self._repair(error)
            else:
                self._baseline()
                self._solve()
                self._speed_up()
                self.result = self.result and self._with_compiling(self.result)
        except KeyboardInterrupt:
            interrupted = True
            if self.result is None and self.spare is not None:
                self.chosen, self.result = self.spare
            elif self.result is None and len(self.best):
                self.chosen, self.result = self.best, self._result(self.best)
        except OutOfTime:
            # Only the program as it is was running.
            if error:
                raise WorkerError(f"the program fails: {error}; nothing could be tried: {NO_TIME}") from None
            self.notes.append(f"nothing could be tried: {NO_TIME}")
        return self._tuning(interrupted)

    def _repair(self, error: str) -> None:
        """Looks for changes with which a program that fails runs to its end, with the results of eager.  Raises
        WorkerError if there are none."""
        self.say("running it without the compiler")
        self.eager_request = RunRequest(seconds=self.longest, eager=True)
        self.eager = self._run({}, self.eager_request, keep=True, fails=True)
        self.eager_request = RunRequest(stop=self.eager.report.stop, eager=True)
        noise = self._run({}, self.eager_request, self.eager, fails=True).distances
        self.comparison = EndValues([noise], self.eager.dtypes, self.trains)
        best = None if self.eager.about.error == error else self.best
        useless: set[str] = set()
        while best is not None:
            options, over, best = self._options(best, useless), best, None
            self.of = self.number + len(options)
            for edits, changes in options:
                plan = self._plan((*over.edits, *edits), (*over.changes, *changes))
                made = self._repaired(plan) if plan is not None else None
                if made is not None and not made.run.about.error:
                    self.best = self.chosen = made
                    self.result = self._result(made)
                    return
                useless |= {one.name for one in changes} | {one.label for one in edits[: len(edits) == 1]}
                # What comes after it fails, too.
                if best is None and made is not None and self._failing(made).isdisjoint(self._failing(over)):
                    best = made
        raise WorkerError(f"the program fails: {error}; `breakscan explain` shows where and why")

    def _repaired(self, plan: _Made) -> _Made | None:
        """Runs a program that may fail; None where it computes something else, also without the compiler."""
        self.say("trying", plan.names)
        made, verdict = None, TrialVerdict.FAILS
        try:
            reason = None
            if plan.edits or plan.kind is RemedyKind.CONSTRUCT:
                reason = self._other_end(self._run(plan.texts, self.eager_request, self.eager, fails=True))
            if reason is None:
                run = self._run(plan.texts, replace(self.eager_request, eager=False), self.eager, fails=True)
                reason, made = run.about.error, replace(plan, run=run)
            if made is not None and reason is None and (reason := self.comparison.difference(run.distances)):
                made, verdict = None, TrialVerdict.DIFFERS
        except (WorkerError, OutOfTime) as error:
            reason = str(error) or NO_TIME
        self._add(plan.names, plan.kind, verdict if reason else TrialVerdict.GAINS, reason or "", made)
        return made

    def _other_end(self, run: Run) -> str | None:
        """The way in which a run without the compiler ends differently from that of the program as it is."""
        assert self.eager is not None
        is_known = run.about.error == self.eager.about.error
        return self.comparison.difference(run.distances) if is_known else run.about.error

    def _failing(self, made: _Made) -> set[tuple[str, int]]:
        """The lines of a run's problems, as they are in the files."""
        sites = (self._in_file(one.site, made) for one in made.run.explanation.problems)
        return {(one.path, one.line) for one in sites}

    def _baseline(self) -> None:
        """Runs the program as it is, without the compiler, and with graphs that Inductor does not compile."""
        self.say("timing the program as it is")
        self.base = self._run({}, RunRequest(seconds=self.longest), keep=True)
        self.request = RunRequest(stop=self.base.report.stop)
        self.loop = step_loop(self.base.report.loops)
        self.best = self.chosen = _Made(self.base)
        self.say("running it without the compiler")
        self.eager = self._run({}, replace(self.request, eager=True), self.base, keep=True)
        self.comparison = EndValues([self.eager.distances], self.base.dtypes, self.trains)
        self._keep(FOR_PROOF * self._left(0.0))
        if any(self.best.problems):
            self.plain_request = replace(self.request, graphs_only=True)
            self.plain = self._run({}, self.plain_request, keep=True)
            noise = self._run({}, self.plain_request, self.plain).distances
            # A counter that eager counts in another way says nothing of what a change computes.
            counts = {at: far for at, far in self.eager.distances.items() if self.base.dtypes[at] not in TOLERATED}
            self.plain_values = EndValues([noise, counts], self.plain.dtypes, self.trains)

    def _keep(self, seconds: float) -> None:
        """Keeps seconds of the time for later: until then, processes are ended when the others are over."""
        self.kept = seconds
        self.workers.until = self._began + self.question.seconds - seconds

    def _run(
        self,
        texts: Texts,
        request: RunRequest,
        known: Run | None = None,
        cold: bool = False,
        keep: bool = False,
        fails: bool = False,
    ) -> Run:
        longest = max(10.0, 4 * self.plain.seconds)
        longest = longest if known is self.plain else 4 * self.look.report.run_seconds + LONGEST
        return self.runs.run(texts, request, longest, None if cold else self.look, known, keep, fails)

    # -- fewer problems -----------------------------------------------------------------------------------------------

    def _solve(self) -> None:
        """Proves the first program with fewer problems that holds and is not slower."""
        fails, refused = TrialVerdict.FAILS, {NOT_COMPILED}
        while any(self.best.problems) and self._left() > 0:
            failing = (one.names for one in self.tried if one.verdict is fails and len(one.names) == 1)
            plans = self._with_fewer_problems({*refused, *itertools.chain(*failing)})
            # They compute the same without Inductor: to be tried is worth more than to be compared call by call.
            self._keep(min(self.kept, 2 * self.base.seconds))
            for plan in plans:
                is_better = not any(one in self.barred for one in plan.edits) and self._try(plan, plan.names)
                if is_better and (self._spare_eager() or self._proves()):
                    return
                # What Inductor cannot compile has hidden what may be left without it.
                if len(plan) == 1 and any(one.names == plan.names and one.verdict is fails for one in self.tried):
                    break
            else:
                # Those after the first one that has no problems were not looked at.
                if not plans or any(plans[0].problems) or len(plans[0]) > 1:
                    return
                refused |= {*plans[0].names}

    def _with_fewer_problems(self, useless: set[str]) -> list[_Made]:
        """The programs with fewer problems, those with the fewest first.  Runs in which Inductor compiles nothing take
        seconds.  Each change is tried on top of the best so far, and then those of its own problems."""
        best = over = was = _Made(self.plain)
        found, refused = list[_Made](), frozenset(useless)
        helpful: dict[str, ProgramChange] = {}
        while any(over.problems):
            fewer: list[_Made] = []
            several: list[ProgramChange] = []
            onward: _Made | None = None
            options = self._options(over, useless, helpful)
            self.of = self.number + len(options)
            for edits, changes in options:
                made = self._screened(over, edits, changes)
                if made is not None and self._has_fewer(made, over):
                    fewer.append(made)
                    helpful |= {one.name: one for one in changes}
                    if not (self._compiles_less(made) or any(made.problems)):
                        break
                    continue
                useless |= {one.name for one in changes} | {one.label for one in edits[: len(edits) == 1]}
                if made is not None and made.kind in _SEVERAL and made.problems == over.problems:
                    several += changes
                onward = made if onward is None and made is not None and self._moves_on(made, over) else onward
            # A version that is compiled anew may have several causes.
            if not fewer and len(several) > 1 and (made := self._screened(over, (), several)) is not None:
                fewer = [made] if self._has_fewer(made, over) else []
            if not fewer and onward is not None and len(onward) <= MOST_HIDDEN:
                over, useless = onward, {*refused}
                continue
            if not fewer:
                break
            if (made := self._together(over, fewer)) is not None and self._has_fewer(made, over):
                fewer.append(made)
            found += fewer
            was, best = over, min(fewer, key=self._order)
            over = best
            for made in (one for one in fewer if one is not best):
                names = tuple(one for one in made.names if one not in was.names)
                self._add(names, made.kind, TrialVerdict.NO_GAIN, "another change leaves fewer problems")
        # Others may have made a change needless: a patch that is read has to be short.
        new = [name for name in best.names if name not in was.names]
        tested = best.names if len(new) > 1 else [name for name in best.names if name in was.names]
        # Edits alone are each at a problem.
        for name in tested if best.changes else ():
            others = [one for one in best.changes if one.name != name]
            made = self._screened(None, [one for one in best.edits if one.label != name], others)
            if made is not None and self._order(made) <= self._order(best):
                found, best = [made, *found], made
        return sorted(found, key=self._order)

    def _together(self, over: _Made, fewer: Sequence[_Made]) -> _Made | None:
        """Runs what leaves fewer problems by itself, besides other regions, as far as it fits together.  None if one of
        them leaves no problem."""
        edits, changes, joined = list(over.edits), list(over.changes), 0
        for made in sorted(fewer, key=self._order) if all(any(one.problems) for one in fewer) else ():
            its = [*edits, *made.edits[len(over.edits) :]], [*changes, *made.changes[len(over.changes) :]]
            if made.kind is not RemedyKind.REGION and self._plan(*its) is not None:
                edits, changes, joined = *its, joined + 1
        new = edits[len(over.edits) :], changes[len(over.changes) :]
        return self._screened(over, *new) if joined > 1 else None

    def _moves_on(self, made: _Made, over: _Made) -> bool:
        """Return True if as many problems are left, but others: the first break of a loop hides those behind it."""
        sites, were = self._failing(made), self._failing(over)
        is_same = sites <= were or were <= sites
        return made.kind is not RemedyKind.REGION and made.problems == over.problems and not is_same

    def _order(self, made: _Made) -> tuple[bool, tuple[int, int, int]]:
        """The order of programs: those with fewer problems first, but last what only leaves their code eager."""
        return self._compiles_less(made), made.problems

    def _options(
        self, best: _Made, useless: Collection[str] = (), helpful: Mapping[str, ProgramChange] | None = None
    ) -> list[tuple[Sequence[Candidate], Sequence[ProgramChange]]]:
        """The edits of ``fix`` together, each of them, and each other change that may be added to a program."""
        edits = [one for one in self._planned(best) if one.label not in {*useless, *best.names}]
        changes = {**(helpful or {}), **{one.name: one for one in self._changes(best)}}
        others = [one for name, one in changes.items() if name not in {*useless, *best.names}]
        together = [(edits, ())] if len(edits) > 1 else []
        return [*together, *(([one], ()) for one in edits), *(((), [one]) for one in others)]

    def _screened(
        self, best: _Made | None, edits: Sequence[Candidate], changes: Sequence[ProgramChange]
    ) -> _Made | None:
        """Runs the best program with what is added, Inductor compiling nothing; returns None if it does not hold."""
        names = _Made(self.plain, tuple(edits), tuple(changes)).names
        over = _Made(self.plain) if best is None else best
        plan = self._plan((*over.edits, *edits), (*over.changes, *changes))
        if plan is None:
            return None
        self.say("leaving out" if best is None else "trying", names, counts=best is not None)
        is_coarse = self.look.report.cuda or any("autocast" in text for text in self.texts.values())
        is_same = not plan.edits and all(one.kind in _SAME_OPERATIONS for one in plan.changes)
        is_tensor_math = any(one.kind is RemedyKind.CONSTRUCT for one in plan.changes)
        # TF32, autocast, and tensors in place of numbers round in another way, which training amplifies.
        is_rounded = not is_same and (is_coarse or is_tensor_math)
        differs = partial(self.plain_values.difference, room=FAR if is_rounded else ROOM)
        made = self._ran(
            plan, () if best is None else names, self.base.seconds, self.plain_request, self.plain, differs
        )
        if made is not None and (is_same or is_tensor_math) and not self.look.report.cuda:
            unsure = self.plain_values.difference(made.run.distances, SAME if is_same else ROOM)
            screened = is_same and unsure is None and self.plain_values.compares(made.run.distances)
            made = replace(made, unsure=unsure, screened=screened)
        if made is not None and best is not None and not self._has_fewer(made, best):
            reason = NOTHING_COMPILED if self._compiles_nothing(made) else "no fewer problems"
            self._add(names, made.kind, TrialVerdict.NO_GAIN, reason)
        return made

    # -- faster steps -------------------------------------------------------------------------------------------------

    def _speed_up(self) -> None:
        """Tries what makes steps faster on top of the proved program, and proves that."""
        self._keep(FOR_PROOF * self._left(0.0))
        _ = self._spare_eager()
        # What is no problem by its count, such as a cache that is not used, costs time alone.
        kinds = (*SOLVING, *FASTER) if not any(_Made(self.base).problems) else FASTER
        over = self.best
        for change in self._changes(over, kinds):
            if change.name != NOT_COMPILED and change.name not in over.names:
                plan = self._plan(self.best.edits, (*self.best.changes, change))
                _ = plan is not None and self._try(plan, (change.name,))
        # It is weighed again where what it was compared with is refused, or was timed in turns.
        for _ in range(3):
            best = self.best
            self._try_eager()
            tried = self.best
            if tried is self.chosen or (self.spare is not None and tried is self.spare[0]):
                break
            if not self._proves():
                self.best = self.chosen if tried is best else best
            elif self.spare is None:
                return
        if self.spare is not None and (self.result is None or self.best is self.spare[0]):
            self.chosen, self.result = self.spare

    def _spare_eager(self) -> bool:
        """Proves the program that compiles nothing first, where it looks clearly faster than the best, in less than
        half of the time.  Others are then looked for as if it were not there.  Returns whether it holds."""
        best, chosen = self.best, self.chosen
        steps = ratio_of(self.base, self.eager, self.loop) if self.eager is not None else None
        is_clear = steps is not None and steps.low >= FOR_EAGER * self.best.ratio
        is_short = 2 * (2 * PAIRS) * self.base.seconds < self._left(0.0)
        if is_clear and is_short and self.spare is None and self.result is None:
            self._try_eager()
            if self.best is not best and self._proves() and self.result is not None:
                self.spare, self.result = (self.best, self.result), None
            self.best, self.chosen = best, chosen
            self._keep(FOR_PROOF * self._left(0.0))
        return self.spare is not None

    def _try_eager(self) -> None:
        """Compiles nothing, if that is clearly faster than the best program.  No other change may do so."""
        # Its edits are those of the program as it is, whatever the best one compiles.
        change = next(iter(self._changes(_Made(self.base), FASTER[-1:])), None)
        if change is None or self.eager is None or self.question.goal is not Goal.STEP:
            return
        speed = self._speed(self.eager, ratio_of(self.base, self.eager, self.loop))
        if self.spare is not None and self.spare[0].steps is not None:
            # All of its interval has to lie above another program.
            speed = min(self.spare[0].ratio, FOR_EAGER * self.spare[0].steps.low)
        speed /= self.best.ratio
        if speed >= FOR_EAGER and self.spare is not None:
            self.best = self.spare[0]
        elif speed >= FOR_EAGER and (plan := self._plan((), (change,))) is not None:
            self._try(plan, (change.name,))
        elif speed < FOR_EAGER:
            said = f"eager is {1 / speed:.2f}× slower" if speed < 1 / CLEARLY else "eager is not clearly faster"
            reason = f"{said}{' than the patch' if len(self.best) else ''}"
            self._add((change.name,), change.kind, TrialVerdict.NO_GAIN, reason)

    # -- trying -------------------------------------------------------------------------------------------------------

    def _changes(self, made: _Made, kinds: Sequence[Changes] = SOLVING) -> list[ProgramChange]:
        """The changes that a run suggests."""
        texts = {**self.texts, **made.texts}
        program = TunedProgram(made.run.explanation, texts, self.look.report, self.question.goal)
        self.notes += [f"{place} compiles by a call that cannot be changed" for place in program.elsewhere]
        return changes_of(program, kinds)

    def _planned(self, made: _Made) -> list[Candidate]:
        """The edits of ``fix`` at the problems of a run."""
        run = made.run
        found = [one.site for one in run.explanation.problems if one.origin is not Origin.FRAMEWORK]
        sites = [self._in_file(one, made) for one in found]
        lines: dict[str, set[int]] = {}
        for site in sites:
            lines.setdefault(str(Path(site.path).absolute()), set()).update(range(site.line, site.end_line + 1))
        self.files |= {Path(path): None for path in lines if path in self.texts}
        if not self.files:
            return []
        settings = self.question.settings.changed(observations=run.observations)
        self.rewrites = Rewrites(tuple(self.files), settings, WantedRewrites())
        planned = self.rewrites.plan(lines, sites)
        # To disable a function is a change of the region, and comes after what keeps it compiled.
        return [one for one in (*planned.alone, *planned.dependent) if one.rewrite != LAST_RESORT]

    def _in_file(self, site: Site, made: _Made) -> Site:
        """A site of a changed program, at its line in the file."""
        path = str(Path(site.path).absolute())
        if path not in made.texts:
            return site
        lines = SourceMap.of_change(self.texts[path], made.texts[path])
        return replace(site, line=lines.before(site.line), end_line=lines.before(site.end_line))

    def _plan(self, edits: Sequence[Candidate], changes: Sequence[ProgramChange]) -> _Made | None:
        """A program with these changes, which did not run yet; None if one of them does not fit."""
        texts = dict(self.texts)
        together = self.rewrites.together(edits, ALL) if edits else None
        if edits and together is None:
            return None
        texts |= {path: after for path, (_, after) in together.texts.items()} if together else {}
        for change in changes:
            found = change.write(texts)
            if found is None:
                return None
            texts |= found
        changed = {path: text for path, text in texts.items() if text != self.texts[path]}
        return _Made(self.base, tuple(edits), tuple(changes), changed) if changed else None

    def _try(self, plan: _Made, names: tuple[str, ...]) -> bool:
        """Tries a program, which is the best from here on if it is better.  Returns whether it is."""
        key = tuple(sorted(plan.texts.items()))
        if key in self.seen:
            return False
        self.seen.add(key)
        self.say("trying", names)
        made = self._timed(plan, names)
        if made is not None and self._has_fewer(made, self.best) and not self._is_better(made, self.best):
            # A single run looks slower by chance, too.
            made = self._timed(plan, names)
        if made is None:
            return False
        is_better = self._is_better(made, self.best)
        verdict = TrialVerdict.GAINS if is_better else TrialVerdict.NO_GAIN
        self._add(names, made.kind, verdict, "" if is_better else self._no_gain(made), made)
        self.best = made if is_better else self.best
        return is_better

    def _timed(self, plan: _Made, names: tuple[str, ...]) -> _Made | None:
        """Runs a program as it would run, and times its steps."""
        # What compiles nothing has to compute what the program as it is computes without the compiler.
        known = self.eager if _is_eager(plan) and self.eager is not None else self.base
        made = self._ran(plan, names, 0.0, self.request, known, partial(self.comparison.difference, room=FAR))
        if made is None:
            return None
        steps, unsure = ratio_of(self.base, made.run, self.loop), self.comparison.difference(made.run.distances)
        unsure = unsure or plan.unsure
        exact = any(EXACT in one.name for one in made.changes) and self._is_exact(made.texts)
        return replace(made, ratio=self._speed(made.run, steps), steps=steps, unsure=unsure, exact=exact)

    def _ran(
        self,
        plan: _Made,
        names: tuple[str, ...],
        least: float,
        request: RunRequest,
        known: Run,
        differs: Callable[[Mapping[str, float]], str | None],
    ) -> _Made | None:
        """Runs a program, if more than the ``least`` seconds are left.  Returns None if it does not hold; the list of
        what was tried then has the ``names``, if there are any."""
        verdict, reason = TrialVerdict.NOT_TRIED, NO_TIME
        try:
            if self._left() > least:
                run = self._run(plan.texts, request, known, known is self.base and self.question.goal is Goal.COMPILE)
                reason = differs(run.distances) or ""
                if not reason:
                    return replace(plan, run=run)
                verdict = TrialVerdict.DIFFERS
        except WorkerError as error:
            verdict, reason = TrialVerdict.FAILS, error.first_line
        except OutOfTime:
            pass
        if names:
            self._add(names, plan.kind, verdict, reason)
        return None

    def _is_exact(self, texts: Texts) -> bool:
        """Return whether the values at the end are those of eager, and those of the program as it is are not."""
        values = EndValues((), self.base.dtypes)
        with contextlib.suppress(WorkerError, OutOfTime):
            if self.eager is not None and values.difference(self.eager.distances) is not None:
                return values.difference(self._run(texts, self.request, self.eager).distances) is None
        return False

    def _speed(self, run: Run, steps: Ratio | None) -> float:
        """The ratio by which a run is better than that of the program as it is."""
        before, after = self.base.figures(self.loop), run.figures(self.loop)
        if self.question.goal is Goal.COMPILE:
            return self.look.figures(None).compile_seconds / max(after.compile_seconds, 1e-3)
        if self.question.goal is Goal.MEMORY:
            return (before.memory_bytes or 1) / (after.memory_bytes or 1)
        if steps is not None or not before.run_seconds:
            # A program that calls nothing compiled has no steps.
            return steps.median if steps is not None else 1.0
        own, its = (max(one.run_seconds - one.compile_seconds, 1e-6) for one in (before, after))
        return own / its

    def _is_better(self, one: _Made, other: _Made) -> bool:
        """Return True if one is better by a single run of each: faster by more than runs vary, or fewer problems and no
        slower than runs in turns have to decide."""
        low, high = self._interval(one)
        is_faster = low > self._interval(other)[1] and one.ratio > NOISE * other.ratio
        return self._gains(one, other, is_faster, high < other.ratio / SLOWER, one.ratio / other.ratio)

    def _gains(self, one: _Made, other: _Made, is_faster: bool, is_slower: bool, times: float) -> bool:
        """The rule by which a program is better than another: its steps are faster, by more where it has more
        problems, or it has fewer problems, compiles as much and its steps are not clearly slower, or it is exact."""
        if self._compiles_nothing(one):
            return False
        if is_faster and (one.problems <= other.problems or times > 2 * NOISE - 1):
            return True
        # Other results than those of eager are worse than slower steps.
        is_exact = one.exact and not other.exact
        return is_exact or (not is_slower and self._has_fewer(one, other) and not self._compiles_less(one))

    def _has_fewer(self, one: _Made, other: _Made) -> bool:
        """Fewer problems, or the results of eager where only those of the other differ."""
        is_less = self._compiles_nothing(one) or any(NOT_COMPILED in change.name for change in one.changes)
        is_exact = one.exact and not other.exact
        return not is_less and (is_exact or one.problems < other.problems)

    def _compiles_less(self, one: _Made) -> bool:
        """Return True if a change of the region leaves code eager that is compiled in the program as it is, and saves
        nothing but breaks."""
        is_region = any(change.kind is RemedyKind.REGION for change in one.changes)
        its, was = one.run.figures(None), self.base.figures(None)
        saves_others = its.eager_functions < was.eager_functions or its.recompiles < was.recompiles
        return is_region and not saves_others and one.run.lines < AS_MUCH * self.base.lines

    def _interval(self, one: _Made) -> tuple[float, float]:
        """The least and the greatest ratio that a single run allows: any, if a single step was timed."""
        if self.question.goal is not Goal.STEP or one.steps is None:
            return one.ratio, one.ratio
        return (one.steps.low, one.steps.high) if one.steps.low < one.steps.high else (0.0, math.inf)

    def _compiles_nothing(self, one: _Made) -> bool:
        return not _is_eager(one) and not one.run.figures(None).graphs

    def _no_gain(self, made: _Made) -> str:
        speed = made.ratio / self.best.ratio
        than, (low, high) = " than the patch" if len(self.best) else "", self._interval(made)
        if self._compiles_nothing(made):
            return NOTHING_COMPILED
        if self._has_fewer(made, self.best) and self._compiles_less(made):
            return f"{LEFT_EAGER}{than}"
        if high > measure.WIDE * low:
            return f"not shown to be faster{than}: too few steps, or too noisy"
        return f"{1 / speed:.2f}× slower{than}" if speed < 1 / NOISE else f"no faster{than}"

    # -- the proof ----------------------------------------------------------------------------------------------------

    def _proves(self) -> bool:
        """Proves the best program, and times it in turns with that as it is; else the last that was proved is best."""
        made = self.best
        self.say("proving", made.names, counts=False)
        # It runs the code by which calls are judged: there is nothing else to prove if whole runs could be compared.
        is_compared = made.unsure is None and self.comparison.compares(made.run.distances)
        proof, is_varied = (None, False) if _is_eager(made) and is_compared else self._proof()
        refusal = self._refusal(made, proof)
        self._keep(0.0)
        turns = None if refusal else self._in_turns(made)
        refusal = refusal or self._slowness(made, turns)
        if refusal is None:
            self.result = self._result(made, turns, proof, is_varied)
            if turns is not None and turns.ratio is not None and self.question.goal is Goal.STEP:
                # What comes next is weighed against what many runs say.
                made = replace(made, ratio=turns.ratio.median, steps=turns.ratio)
            self.best = self.chosen = made
            return True
        ratio = turns.ratio if turns is not None else None
        self.tried.append(Trial(made.names, made.kind, *refusal, made.run.figures(self.loop), ratio))
        self.best = self.chosen
        self._keep(FOR_PROOF * self._left(0.0))
        return False

    def _refusal(self, made: _Made, proof: Proof | None) -> tuple[TrialVerdict, str | Observation] | None:
        """Why the results of a program do not hold."""
        kinds = {one.kind for one in proof.reasons} if proof is not None else set()
        # Some calls cannot be compared.
        is_other = ObservationKind.OTHER_CALLS in kinds
        if proof is not None and proof.verdict is ProofVerdict.REJECTED and not is_other:
            self.barred += made.edits
            differs = TrialVerdict.DIFFERS if proof.outputs_equal is False else TrialVerdict.FAILS
            return TrialVerdict.NO_GAIN if proof.outputs_equal else differs, proof.reasons[0]
        is_compared = made.screened or self.comparison.compares(made.run.distances)
        unsure = made.unsure if is_compared else "its results could not be compared"
        if not unsure or (proof is not None and proof.outputs_equal):
            return None
        if self._left() <= 0:
            return TrialVerdict.NOT_TRIED, f"{unsure}, and the compiled calls were not: {NO_TIME}"
        return TrialVerdict.DIFFERS if made.unsure else TrialVerdict.FAILS, unsure

    def _slowness(self, made: _Made, turns: _Turns | None) -> tuple[TrialVerdict, str] | None:
        """Why a program is no better than the last one that was proved."""
        if turns is None:
            late = f"the steps were timed in a single run: {NO_TIME}"
            is_slower = made.ratio < self.chosen.ratio / NOISE
            if is_slower or not self._has_fewer(made, self.chosen) or self._compiles_less(made):
                return TrialVerdict.NOT_TRIED, late
            self.notes.append(late)
            return None
        if self.question.goal is not Goal.STEP:
            return None
        was = self.result.ratio.median if self.result and self.result.ratio else 1.0
        median = turns.ratio.median if turns.ratio else 1.0
        is_faster = turns.is_faster and (self.result is None or median > CLEARLY * was)
        is_slower = turns.is_slower(was)
        # What longer runs would compile anew, too, is worth more than some of the time of a step.
        counts = (one.run.figures(None).recompiles for one in (made, self.chosen))
        is_saved = is_slower and operator.lt(*counts) and self.base.report.stop is None
        makes_up = is_saved and median >= was / SLOWER and self._whole(made, turns) > NOISE
        if self._gains(made, self.chosen, is_faster, is_slower and not makes_up, median / was):
            return None
        is_unclear = turns.ratio is not None and not turns.is_faster and measure.is_unclear(turns.ratio, turns.same)
        reason = "slower" if is_slower else "too noisy to say" if is_unclear else "no faster"
        reason = LEFT_EAGER if self._has_fewer(made, self.chosen) and self._compiles_less(made) else reason
        return TrialVerdict.NO_GAIN, f"{reason} where it is timed in turns"

    def _in_turns(self, made: _Made) -> _Turns | None:
        """Runs the program as it is and a changed one in turns.  None if no time is left."""
        pairs: list[tuple[Run, Run]] = []
        while True:
            try:
                before = self._run({}, self.request)
                pairs.append((before, self._run(made.texts, self.request)))
            except OutOfTime:
                return self._turns(pairs) if pairs else None
            turns = self._turns(pairs)
            is_far = turns.is_faster and turns.ratio is not None and turns.ratio.low > measure.CLOSE
            is_far = is_far and turns.ratio is not None and not turns.ratio.is_noisy
            is_enough = len(pairs) >= (FEWEST_PAIRS if is_far else PAIRS)
            is_clear = turns.ratio is None or turns.is_faster
            if turns.ratio is not None and not turns.ratio.is_noisy:
                # With fewer problems, as fast is enough.
                is_as_fast = turns.ratio.median > 1 / measure.LEAST and self._has_fewer(made, self.chosen)
                is_clear |= is_as_fast or turns.is_slower()
            is_last = len(pairs) == MOST_PAIRS or self._left(0.0) <= (2 * self.base.seconds if is_enough else 0.0)
            if is_last or (is_enough and is_clear):
                return turns

    def _cold_run(self, made: _Made) -> Run | None:
        """A run of a program with empty caches, in which all is compiled.  None if there is no time for it."""
        if self.question.goal is Goal.COMPILE:
            return made.run
        if made.names not in self.cold and self._left(0.0) > self.look.seconds:
            with contextlib.suppress(WorkerError, OutOfTime):
                self.cold[made.names] = self._run(made.texts, self.request, cold=True)
        return self.cold.get(made.names)

    def _whole(self, made: _Made, turns: _Turns) -> float:
        """The ratio of first runs as a whole, with what is compiled in them."""
        cold = self._cold_run(made)
        own = turns.before.run_seconds - turns.before.compile_seconds
        whole = own + self.look.figures(None).compile_seconds
        return whole / cold.report.run_seconds if cold is not None and cold.report.run_seconds else 1.0

    def _turns(self, pairs: Sequence[tuple[Run, Run]]) -> _Turns:
        ratios = [ratio for pair in pairs if (ratio := ratio_of(*pair, self.loop))]
        firsts = [pair[0] for pair in pairs]
        sames = [ratio for pair in itertools.pairwise(firsts) if (ratio := ratio_of(*pair, self.loop))]
        same = measure.ratio_of_processes([Ratio(one.median, one.median, one.median) for one in sames or [_SAME]])
        last, changed = (one.figures(self.loop) for one in pairs[-1])
        ratio = measure.ratio_of_processes(ratios) if ratios else None
        return _Turns(ratio, same, last, _beside(last, changed, ratio))

    def _with_compiling(self, best: Best) -> Best:
        """The best program with what compiling takes in first runs."""
        cold = self._cold_run(self.chosen) if best.after.graphs else self.chosen.run
        if cold is None:
            self.notes.append(f"compile times are those with warm caches: {NO_TIME}")
            return best
        was, now = (one.figures(None).compile_seconds for one in (self.look, cold))
        before, after = replace(best.before, compile_seconds=was), replace(best.after, compile_seconds=now)
        return replace(best, before=before, after=after)

    def _proof(self, again: bool = True) -> tuple[Proof | None, bool]:
        """The proof of the best program by its compiled calls, if there is time, and whether they were varied."""
        # The rest is for a run of both programs in turns: without, nothing is taken.
        self._keep(self.base.seconds + self.best.run.seconds)
        candidate = self._candidate(self.best)
        # What runs have compiled is not compiled again: here, no compile times count.
        self.workers.cache_of = self.look.worker
        try:
            with running_original(self.workers) as original:
                # Whole runs have weighed breaks and recompiles.
                verifier = Verifier(original, list(candidate.texts), lambda *_: None, weighs=False)
                # It is timed in runs of the whole program.
                proof = verifier.prove(candidate, ALL)
                self.notes += [*notes_of(original.about), *verifier.notes]
                return proof, verifier.is_probed
        except (WorkerError, NothingToMeasure) as error:
            if isinstance(error, Crash) and again:  # as in runs: the change need not be the cause
                return self._proof(again=False)
            self.notes.append(f"the compiled calls could not be compared: {error}")
        except OutOfTime:
            self.notes.append(f"the compiled calls were not compared one by one: {NO_TIME}")
        finally:
            self.workers.cache_of = None
        return None, False

    def _candidate(self, made: _Made) -> Candidate:
        return Candidate(
            ", ".join(made.names), texts={path: (self.texts[path], text) for path, text in made.texts.items()}
        )

    def _result(
        self, made: _Made, turns: _Turns | None = None, proof: Proof | None = None, is_varied: bool = False
    ) -> Best:
        before, after = self.base.figures(self.loop), made.run.figures(self.loop)
        if turns is not None:
            before = replace(turns.before, eager_functions=before.eager_functions)
            after = replace(turns.after, eager_functions=after.eager_functions)
        else:
            after = _beside(before, after, made.steps)
        held: list[UnseenCode | VariedDifference | str] = []
        compared: list[Evidence] = []
        if proof is not None:
            held += [*proof.unseen, *(one for one in proof.varied if not one.is_stated)]
            compared += [Evidence.CALLS] if proof.outputs_equal else []
            compared += [Evidence.VARIED] if proof.outputs_equal and is_varied and not proof.varied else []
        compared += [Evidence.EAGER] if made.exact else []
        if made.unsure is None and self.comparison.compares(made.run.distances):
            compared.append(Evidence.RUN)
        elif made.unsure is None and made.screened:
            self.notes.append("the values at the end were compared in runs in which Inductor compiles nothing")
        if not compared:
            where = (
                "could not be compared"
                if self.look.about.error
                else "were compared only in runs in which Inductor compiles nothing"
            )
            held.append(f"results {where}")
        # Without the compiler, the whole run of a program that fails was compared, too.
        unproved = [one for one in made.edits if one.difference or not self.look.about.error]
        if (unproved or any(one.skips for one in made.changes)) and Evidence.CALLS not in compared:
            held.append("the edits were not proved by the compiled calls")
        assumes = [line for one in made.changes for line in one.assumes]
        if assumes and Evidence.RUN not in compared:
            held.append("what it assumes may differ in calls that were not compared")
        assumes = [*(one.difference for one in made.edits if one.difference), *assumes]
        shown = {path: display_path(path, os.getcwd()) for path in made.texts}
        gained: list[Trial] = []
        for one in reversed(self.tried):
            known = {name for other in gained for name in other.names}
            names = tuple(name for name in one.names if name in made.names and name not in known)
            gained += [replace(one, names=names)] if names and one.verdict is TrialVerdict.GAINS else []
        return Best(
            changes=tuple(reversed(gained)),
            patch=diff_of(self._candidate(made), shown),
            before=before,
            after=after,
            # A single run shows no gain of time.
            ratio=turns.ratio if turns is not None else made.steps and replace(made.steps, disturbed=True),
            compared=tuple(compared),
            assumes=tuple(dict.fromkeys(assumes)),
            held_back=tuple(dict.fromkeys(held)),
        )

    # -- the result ---------------------------------------------------------------------------------------------------

    def _tuning(self, interrupted: bool) -> Tuning:
        best = self.result
        applied: tuple[str, ...] = ()
        not_applied: NotApplied | tuple[str, ...] | None = None
        writes = self.question.apply and best is not None and not interrupted
        if writes and best is not None and (self.question.apply_unseen or not best.held_back):
            applied, not_applied = write_candidate(self._candidate(self.chosen))
        elif self.question.apply:
            not_applied = NotApplied.INTERRUPTED if interrupted else NotApplied.NONE_ACCEPTED if best is None else None
        step = self.runs.loops[self.loop] if self.loop is not None else None
        before, eager = self.base.figures(self.loop), self.eager
        ratio = ratio_of(self.base, eager, self.loop) if eager is not None else None
        return Tuning(
            argv=self.workers.program.argv,
            environment=environment_of(self.base.about, self.base.explanation.device),
            goal=self.question.goal,
            seconds=time.monotonic() - self._began,
            steps=len(self.base.steps(self.loop)),
            step=None if step is None else f"{display_path(step.path, os.getcwd())}:{step.line}",
            cut=self.base.report.stop is not None,
            before=replace(before, compile_seconds=self.look.figures(None).compile_seconds),
            eager=None if eager is None else _beside(best.before if best else before, eager.figures(self.loop), ratio),
            best=best,
            tried=tuple(self.tried),
            notes=tuple(dict.fromkeys(self.notes)),
            applied=applied,
            not_applied=not_applied,
            interrupted=interrupted,
            error=self.look.about.error,
        )

    def say(self, doing: str, names: Sequence[str] = (), counts: bool = True) -> None:
        """Shows progress: ``3 of 12: trying dynamic=True; 1.42× so far, 212 s left``."""
        is_trial = bool(names) and counts
        self.number += is_trial
        self.of = max(self.of, self.number)
        count = f"{self.number} of {self.of}: " if is_trial else ""
        gained = f"{self.best.ratio:.2f}× so far, " if self.number and len(self.best) else ""
        what = " ".join([doing, ", ".join(names)]).strip()
        self._say(f"{count}{what}; {gained}{max(0.0, self._left(0.0)):.0f} s left")

    def _left(self, kept: float | None = None) -> float:
        """The seconds that are left, without those that are kept, by default for the proof."""
        return self.question.seconds - (time.monotonic() - self._began) - (self.kept if kept is None else kept)

    def _add(
        self, names: tuple[str, ...], kind: RemedyKind, verdict: TrialVerdict, reason: str, made: _Made | None = None
    ) -> None:
        if verdict is TrialVerdict.NOT_TRIED and any(one.names == names for one in self.tried):
            return
        figures, steps = (None, None) if made is None else (made.run.figures(self.loop), made.steps)
        self.tried.append(Trial(names, kind, verdict, reason, figures, steps, self.best.run.figures(self.loop)))
