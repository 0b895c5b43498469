"""The pipeline of ``verify``: from a program and changes to a proof of each change, and of all together."""

import contextlib
import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from breakscan.fix.planner import WantedRewrites
from breakscan.fix.result import Effect, effects_of
from breakscan.model.findings import Origin, Site
from breakscan.prove import faster as measure
from breakscan.prove.call_runs import CallRuns
from breakscan.prove.changed_code import UnseenCode, UnseenKind, changed_code_ran, lines_around
from breakscan.prove.divergence import find_divergence
from breakscan.prove.equal import FORMER, NOTED, TOLERANCES, VALUES, Change, Part, ResultDifference
from breakscan.prove.faster import Ratio, Rounds, Unsteady
from breakscan.prove.observation import Observation, ObservationKind, environment_of, notes_of, other_calls
from breakscan.prove.original import NOT_TRIED, CompiledProgram, Original, running_original
from breakscan.prove.probe import Probe, is_stated
from breakscan.prove.program_run import WholeProgram
from breakscan.prove.proof import Divergence, Metrics, NotApplied, Proof, ProofVerdict, Verification
from breakscan.prove.protocol import Description, RanCode, RunRequest, StepKind
from breakscan.prove.rewrites import FREEZING, Planned, Rewrites, diff_of
from breakscan.prove.state import UNREAD
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.worker import ALL, UNCHANGED, Candidate, Say, UserProgram, Worker, WorkerError, workers_of
from breakscan.rulebook.config import FileSettings
from breakscan.source.module import SourceProblem
from breakscan.source.paths import display_path
from breakscan.source.writing import rewrite_file


def break_changes(
    candidate: Candidate, before: CompiledProgram, after: CompiledProgram
) -> tuple[tuple[str, ...], list[Observation]]:
    """The new break sites, as places in the unchanged files, which an earlier break has often hidden, and the reasons
    to reject the change because of its breaks."""
    maps = {display_path(path, os.getcwd()): lines for path, lines in candidate.lines.items()}
    sites = [one.site for one in after.explanation.breaks]
    places = [(one.path, maps[one.path].before(one.line) if one.path in maps else one.line) for one in sites]

    def are_in(target: Site) -> list[tuple[str, int]]:
        return [(path, line) for path, line in places if path == target.path and target.line <= line <= target.end_line]

    known = {place for one in before.explanation.breaks for place in are_in(one.site)}
    revealed = tuple(f"{path}:{line}" for path, line in places if (path, line) not in known)
    stays = [f"{one.path}:{one.line}" for one in candidate.targets if are_in(one)]
    objections = [Observation(ObservationKind.BREAK_STAYS, place) for place in stays]
    was, now = before.metrics, after.metrics
    more = now.recompiles - was.recompiles
    cause = next((one.subject for one in after.explanation.recompiles), "")
    eager = now.eager_frames, was.eager_frames
    # A function that ran eager and is compiled now shows breaks and recompiles that were hidden, so its time decides.
    if now.breaks > was.breaks and eager[0] >= eager[1]:
        numbers = now.breaks, was.breaks
        objections.append(Observation(ObservationKind.MORE_BREAKS, names=revealed, numbers=numbers))
    if eager[0] > eager[1]:
        objections.append(Observation(ObservationKind.MORE_EAGER, numbers=eager))
    if more > 0 and eager[0] >= eager[1]:
        objections.append(Observation(ObservationKind.MORE_RECOMPILES, cause, numbers=(more,)))
    return revealed, objections


LONGEST_RUN = 60.0
"""Seconds for which the program runs where all of its calls matter."""
LONGEST_AGAIN = 4.0
"""Seconds for which each further pair of processes is timed."""
BEFORE, SAME, AFTER = "before", "same", "after"
"""The blocks of a round: the two processes of the unchanged program, and that of the change."""


class OriginalFails(WorkerError):
    """The unchanged program fails while it is timed."""


class StepRace:
    """Times workers against the unchanged program. ``same`` is the last ratio of its two processes, ``memory`` the most
    that a step of it takes; None if not known."""

    def __init__(self, original: Original) -> None:
        self.same: Ratio | None = None
        self.memory: int | None = None
        self._original = original

    @cached_property
    def _seconds(self) -> float:
        """The seconds of a step of the unchanged program, both processes of which are prepared once."""
        first, second = self._original.first, self._original.second
        try:
            self._original.time_alike(second)
            with ThreadPoolExecutor(1) as pool:
                compiling = pool.submit(second.ask, StepTimer.prepare, StepKind.COMPILED)
                first.ask(StepTimer.prepare, StepKind.COMPILED, self._keeps(self._original.compiled.metrics))
                compiling.result()
            seconds, _ = (one.ask(StepTimer.warm_up, StepKind.COMPILED) for one in (first, second))
            self.memory = first.ask(StepTimer.memory, StepKind.COMPILED)
        except WorkerError as error:
            raise OriginalFails(str(error)) from error
        return seconds

    def _keeps(self, compiled: Metrics) -> bool:
        """Return True if what a process has compiled is timed: no step is so short that the record of it shows."""
        return self._original.is_long and not compiled.recompiles

    def run(self, worker: Worker, compiled: Metrics) -> Rounds:
        """Times a worker with a change.  Raises Unsteady and WorkerError."""
        seconds = {BEFORE: self._seconds, SAME: self._seconds}
        self._original.time_alike(worker)
        seconds[AFTER] = worker.prepare(StepKind.COMPILED, self._keeps(compiled))
        blocks = {BEFORE: self._original.first.block, SAME: self._original.second.block, AFTER: worker.block}
        rounds = measure.interleave(blocks, seconds, decided=_is_decided)
        self.same = rounds.ratio(SAME, BEFORE)
        return rounds

    def run_again(self, worker: Worker, change: Candidate) -> Ratio:
        """Times a change in a new process against a new one of the unchanged program, with what the others have
        compiled.  Raises Unsteady and WorkerError."""
        start = self._original.workers.start
        with start(UNCHANGED, self._original.first) as before, start(change, worker) as after:
            for one in (before, after):
                one.ready()
                if self._original.hand_over(one, changed=one is after):
                    raise WorkerError("a further process does not take the values")
            self._original.time_alike(before, after)
            after.compile_as(change)
            steps = {BEFORE: (before, StepKind.COMPILED), AFTER: (after, StepKind.COMPILED)}
            rounds = measure.race(steps, LONGEST_AGAIN, lambda its: _is_decided(its, self.same))
        return rounds.ratio(AFTER, BEFORE)


def _is_decided(rounds: Rounds, same: Ratio | None = None) -> bool:
    both = (BEFORE,) if same else (BEFORE, SAME)
    claim, same = rounds.ratio(AFTER, *both, certainty=1), same or rounds.ratio(SAME, BEFORE, certainty=1)
    return measure.is_faster(claim, same) or measure.is_slower(claim, same)


def _verdict(claim: Ratio, same: Ratio) -> ProofVerdict:
    if measure.is_faster(claim, same):
        return ProofVerdict.ACCEPTED
    is_open = not measure.is_slower(claim, same) and measure.is_unclear(claim, same)
    return ProofVerdict.TOO_NOISY if is_open else ProofVerdict.NO_FASTER


class _Rejected(Exception):
    """A change is rejected and needs no further checks."""


class Verifier:
    """Proves changes of a program. Raises WorkerError.  ``files`` are those that may change, ``proofs`` those so far,
    and ``candidates`` what was proved, by label.  Unless it ``weighs`` breaks and recompiles, the unchanged program is
    compiled only where results of a change differ, which its own may, too."""

    def __init__(
        self,
        original: Original,
        files: Sequence[str],
        say: Callable[[str, str | None], None],
        weighs: bool = True,
    ) -> None:
        self.original = original
        self._files = files
        self._say = say
        self._probed: Probe | None = None
        self.proofs: list[Proof] = []
        self.candidates: dict[str, Candidate] = {}
        self.race = StepRace(original)
        self._weighs = weighs
        if weighs:
            _ = original.compiled_differences

    @property
    def notes(self) -> list[Observation]:
        """Remarks about the unchanged program that the reader must know."""
        problem = self._probed.problem if self._probed is not None else None
        return [*self.original.notes, *([problem] if problem is not None else [])]

    @property
    def is_probed(self) -> bool:
        """Calls of changes were varied, and all of the varied calls were compared."""
        return self._probed is not None and self._probed.done and self._probed.problem is None

    def divergence(self, program: Path | None) -> Divergence | None:
        """Finds where the unchanged program, compiled, differs from eager, if so; writes a minimal ``program``."""
        if not self.original.compiled_differences or self.original.unrepeatable is not None:
            return None
        self._say("finding where compiled code differs from eager", None)
        return find_divergence(self.original, self.original.compiled_differences, program)

    def prove(self, candidate: Candidate, accepted_in: str | None = None) -> Proof:
        """Runs the program with the change. It is not timed if a set that has it is accepted.  Raises OutOfTime."""
        trial = _Trial(candidate, self.original, accepted_in, self._weighs)
        self._say("running the program", candidate.label)
        try:
            with contextlib.ExitStack() as stack:
                worker = stack.enter_context(self.original.workers.start(candidate))
                if units := self.original.other_units(candidate, worker.ready()):
                    whole = replace(candidate, units=units)
                    other = stack.enter_context(self.original.workers.start(whole))
                    if other_calls(other.ready(), self.original.about) is None:
                        trial.candidate, worker = whole, other
                self._judge(trial, worker)
                if not trial.proof.reasons:
                    self._measure(trial, worker)
        except _Rejected:
            pass
        except OriginalFails as error:
            trial.add(Observation(ObservationKind.ORIGINAL_FAILS, str(error)))
        except WorkerError as error:
            is_compared = trial.proof.outputs_equal is not None
            kind = ObservationKind.FAILS_WHILE_TIMED if is_compared else ObservationKind.DOES_NOT_RUN
            trial.add(Observation(kind, str(error)))
        self.proofs.append(trial.proof)
        self.candidates[candidate.label] = candidate
        return trial.proof

    def member_of(self, accepted: Proof, candidate: Candidate) -> Proof:
        """Returns the proof of a change that needs no process of its own: a set that has it is accepted, and clear."""
        proof = _Trial(candidate, self.original).proof
        return replace(proof, verdict=ProofVerdict.ACCEPTED, accepted_in=accepted.label, outputs_equal=True)

    def _probe(self) -> Probe:
        """Returns the probe, which starts when it is first needed: it is not there for settings of the compiler."""
        self._probed = self._probed or Probe(self.original, self._files)
        return self._probed

    def _judge(self, trial: "_Trial", worker: Worker) -> None:
        about = worker.ready()
        trial.require_same_start(worker, about)
        if trial.candidate.settings.get(FREEZING):
            # It holds weights constant, and the captured calls are the first ones alone.
            whole = RunRequest(seconds=LONGEST_RUN, eager=True)
            with self.original.workers.start(UNCHANGED, whole=whole) as run:
                if run.ask(WholeProgram.report).weights_change:
                    trial.stop(Observation(ObservationKind.WEIGHTS_CHANGE))
        if self.original.unrepeatable is not None:
            trial.stop(Observation(ObservationKind.UNREPEATABLE, details=(self.original.unrepeatable,)))
        self._require_equal(trial, worker, about)
        self._say("compiling", trial.candidate.label)
        if trial.candidate.texts and not self.original.run.outside:
            # It varies the calls meanwhile.
            self._probe()
        after = self.original.compile(worker, trial.candidate)
        weighed = break_changes(trial.candidate, self.original.compiled, after) if self._weighs else ((), [])
        trial.proof = replace(trial.proof, after=after.metrics, revealed=weighed[0])
        found = self.original.differences(worker, after.result)
        if found and self.original.learns_noise():
            found = self.original.differences(worker, self.original.run_compiled(worker))
        # It need not be better than the unchanged program.
        own = self.original.compiled_differences if found else ()
        usual = {(one.part, one.change, one.path) for one in own if one.change is not Change.ERROR}
        others = [one for one in found if (one.part, one.change, one.path) not in usual]
        are_errors = others and all(one.change is Change.ERROR for one in others)
        if are_errors and self.original.exact_differences(worker) == ():
            self.original.know_rounding()
            found = self.original.differences(worker, self.original.run_compiled(worker))
            others = [one for one in found if (one.part, one.change, one.path) not in usual]
        trial.add_differences(ObservationKind.COMPILED_DIFFERS, others)
        trial.proof = replace(trial.proof, outputs_equal=not trial.proof.reasons)
        for observation in weighed[1]:
            trial.add(observation)

    def _measure(self, trial: "_Trial", worker: Worker) -> None:
        """Times a change that is equal, and runs it in varied calls."""
        if trial.candidate.texts:
            self._probe().ready()
        if trial.accepted_in is None:
            self._say("timing", trial.candidate.label)
            self._time(trial, worker)
        else:
            trial.proof = replace(trial.proof, verdict=ProofVerdict.ACCEPTED, accepted_in=trial.accepted_in)
        if trial.candidate.texts:
            self._say("recording the outcomes of tests", None)
            varied, unseen = self._probe().vary(trial.candidate, worker, trial.ran)
            trial.proof = replace(trial.proof, varied=tuple(varied), unseen=(*trial.proof.unseen, *unseen))

    def _require_equal(self, trial: "_Trial", worker: Worker, about: Description) -> None:
        """Requires that the change runs, and that eager code does the same: what is compiled is not worth it else."""
        before = {path: about.ran.get(path, RanCode()) for path in trial.candidate.texts}
        changed = {path: lines.changed_lines() for path, lines in trial.candidate.lines.items()}
        texts = trial.candidate.texts.items()
        around = {path: tuple(lines_around(text, changed[path], before[path].lines)) for path, (_, text) in texts}
        ran, moves = worker.ask(CallRuns.eager, around)
        trial.ran = {path: ran[path] + code for path, code in before.items()}
        trial.require_executed()
        eager = self.original.eager_differences(worker, moves)
        if eager.differences and self.original.learns_noise():
            eager = self.original.eager_differences(worker)
        exact = self.original.exact_differences(worker) if eager.differences or eager.loose else ()
        if exact == () and eager.differences and all(one.change is Change.ERROR for one in eager.differences):
            # The change computes the same function, and may only round otherwise.
            self.original.know_rounding()
            eager = self.original.eager_differences(worker)
        if self.original.prints_same and eager.printed is not None:
            trial.proof = replace(trial.proof, printed=(eager.printed[0], eager.printed[1]))
        if moves and not eager.same_parts:
            trial.add_unseen("the calls return other parts, which changed code reads")
        if moves and (outside := [one for one in eager.differences if one.part is Part.OUTSIDE]):
            names = dict.fromkeys(one.path for one in outside)
            trial.add_unseen(*(f"{name} is another after the calls, and changed code may write it" for name in names))
            eager = replace(eager, differences=tuple(one for one in eager.differences if one not in outside))
        trial.add_differences(ObservationKind.EAGER_DIFFERS, eager.differences)
        trial.add_differences(ObservationKind.EXACT_DIFFERS, exact or ())
        trial.proof = replace(trial.proof, outputs_equal=not trial.proof.reasons)
        if trial.proof.reasons:
            raise _Rejected

    def _time(self, trial: "_Trial", worker: Worker) -> None:
        def again() -> Ratio:
            self._say("timing it in further processes", trial.candidate.label)
            return self.race.run_again(worker, trial.candidate)

        assert trial.proof.after is not None
        try:
            rounds = self.race.run(worker, trial.proof.after)
            same, ratio = rounds.ratio(SAME, BEFORE), rounds.ratio(AFTER, BEFORE, SAME)
            # If memory does not hold two more processes, that of the first ones counts.
            with contextlib.suppress(WorkerError):
                ratio = measure.repeated(ratio, same, again)
        except Unsteady as error:
            kind = ObservationKind.UNSTEADY if str(error) == AFTER else ObservationKind.ORIGINAL_UNSTEADY
            trial.stop(Observation(kind))
        verdict = _verdict(ratio, same)
        seconds = statistics.median(rounds.seconds[AFTER])
        memory = worker.ask(StepTimer.memory, StepKind.COMPILED)
        # In the same rounds: what is shown of both steps is their ratio.
        before = replace(trial.proof.before, step_seconds=seconds * ratio.median, memory_bytes=self.race.memory)
        after = replace(trial.proof.after, step_seconds=seconds, memory_bytes=memory)
        slower = measure.is_slower(ratio, same)
        trial.proof = replace(trial.proof, verdict=verdict, before=before, after=after, ratio=ratio, slower=slower)


class _Trial:
    """The checks of one change. ``proof`` holds the results; a reason rejects it. ``accepted_in`` is a set with it."""

    def __init__(
        self, candidate: Candidate, original: Original, accepted_in: str | None = None, weighs: bool = True
    ) -> None:
        self.candidate = candidate
        self.accepted_in = accepted_in
        self.ran: Mapping[str, RanCode] = {}
        """The code of the new texts that ran, by path."""
        self._differing: set[object] = set()
        self._other_forms: set[str] = set()
        self._original = original
        finding = next(iter(candidate.findings), None)
        self.proof = Proof(
            candidate.label,
            ProofVerdict.REJECTED,
            (),
            None,
            original.compiled.metrics if weighs else Metrics(0, 0, 0, 0, {}, 0.0, 0.0),
            rule=finding.rule if finding else None,
            rewrite=candidate.rewrite,
            site=finding.site if finding else None,
            difference=candidate.difference,
            diff=diff_of(candidate, {path: display_path(path, os.getcwd()) for path in candidate.texts}),
            members=candidate.members,
            breaks_there=bool(candidate.targets) or finding is None,
        )

    def add(self, reason: Observation) -> None:
        """Adds a reason for which the change is rejected."""
        if reason not in self.proof.reasons:
            reasons = (*self.proof.reasons, reason)
            self.proof = replace(self.proof, verdict=ProofVerdict.REJECTED, reasons=reasons)

    def add_differences(self, kind: ObservationKind, differences: Iterable[ResultDifference]) -> None:
        """Adds the first difference of each value.  What is no error is noted; but rewrites must state new types."""
        says_so = any(Effect.TYPES in one.effects for one in self.candidate.differences)
        for one in differences:
            key = (kind is ObservationKind.COMPILED_DIFFERS, one.part, one.change, one.path)
            # The same value often differs in every call, and in higher precision, too.
            if key in self._differing:
                continue
            self._differing.add(key)
            of_rewrite = one.change is Change.NUMBER and bool(self.candidate.rewrite or self.candidate.members)
            is_copy = (one.part, one.now) == (Part.OUTPUT, None) or FORMER in (one.was, one.now)
            is_copy = is_copy or (one.now or "").startswith("output")
            if one.part is Part.STATE and one.change not in VALUES and (form := self._other_form(one.path)) is not None:
                # A change that reads and writes it may keep it otherwise.
                self.add_unseen(f"{form} has another form, and is not compared")
            elif one.change is Change.ALIAS and is_copy:
                # Nothing but a later change in place shows it.
                if not is_stated(one, effects_of(self.candidate.differences)):
                    texts = (f"shares its memory with {one.now}", f"no longer shares its memory with {one.was}")
                    self.add_unseen(f"{one.path} {texts[one.now is None]}")
            elif one.path.endswith(UNREAD):
                # Whoever reads it sees that; else a cache only takes time.
                self.add_unseen(f"{one.path} is {one.now or 'unchanged'} after the call, not {one.was or 'unchanged'}")
            elif one.change not in NOTED or (of_rewrite and not says_so):
                self.add(Observation(kind, details=(one,)))
            elif not of_rewrite:
                self.proof = replace(self.proof, noted=tuple(dict.fromkeys((*self.proof.noted, one))))

    def add_unseen(self, *texts: str) -> None:
        """Adds what only code outside of the calls can show."""
        unseen = [UnseenCode(UnseenKind.OUTSIDE, "", 0, text) for text in texts]
        self.proof = replace(self.proof, unseen=tuple(dict.fromkeys((*self.proof.unseen, *unseen))))

    def _other_form(self, path: str) -> str | None:
        names = (one for one in self._other_forms if path == one or path.startswith((f"{one}.", f"{one}[")))
        return min(names, default=None)

    def stop(self, reason: Observation, verdict: ProofVerdict = ProofVerdict.REJECTED) -> NoReturn:
        """Raises _Rejected."""
        self.add(reason)
        self.proof = replace(self.proof, verdict=verdict)
        raise _Rejected

    def require_same_start(self, worker: Worker, about: Description) -> None:
        """Requires that the process can be compared, and drew the same random numbers before."""
        if problem := self._original.incomparable(worker, about, self.candidate):
            is_tried = problem.kind not in NOT_TRIED
            self.stop(problem, ProofVerdict.REJECTED if is_tried else ProofVerdict.NOT_TRIED)
        self._other_forms = self._original.other_forms(about)
        other = self._original.other_start(about)
        if names := tuple(sorted(name for kind, name in other if kind == "generators")):
            self.stop(Observation(ObservationKind.OTHER_RANDOM_START, names=names))
        for (kind, name), value in sorted(other.items(), reverse=True)[:5]:
            text = "has other values" if kind == "values" else f"is {value}"
            self.add_unseen(f"before the first call, {name} {text}")

    def require_executed(self) -> None:
        """Requires that the changed code ran."""
        for path, (_, after) in self.candidate.texts.items():
            has_run = changed_code_ran(after, self.candidate.lines[path], self.ran[path].lines)
            if not has_run:
                kind = ObservationKind.NO_CODE if has_run is None else ObservationKind.NOT_EXECUTED
                self.stop(Observation(kind), ProofVerdict.NOT_TRIED)


def prove_together(verifier: Verifier, rewrites: Rewrites, planned: Planned, each: bool) -> None:
    """Proves all rewrites together, and each by itself where that is asked for, or left open."""
    every = (*planned.alone, *planned.dependent)
    verifier.candidates |= {one.label: one for one in every}
    together = rewrites.together(every, ALL) if len(every) > 1 else None
    whole = None if together is None else verifier.prove(together)
    if whole is not None and whole.is_clear and not each:
        verifier.proofs += [verifier.member_of(whole, one) for one in planned.alone]
        return
    is_accepted = whole is not None and whole.verdict is ProofVerdict.ACCEPTED
    for one in planned.alone:
        verifier.prove(one, ALL if is_accepted and not each else None)


@dataclass(frozen=True, slots=True)
class Question:
    """The thing to verify: ``candidate``, or else all rewrites that ``wanted`` and ``settings`` allow; if proved
    changes are written (``apply``, ``apply_unseen`` those that are held back, too), if each is proved alone, and the
    file for a program that shows how compiled differs from eager (``repro``)."""

    settings: FileSettings
    wanted: WantedRewrites
    candidate: Candidate | None = None
    apply: bool = False
    apply_unseen: bool = False
    each: bool = False
    repro: Path | None = None


def verify(program: UserProgram, question: Question, say: Say) -> Verification:
    """Runs the program several times, and writes nothing unless ``apply``.  SIGINT or SIGTERM ends it, with what is
    proved until then.  Raises NothingToMeasure if the program cannot be measured, WorkerError if it cannot be run."""
    with workers_of(program, question.settings) as workers:
        say("running the program")
        with running_original(workers, question.candidate) as original:
            say("compiling the program as it is")
            return _Work(program, question, original, say).run()


class _Work:
    def __init__(self, program: UserProgram, question: Question, original: Original, say: Say) -> None:
        self.program = program
        self.question = question
        self.original = original
        self.say = say
        settings = question.settings.changed(observations=original.compiled.observations)
        self.rewrites = Rewrites(self._files(), settings, question.wanted)
        given = question.candidate
        watched = [str(path) for path in self.rewrites.files] if given is None else list(given.texts)
        self.verifier = Verifier(original, watched, self._progress)
        self.planned = Planned((), (), (), ())

    def run(self) -> Verification:
        given = self.question.candidate
        applied: tuple[str, ...] = ()
        not_applied: NotApplied | tuple[str, ...] | None = None
        divergence: Divergence | None = None
        interrupted = False
        try:
            if given is not None:
                self.verifier.prove(given)
            else:
                sites = [one.site for one in self.original.compiled.explanation.breaks]
                ran, _ = self.original.second.ask(CallRuns.eager, {str(path): () for path in self.rewrites.files})
                self.planned = self.rewrites.plan({path: code.lines for path, code in ran.items()}, sites)
                prove_together(self.verifier, self.rewrites, self.planned, self.question.each or self.question.apply)
            if self.question.apply:
                chosen = self._proved()
                if chosen is not None:
                    applied, not_applied = write_candidate(chosen)
                elif not self._held_back():
                    not_applied = NotApplied.NONE_ACCEPTED
            divergence = self.verifier.divergence(self.question.repro)
        except KeyboardInterrupt:
            interrupted = True
            if self.question.apply and not applied:
                not_applied = NotApplied.INTERRUPTED
        about = self.original.about
        return Verification(
            argv=self.program.argv,
            environment=environment_of(about, self.original.compiled.explanation.device),
            callables={one.name: one.calls for one in about.callables},
            backward=about.with_backward,
            # The whole set, and what was tried after it, come last.
            proofs=tuple(sorted(self.verifier.proofs, key=lambda one: bool(one.members))),
            same=self.verifier.race.same,
            step=self.original.step if self.verifier.race.same is not None else None,
            tolerances=TOLERANCES,
            dependent=tuple(one.label for one in self.planned.dependent),
            unreached=self.planned.unreached,
            declined=self.planned.declined,
            notes=(*notes_of(about), *self.verifier.notes),
            applied=applied,
            not_applied=not_applied,
            held_back=self._held_back() if self.question.apply else (),
            breaks=self.original.compiled.metrics.breaks,
            divergence=divergence,
            compared=self.original.unrepeatable is None and not interrupted,
            interrupted=interrupted,
        )

    def _progress(self, doing: str, label: str | None) -> None:
        """All together come first, then each if the set alone does not decide."""
        alone, number = len(self.planned.alone), len(self.verifier.proofs) + 1
        count = f"{number} of {max(number, alone + (alone > 1))}: "
        self.say(doing if label is None else f"{count}{label}: {doing}")

    def _files(self) -> tuple[Path, ...]:
        """Returns the script, and the files in which the program broke the graph, recompiled or ran eager."""
        explanation = self.original.compiled.explanation
        names = [
            one.site.path
            for seen in (explanation.breaks, explanation.recompiles, explanation.frames)
            for one in seen
            if one.origin is not Origin.FRAMEWORK
        ]
        if self.program.argv[0] != "-m":
            names.insert(0, self.program.argv[0])
        paths = dict.fromkeys(Path(name).absolute() for name in names)
        return tuple(path for path in paths if path.suffix == ".py" and path.is_file())

    def _proved(self) -> Candidate | None:
        """Returns the proved changes, combined if there are several; None if there are none. This is the whole set if
        it is proved: some rewrites only help together with others, as when one break hides another. Otherwise it is all
        that are proved by themselves, if they are proved together, else the best."""
        chosen = [proof for proof in self.verifier.proofs if proof.members and self._holds(proof)]
        if not chosen:
            good = [proof for proof in self.verifier.proofs if not proof.members and self._holds(proof)]
            members = [self.verifier.candidates[proof.label] for proof in good]
            label = f"the {len(members)} that are accepted"
            together = self.rewrites.together(members, label) if len(members) > 1 else None
            chosen = list(filter(self._holds, [] if together is None else [self.verifier.prove(together)])) or good
        if not chosen:
            return None
        return self.verifier.candidates[max(chosen, key=lambda proof: proof.ratio.median if proof.ratio else 0.0).label]

    def _holds(self, proof: Proof) -> bool:
        return proof.verdict is ProofVerdict.ACCEPTED and not self._is_held_back(proof)

    def _is_held_back(self, proof: Proof) -> bool:
        """Returns whether a change is not written because it, or one of its members, is held back."""
        members = (one for one in self.verifier.proofs if one.label in proof.members)
        return not self.question.apply_unseen and any(one.is_held_back for one in (proof, *members))

    def _held_back(self) -> tuple[str, ...]:
        """Returns the accepted changes that are held back; sets only if there is no single one."""
        held = [one for one in self.verifier.proofs if one.verdict is ProofVerdict.ACCEPTED and self._is_held_back(one)]
        return tuple(one.label for one in [one for one in held if not one.members] or held)


def write_candidate(candidate: Candidate) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Writes the new texts of a candidate into its files.  Returns the files, and the errors of others."""
    written: list[str] = []
    errors: list[str] = []
    for path, (before, after) in candidate.texts.items():
        shown = display_path(path, Path.cwd())
        try:
            rewrite_file(Path(path), shown, before, after)
            written.append(shown)
        except SourceProblem as problem:
            errors.append(problem.error.message)
    return tuple(written), tuple(errors) or None
