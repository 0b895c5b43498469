"""The pipeline of ``verify``: from a program and changes to a proof of each change, and of all together."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from breakscan.fix.planner import WantedRewrites
from breakscan.model.findings import Origin
from breakscan.prove.call_runs import CallRuns
from breakscan.prove.candidate import ALL, Candidate, MeasuringProgress, MeasuringStep, Say
from breakscan.prove.equal import TOLERANCES
from breakscan.prove.fork_server import ForkServerProcess
from breakscan.prove.observation import environment_of, notes_of
from breakscan.prove.original import Original, running_original
from breakscan.prove.proof import Divergence, NotApplied, Proof, ProofVerdict, Verification
from breakscan.prove.rewrites import Planned, Rewrites
from breakscan.prove.verifier import Verifier
from breakscan.prove.worker import UserProgram, Workers, interrupted_once
from breakscan.rulebook.config import FileSettings
from breakscan.rulebook.library import load_library
from breakscan.source.module import SourceProblem
from breakscan.source.paths import display_path
from breakscan.source.writing import rewrite_file


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
    """Runs the program several times, and writes nothing unless ``apply``. ``say`` is called with the progress. SIGINT
    or SIGTERM ends the run, which returns what is proved until then. Raises NothingToMeasure if the program cannot be
    measured, WorkerError if it cannot be run."""
    rules = load_library(question.settings.of(Path.cwd() / "any file").rule_folders)
    temporary = tempfile.TemporaryDirectory(prefix="breakscan-verify-", ignore_cleanup_errors=True)
    with temporary as folder, interrupted_once(), ForkServerProcess() as server:
        say(MeasuringProgress(MeasuringStep.RUN))
        with running_original(Workers(program, Path(folder), server, rules), question.candidate) as original:
            say(MeasuringProgress(MeasuringStep.COMPILE))
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

    def _progress(self, step: MeasuringStep, label: str | None) -> None:
        """All together come first, then each if the set alone does not decide."""
        if label is None:
            self.say(MeasuringProgress(step))
            return
        alone = len(self.planned.alone)
        number = len(self.verifier.proofs) + 1
        self.say(MeasuringProgress(step, label, number, max(number, alone + (alone > 1))))

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
