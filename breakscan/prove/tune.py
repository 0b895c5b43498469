"""The pipeline of ``tune``: from a program to the fastest equal one that can be found in some time, as a patch.

Each change is tried in a run of the whole program, up to the same step, on top of the best one so far: it is kept if
the program computes the same and is faster, or breaks and recompiles less and is no slower.  Then what does not help is
left out again, and the best program is proved as ``verify`` does, and timed in turns with the program as it is.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from breakscan.fix.planner import LAST_RESORT, WantedRewrites
from breakscan.fix.source_map import SourceMap
from breakscan.model.findings import Origin, Site
from breakscan.model.remedy import RemedyKind
from breakscan.prove import faster as measure
from breakscan.prove.candidate import ALL, Candidate
from breakscan.prove.changed_code import UnseenCode
from breakscan.prove.faster import Ratio
from breakscan.prove.fork_server import ForkServerProcess
from breakscan.prove.observation import NothingToMeasure, Observation, ObservationKind, environment_of, notes_of
from breakscan.prove.original import running_original
from breakscan.prove.probe import text_of
from breakscan.prove.proof import NotApplied, Proof, ProofVerdict, VariedDifference
from breakscan.prove.protocol import RunRequest
from breakscan.prove.rewrites import Rewrites, diff_of, of_texts
from breakscan.prove.runs import EndValues, Run, Runs, ratio_of, step_loop
from breakscan.prove.tune_changes import changes_of
from breakscan.prove.tune_regions import NOT_COMPILED, TunedProgram
from breakscan.prove.tuning import (
    Best,
    Evidence,
    Goal,
    ProgramChange,
    RunFigures,
    Texts,
    Trial,
    TrialVerdict,
    Tuning,
)
from breakscan.prove.verifier import Verifier
from breakscan.prove.verify import write_candidate
from breakscan.prove.worker import OutOfTime, UserProgram, WorkerError, Workers, interrupted_once
from breakscan.rulebook.config import FileSettings
from breakscan.rulebook.library import load_library
from breakscan.source.paths import display_path

SHARE = 0.1
"""Of the time that there is, that one run may take without compiling."""
FOR_PROOF = 0.4
"""Of the time that is left once the program as it is was timed: for the proof and the last comparison."""
SLOWEST = 4.0
"""Times as long as the program as it is, with this many seconds more, that a run with a change may take."""
MORE = 60.0
CLEARLY = 1.05
"""The ratio from which on a single run counts as faster."""
NOISE = 1.1
"""The ratio that two single runs of one program are taken to show, where they were not compared."""
SLOWER = 1.25
"""The ratio by which a single run with fewer problems may look slower: breaks cost more on other devices and sizes."""
RUNS = 5
"""Runs that the proof and the last comparison take, about."""
AT_MOST = 0.6
"""Of the time that is left, that is kept for them."""
QUICK = 0.05
"""Of the time that there is: the program as it is runs a second time if a run takes no more."""
FOR_EAGER = 1.2
"""The ratio from which on it is better not to compile at all: more steps would make up for a smaller one."""
PAIRS = 3
"""Runs of both programs in turns at the end, if there is time."""
MOST_PAIRS = 9
"""Those where fewer do not decide."""
EXACT = "emulate_precision_casts"
"""The setting with which Inductor rounds as eager does, which is worth it where the program compares the two."""
NO_TIME = "no time was left (--time)"


class TuneStep(Enum):
    """The task, as progress shows it."""

    RECORD = "running the program"
    BASELINE = "timing the program as it is"
    EAGER = "running it without the compiler"
    TRY = "trying"
    JOIN = "leaving out"
    PROVE = "proving"


@dataclass(frozen=True, slots=True)
class TuneProgress:
    """A step for a change.  It is ``number`` of ``of`` changes; ``gained`` is the ratio of the best so far, ``left``
    the seconds that are left."""

    doing: TuneStep
    label: str | None = None
    number: int = 0
    of: int = 0
    gained: float | None = None
    left: float = 0.0


@dataclass(frozen=True, slots=True)
class TuneQuestion:
    """The thing to make small, and the seconds for it.  ``apply`` says that the best program is written,
    ``apply_unseen`` that this includes one that is held back."""

    goal: Goal
    seconds: float
    apply: bool
    apply_unseen: bool
    settings: FileSettings


def tune(program: UserProgram, question: TuneQuestion, say: Callable[[TuneProgress], None]) -> Tuning:
    """Runs the program many times, and writes nothing unless ``apply``.

    ``say`` is called with the progress. SIGINT or SIGTERM ends it, with what is known until then. Raises
    NothingToMeasure if the program cannot be measured, WorkerError if it cannot be run.
    """
    folder = Path(tempfile.mkdtemp(prefix="breakscan-tune-"))
    try:
        rules = load_library(question.settings.of(Path.cwd() / "any file").rule_folders)
        with interrupted_once(), ForkServerProcess() as server:
            return _Tune(Workers(program, folder, server, rules), question, say).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Made:
    """A program with changes: edits of ``fix``, and others in their order.  ``ratio`` says how much better it is than
    the program as it is, in a single run; ``steps`` is the ratio of their steps, None where none can be compared.
    ``unsure`` is a value at the end that differs by what rounding may: the compiled calls decide.  ``exact`` says that
    it computes what eager does, which the program as it is does not, though it compares the two."""

    run: Run
    edits: tuple[Candidate, ...] = ()
    changes: tuple[ProgramChange, ...] = ()
    texts: Texts = field(default_factory=dict)
    ratio: float = 1.0
    steps: Ratio | None = None
    unsure: str | None = None
    exact: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its changes."""
        return (*(one.label for one in self.edits), *(one.name for one in self.changes))

    @property
    def kind(self) -> RemedyKind:
        """The kind of its last change."""
        return self.changes[-1].kind if self.changes else RemedyKind.EDIT

    def __len__(self) -> int:
        return len(self.edits) + len(self.changes)


_WEIGHED = {ObservationKind.MORE_BREAKS, ObservationKind.MORE_EAGER, ObservationKind.MORE_RECOMPILES}
_SAME = Ratio(1.0, 1 / NOISE, NOISE)
"""Two runs of one program, where they were not compared."""


@dataclass(frozen=True, slots=True)
class _Turns:
    """Runs in turns: the ratio of their steps, that of runs of the program as it is, and the figures of the last
    ones; the seconds of compiling are those with empty caches."""

    ratio: Ratio | None
    same: Ratio
    before: RunFigures
    after: RunFigures

    @property
    def is_faster(self) -> bool:
        return self.ratio is not None and measure.is_faster(self.ratio, self.same)

    @property
    def is_slower(self) -> bool:
        return self.ratio is not None and measure.is_slower(self.ratio, self.same)


class _Tune:
    def __init__(self, workers: Workers, question: TuneQuestion, say: Callable[[TuneProgress], None]) -> None:
        self.workers = workers
        self.question = question
        self.runs = Runs(workers)
        self._say = say
        self._began = time.monotonic()
        self.tried: list[Trial] = []
        self.seen: dict[tuple[tuple[str, str], ...], _Made | None] = {}
        """The programs that were tried, by their texts; None for one that did not hold."""
        self.refused: list[Texts] = []
        """Those that the proof or the last comparison refused."""
        self.files: dict[Path, None] = {}
        """Those with problems."""
        self.notes: list[str | Observation] = []
        self.not_compiled: ProgramChange | None = None
        self.wall = 0.0
        """Seconds that a run of the program as it is takes, with those of its process."""
        self.loop: int | None = None
        self.eager: Run | None = None
        self.number = 0
        self.of = 0

    # -- the program as it is -----------------------------------------------------------------------------------------

    def run(self) -> Tuning:
        """Tunes the program."""
        self.say(TuneStep.RECORD)
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
        self.base = self.look
        self.best = _Made(self.base)
        self._keep(0.0)
        if error:
            raise self._failed(error)
        self.say(TuneStep.BASELINE)
        result: Best | None = None
        interrupted = False
        try:
            self._baseline()
            self._climb()
            self._leave_out()
            self._try_eager()
            result = self._proved()
        except KeyboardInterrupt:
            interrupted = True
            result = self._result(self.best) if len(self.best) else None
        except OutOfTime:
            # Only the program as it is was running.
            self.notes.append(f"nothing could be tried: {NO_TIME}")
        return self._tuning(result, interrupted)

    def _failed(self, error: str) -> WorkerError:
        """The error of a program that fails as it is, with a change with which it runs, if there is one."""
        for edits, changes in ((self._planned(), ()), *(((), (one,)) for one in self._changes())):
            made = _Made(self.look, tuple(edits), changes, self._texts_of(edits, changes) or {})
            self.say(TuneStep.TRY, ", ".join(made.names))
            with contextlib.suppress(WorkerError, OutOfTime):
                if made.texts and NOT_COMPILED not in made.names:
                    self._run(made.texts, RunRequest(seconds=self.longest))
                    return WorkerError(f"{error.splitlines()[0]}; it runs to its end with {', '.join(made.names)}")
        return WorkerError(error)

    def _baseline(self) -> None:
        """Times the program as it is, and without the compiler."""
        self.base = self._run({}, RunRequest(seconds=self.longest), keep=True)
        self.request = RunRequest(stop=self.base.report.stop)
        self.loop = step_loop(self.base.report.loops)
        self.best = _Made(self.base)
        self.wall = self.base.seconds
        again = self._run({}, self.request, self.base) if self.wall < QUICK * self.question.seconds else None
        self.say(TuneStep.EAGER)
        compares = any(one.name == EXACT for problem in self.look.explanation.problems for one in problem.remedies)
        self.eager = self._run({}, replace(self.request, eager=True), self.base, keep=compares)
        self.comparison = EndValues([one.distances for one in (again, self.eager) if one], self.base.dtypes)
        self.same = None if again is None else ratio_of(self.base, again, self.loop)
        left = self._left(0.0)
        # A change that was tried and not proved is more than one that was not tried.
        most = max(0.0, min(AT_MOST * left, left - RUNS * self.wall))
        self._keep(min(most, max(FOR_PROOF * left, RUNS * self.wall)))

    def _keep(self, seconds: float) -> None:
        """Keeps seconds of the time for later: until then, processes are ended when the others are over."""
        self.kept = seconds
        self.workers.until = self._began + self.question.seconds - seconds

    def _run(
        self, texts: Texts, request: RunRequest, known: Run | None = None, cold: bool = False, keep: bool = False
    ) -> Run:
        longest = SLOWEST * self.look.report.run_seconds + 2 * MORE
        return self.runs.run(texts, request, longest, None if cold else self.look, known, keep)

    # -- trying -------------------------------------------------------------------------------------------------------

    def _climb(self) -> None:
        """Tries changes on top of the best program, and those of its own problems, until there is nothing more."""
        known = {NOT_COMPILED}
        while True:
            self._try_edits(known)
            suggested = self._changes()
            self.not_compiled = next((one for one in suggested if one.name == NOT_COMPILED), self.not_compiled)
            changes = [one for one in suggested if one.name not in known]
            self.of = self.number + len(changes)
            was = self.best
            for change in changes:
                known.add(change.name)
                if self._left() <= 0:
                    self._add((change.name,), change.kind, TrialVerdict.NOT_TRIED, NO_TIME)
                elif self._try(self.best.edits, (*self.best.changes, change), change.name):
                    # It has other problems.
                    break
            if self.best is was and not self._try_together(suggested):
                return

    def _try_together(self, changes: Sequence[ProgramChange]) -> bool:
        """Tries what did not gain by itself, as a version that is compiled anew may have several causes."""
        fewest = self.best.run.figures(None).problems
        equal = {
            one.names
            for one in self.tried
            if one.verdict is TrialVerdict.NO_GAIN and one.figures is not None and one.figures.problems <= fewest
        }
        kinds = (RemedyKind.SHAPES, RemedyKind.CONSTRUCT)
        several = [one for one in changes if one.kind in kinds and (one.name,) in equal]
        if len(several) < 2 or self._left() <= 0:
            return False
        return self._try(self.best.edits, (*self.best.changes, *several), *(one.name for one in several))

    def _try_eager(self) -> None:
        """Compiles nothing, if that is clearly faster than the best program.  Only this change may do so: others with
        which nothing is compiled say the same in more words."""
        change = self.not_compiled
        if change is None or self.eager is None or self.question.goal is not Goal.STEP:
            return
        speed = self._speed(self.eager, ratio_of(self.base, self.eager, self.loop)) / self.best.ratio
        self.tried = [one for one in self.tried if one.names != (change.name,)]
        if speed < FOR_EAGER:
            reason = f"eager is {1 / speed:.2f}× slower" if speed < 1 / CLEARLY else "eager is not clearly faster"
            self._add((change.name,), change.kind, TrialVerdict.NO_GAIN, reason)
        elif self._left() > 0:
            self.not_compiled = None
            self._try((), (change,), change.name)
        else:
            self._add((change.name,), change.kind, TrialVerdict.NOT_TRIED, NO_TIME)

    def _changes(self) -> list[ProgramChange]:
        """The changes that the best run suggests."""
        run = self.best.run
        texts = {**self.texts, **self.best.texts}
        program = TunedProgram(run.explanation, texts, self.look.report, self.question.goal)
        self.notes += [f"{place} compiles by a call that cannot be changed" for place in program.elsewhere]
        return changes_of(program)

    def _try_edits(self, known: set[str]) -> None:
        """Tries the edits of ``fix`` at the problems of the best run: all together, then each where that does not
        hold."""
        new = [one for one in self._planned() if one.label not in known]
        known |= {one.label for one in new}
        if not new or self._left() <= 0:
            return
        together = (*self.best.edits, *new)
        self.of = self.number + 1
        if self._try(together, self.best.changes, *(one.label for one in new)) or len(new) == 1:
            return
        self.of = self.number + len(new)
        for one in new:
            if self._left() > 0:
                self._try((*self.best.edits, one), self.best.changes, one.label)

    def _planned(self) -> list[Candidate]:
        run, wanted = self.best.run, WantedRewrites()
        sites = [self._in_file(one.site) for one in run.explanation.problems if one.origin is not Origin.FRAMEWORK]
        lines: dict[str, set[int]] = {}
        for site in sites:
            lines.setdefault(str(Path(site.path).absolute()), set()).update(range(site.line, site.end_line + 1))
        self.files |= {Path(path): None for path in lines if path in self.texts}
        if not self.files:
            return []
        settings = self.question.settings.changed(observations=run.observations)
        self.rewrites = Rewrites(tuple(self.files), settings, wanted)
        planned = self.rewrites.plan(lines, sites)
        # To disable a function is a change of the region, and comes after what keeps it compiled.
        return [one for one in (*planned.alone, *planned.dependent) if one.rewrite != LAST_RESORT]

    def _in_file(self, site: Site) -> Site:
        """A site of the best program, at its line in the file."""
        path = str(Path(site.path).absolute())
        if path not in self.best.texts:
            return site
        lines = SourceMap.of_change(self.texts[path], self.best.texts[path])
        return replace(site, line=lines.before(site.line), end_line=lines.before(site.end_line))

    def _texts_of(self, edits: Sequence[Candidate], changes: Sequence[ProgramChange]) -> Texts | None:
        """The new texts of files with these changes; None if one of them does not fit."""
        texts = dict(self.texts)
        if edits:
            together = self.rewrites.together(edits, ALL)
            if together is None:
                return None
            texts |= {path: after for path, (_, after) in together.texts.items()}
        for change in changes:
            found = change.write(texts)
            if found is None:
                return None
            texts |= found
        return {path: text for path, text in texts.items() if text != self.texts[path]}

    def _try(self, edits: tuple[Candidate, ...], changes: tuple[ProgramChange, ...], *names: str) -> bool:
        """Tries a program, which is the best from here on if it is better.  Returns whether it is."""
        texts = self._texts_of(edits, changes)
        if not texts or tuple(sorted(texts.items())) in self.seen:
            return False
        self.number += 1
        self.of = max(self.of, self.number)
        self.say(TuneStep.TRY, ", ".join(names))
        made = self._made(edits, changes, texts, names)
        if made is not None and self._solves_more(made, self.best) and not self._is_better(made, self.best):
            # A single run looks slower by chance, too.
            del self.seen[tuple(sorted(texts.items()))]
            made = self._made(edits, changes, texts, names)
        if made is None or not self._is_better(made, self.best):
            if made is not None:
                self._add(names, made.kind, TrialVerdict.NO_GAIN, self._no_gain(made), made)
            return False
        self._add(names, made.kind, TrialVerdict.GAINS, "", made)
        self.best = made
        return True

    def _made(
        self, edits: tuple[Candidate, ...], changes: tuple[ProgramChange, ...], texts: Texts, names: tuple[str, ...]
    ) -> _Made | None:
        """Runs a program.  Returns None if it does not hold; the list of what was tried then has the ``names``."""
        key = tuple(sorted(texts.items()))
        if key in self.seen:
            return self.seen[key]
        self.seen[key] = None
        try:
            run = self._run(texts, self.request, self.base, self.question.goal is Goal.COMPILE)
        except WorkerError as error:
            verdict, reason = TrialVerdict.FAILS, error.first_line
        except OutOfTime:
            verdict, reason = TrialVerdict.NOT_TRIED, NO_TIME
        else:
            difference = self.comparison.difference(run.distances)
            if difference is None or self.rounded.difference(run.distances) is None:
                steps = ratio_of(self.base, run, self.loop)
                exact = any(EXACT in one.name for one in changes) and self._is_exact(texts)
                self.seen[key] = _Made(run, edits, changes, texts, self._speed(run, steps), steps, difference, exact)
                return self.seen[key]
            verdict, reason = TrialVerdict.DIFFERS, difference
        if names:
            self._add(names, changes[-1].kind if changes else RemedyKind.EDIT, verdict, reason)
        return None

    def _is_exact(self, texts: Texts) -> bool:
        """Return whether the values at the end are those of eager, and those of the program as it is are not."""
        values = EndValues((), self.base.dtypes)
        with contextlib.suppress(WorkerError, OutOfTime):
            if self.eager is not None and values.difference(self.eager.distances) is not None:
                return values.difference(self._run(texts, self.request, self.eager).distances) is None
        return False

    @functools.cached_property
    def rounded(self) -> EndValues:
        """The same comparison, with the rounding of TF32 and autocast, which training amplifies, as noise."""
        noise = [*self.comparison.noise]
        if self.look.report.cuda or any("autocast" in text for text in self.texts.values()):
            with contextlib.suppress(WorkerError, OutOfTime):
                noise.append(self._run({}, replace(self.request, eager=True, precise=True), self.base).distances)
        return EndValues(noise, self.base.dtypes)

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
        """Faster by more than single runs vary, or no slower and with fewer problems."""
        if self._compiles_nothing(one):
            return False
        noise = self._noise
        if self._is_faster(one, other, noise):
            is_more = one.run.figures(None).problems > other.run.figures(None).problems
            return not is_more or one.ratio > (2 * noise - 1) * other.ratio
        # Whether it is slower, runs in turns decide.
        return self._solves_more(one, other) and self._interval(one)[1] >= other.ratio / max(noise, SLOWER)

    def _solves_more(self, one: _Made, other: _Made) -> bool:
        """Fewer problems, or the results of eager where only those of the other differ; not by compiling less."""
        is_less = self._compiles_nothing(one) or any(NOT_COMPILED in change.name for change in one.changes)
        is_exact = one.exact and not other.exact
        return not is_less and (is_exact or one.run.figures(None).problems < other.run.figures(None).problems)

    def _is_faster(self, one: _Made, other: _Made, noise: float) -> bool:
        """Faster by more than single runs vary; where steps are timed, all of their interval."""
        return self._interval(one)[0] > self._interval(other)[1] and one.ratio > noise * other.ratio

    def _interval(self, one: _Made) -> tuple[float, float]:
        """The least and the greatest ratio that a single run allows: any, if a single step was timed."""
        if self.question.goal is not Goal.STEP or one.steps is None:
            return one.ratio, one.ratio
        return (one.steps.low, one.steps.high) if one.steps.low < one.steps.high else (0.0, math.inf)

    def _compiles_nothing(self, one: _Made) -> bool:
        is_meant = any(change.name == NOT_COMPILED for change in one.changes)
        return not is_meant and not one.run.figures(None).graphs

    @property
    def _noise(self) -> float:
        """The ratio that two single runs of one program may show."""
        return NOISE if self.same is None else max(CLEARLY, self.same.median, 1 / self.same.median)

    def _no_gain(self, made: _Made) -> str:
        speed = made.ratio / self.best.ratio
        if self._compiles_nothing(made):
            return "nothing is compiled with it"
        than = " than the patch" if len(self.best) else ""
        low, high = self._interval(made)
        if high > measure.WIDE * low:
            return f"not shown to be faster{than}: too few steps, or too noisy"
        return f"{1 / speed:.2f}× slower{than}" if speed < 1 / self._noise else f"no faster{than}"

    def _leave_out(self) -> None:
        """Leaves out what does not help, one by one: a patch that is read has to be short."""
        for name in self.best.names:
            if len(self.best) < 2 or self._left() <= 0:
                return
            self.say(TuneStep.JOIN, name)
            kept = tuple(one for one in self.best.edits if one.label != name)
            others = tuple(one for one in self.best.changes if one.name != name)
            texts = self._texts_of(kept, others)
            made = None if not texts else self._made(kept, others, texts, ())
            if made is not None:
                is_needed = self._solves_more(self.best, made) or self._is_faster(self.best, made, NOISE)
                if not (is_needed or self._compiles_nothing(made)):
                    # Other changes may have made the same texts.
                    self.best = replace(made, edits=kept, changes=others)

    # -- the proof ----------------------------------------------------------------------------------------------------

    def _proved(self) -> Best | None:
        """The best program, proved, and timed in turns with the program as it is."""
        while len(self.best):
            self.say(TuneStep.PROVE, ", ".join(self.best.names))
            proof, is_varied = self._proof()
            if proof is not None and self._is_refused(proof):
                differs = TrialVerdict.DIFFERS if proof.outputs_equal is False else TrialVerdict.FAILS
                self._refuse(TrialVerdict.NO_GAIN if proof.outputs_equal else differs, proof.reasons[0], edits=True)
                continue
            unsure = self.best.unsure if self.comparison.is_possible else "its results could not be compared"
            if unsure and (proof is None or not proof.outputs_equal):
                if self._left() <= 0:
                    self._refuse(TrialVerdict.NOT_TRIED, f"{unsure}, and the compiled calls were not: {NO_TIME}")
                else:
                    self._refuse(TrialVerdict.DIFFERS if self.best.unsure else TrialVerdict.FAILS, unsure)
                continue
            self._keep(0.0)
            turns = self._in_turns(self.best)
            fewer = self._solves_more(self.best, _Made(self.base))
            single = f"the steps were timed in a single run: {NO_TIME}"
            if turns is None and not fewer:
                self._refuse(TrialVerdict.NOT_TRIED, single)
                continue
            if turns is None:
                self.notes.append(single)
                return self._result(self.best, None, proof, is_varied)
            if self.question.goal is Goal.STEP and (turns.is_slower or not (turns.is_faster or fewer)):
                is_unclear = turns.ratio is not None and measure.is_unclear(turns.ratio, turns.same)
                reason = "slower" if turns.is_slower else "too noisy to say" if is_unclear else "no faster"
                reason += " where it is timed in turns"
                self._refuse(TrialVerdict.NO_GAIN, reason, turns.ratio)
                continue
            return self._result(self.best, turns, proof, is_varied)
        return None

    def _is_refused(self, proof: Proof) -> bool:
        """Return whether a proof stands against the best program.  Breaks and recompiles do not, where no edit has to
        be proved: whole runs have weighed them.  Nor do calls that cannot be compared one by one."""
        kinds = {one.kind for one in proof.reasons}
        is_weighed = kinds <= _WEIGHED and not self.best.edits
        return proof.verdict is ProofVerdict.REJECTED and not is_weighed and ObservationKind.OTHER_CALLS not in kinds

    def _refuse(
        self, verdict: TrialVerdict, reason: str | Observation, ratio: Ratio | None = None, edits: bool = False
    ) -> None:
        """Refuses the best program; the next one, without its ``edits`` if they are why, takes its place."""
        figures = self.best.run.figures(self.loop)
        self.tried.append(Trial(self.best.names, self.best.kind, verdict, reason, figures, ratio))
        self.refused.append(self.best.texts)
        barred = self.best.edits if edits else ()
        if barred and self.best.changes and (texts := self._texts_of((), self.best.changes)):
            self._made((), self.best.changes, texts, self.best.names)
        self.best = _Made(self.base)
        for other in self.seen.values() if self._left(0.0) > 0 else ():
            if other is None or other.texts in self.refused or any(one in barred for one in other.edits):
                continue
            if self._is_better(other, self.best):
                self.best = other
        if not len(self.best):
            # It was compared with the program that is refused now.
            self._try_eager()

    def _in_turns(self, made: _Made) -> _Turns | None:
        """Runs the program as it is and a changed one in turns, the changed one first with empty caches.  Returns None
        if there is no time for it."""
        pairs: list[tuple[Run, Run]] = []
        while True:
            try:
                before = self._run({}, self.request)
                pairs.append((before, self._run(made.texts, self.request, cold=not pairs)))
            except OutOfTime:
                return self._turns(pairs) if pairs else None
            turns, is_enough = self._turns(pairs), len(pairs) >= PAIRS
            is_clear = turns.ratio is None or turns.is_faster or (turns.is_slower and not turns.ratio.is_noisy)
            is_last = len(pairs) == MOST_PAIRS or self._left(0.0) <= (2 * self.wall if is_enough else 0.0)
            if is_last or (is_enough and is_clear):
                return turns

    def _turns(self, pairs: Sequence[tuple[Run, Run]]) -> _Turns:
        ratios = [ratio for pair in pairs if (ratio := ratio_of(*pair, self.loop))]
        firsts = [pair[0] for pair in pairs]
        sames = [ratio for pair in itertools.pairwise(firsts) if (ratio := ratio_of(*pair, self.loop))]
        same = measure.ratio_of_processes([Ratio(one.median, one.median, one.median) for one in sames or [_SAME]])
        last, changed = (one.figures(self.loop) for one in pairs[-1])
        cold = pairs[0][1].figures(None).compile_seconds
        ratio = measure.ratio_of_processes(ratios) if ratios else None
        return _Turns(ratio, same, last, replace(changed, compile_seconds=cold))

    def _proof(self) -> tuple[Proof | None, bool]:
        """The proof of the best program by its compiled calls, and whether all varied calls were compared; None if
        there is no time for it."""
        # The rest is for a run of both programs in turns, one of them with empty caches.
        self._keep(min(AT_MOST * self._left(0.0), self.wall + self.look.seconds))
        candidate = self._candidate(self.best)
        try:
            with running_original(self.workers) as original:
                verifier = Verifier(original, list(candidate.texts), lambda *_: None)
                # It is timed in runs of the whole program.
                proof = verifier.prove(candidate, ALL)
                self.notes += [*notes_of(original.about), *verifier.notes]
                return proof, verifier.is_probed
        except (WorkerError, NothingToMeasure) as error:
            self.notes.append(f"the compiled calls could not be compared: {error}")
        except OutOfTime:
            self.notes.append(f"the compiled calls were not compared one by one: {NO_TIME}")
        return None, False

    def _candidate(self, made: _Made) -> Candidate:
        return of_texts({path: (self.texts[path], text) for path, text in made.texts.items()}, ", ".join(made.names))

    def _result(
        self, made: _Made, turns: _Turns | None = None, proof: Proof | None = None, is_varied: bool = False
    ) -> Best:
        before, after = self.base.figures(self.loop), made.run.figures(self.loop)
        before = replace(before, compile_seconds=self.look.figures(None).compile_seconds)
        if turns is not None:
            before = replace(before, step_seconds=turns.before.step_seconds, run_seconds=turns.before.run_seconds)
            seconds = {name: getattr(turns.after, name) for name in ("step_seconds", "run_seconds", "compile_seconds")}
            after = replace(after, **seconds)
        held: list[UnseenCode | VariedDifference | str] = []
        compared: list[Evidence] = []
        if proof is not None:
            held += [*proof.unseen, *(one for one in proof.varied if not one.is_stated)]
            compared += [Evidence.CALLS] if proof.outputs_equal else []
            compared += [Evidence.VARIED] if proof.outputs_equal and is_varied and not proof.varied else []
        compared += [Evidence.EAGER] if made.exact else []
        compared += [Evidence.RUN] if self.comparison.is_possible and made.unsure is None else []
        if made.edits and Evidence.CALLS not in compared:
            held.append("the edits were not proved by the compiled calls")
        assumes = [one.difference for one in made.edits if one.difference]
        assumes += [line for one in made.changes for line in one.assumes]
        shown = {path: display_path(path, os.getcwd()) for path in made.texts}
        gained = [one for one in self.tried if one.verdict is TrialVerdict.GAINS]
        kept = [replace(one, names=tuple(name for name in one.names if name in made.names)) for one in gained]
        return Best(
            changes=tuple(one for one in kept if one.names),
            patch=diff_of(self._candidate(made), shown),
            before=before,
            after=after,
            ratio=made.steps if turns is None else turns.ratio,
            compared=tuple(compared),
            assumes=tuple(dict.fromkeys(assumes)),
            held_back=tuple(dict.fromkeys(held)),
        )

    # -- the result ---------------------------------------------------------------------------------------------------

    def _tuning(self, best: Best | None, interrupted: bool) -> Tuning:
        applied: tuple[str, ...] = ()
        not_applied: NotApplied | tuple[str, ...] | None = None
        writes = self.question.apply and best is not None and not interrupted
        if writes and best is not None and (self.question.apply_unseen or not best.held_back):
            applied, not_applied = write_candidate(self._candidate(self.best))
        elif self.question.apply:
            not_applied = NotApplied.INTERRUPTED if interrupted else NotApplied.NONE_ACCEPTED if best is None else None
        step = self.runs.loops[self.loop] if self.loop is not None else None
        device = self.base.explanation.device
        return Tuning(
            argv=self.workers.program.argv,
            environment=environment_of(self.base.about, device),
            goal=self.question.goal,
            seconds=time.monotonic() - self._began,
            steps=len(self.base.steps(self.loop)),
            step=None if step is None else f"{display_path(step.path, os.getcwd())}:{step.line}",
            cut=self.base.report.stop is not None,
            before=replace(self.base.figures(self.loop), compile_seconds=self.look.figures(None).compile_seconds),
            eager=self.eager.figures(self.loop) if self.eager is not None else None,
            best=best,
            tried=tuple(self.tried),
            notes=tuple(dict.fromkeys(self.notes)),
            applied=applied,
            not_applied=not_applied,
            interrupted=interrupted,
        )

    def say(self, doing: TuneStep, label: str | None = None) -> None:
        """Shows progress."""
        gained = self.best.ratio if self.number and len(self.best) else None
        self._say(TuneProgress(doing, label, self.number, self.of, gained, max(0.0, self._left(0.0))))

    def _left(self, kept: float | None = None) -> float:
        """The seconds that are left, without those that are kept, by default for the proof."""
        return self.question.seconds - (time.monotonic() - self._began) - (self.kept if kept is None else kept)

    def _add(
        self, names: tuple[str, ...], kind: RemedyKind, verdict: TrialVerdict, reason: str, made: _Made | None = None
    ) -> None:
        figures, steps = (None, None) if made is None else (made.run.figures(self.loop), made.steps)
        self.tried.append(Trial(names, kind, verdict, reason, figures, steps, self.best.run.figures(self.loop)))
