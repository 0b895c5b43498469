"""What the reports of ``verify`` say in words, of printable proofs."""

from __future__ import annotations

from collections.abc import Mapping

from breakscan.model.words import UNITS, counted, grouped_reasons, megabytes, sentence
from breakscan.prove.verify.label import Label, RewriteLabel, SetLabel
from breakscan.prove.verify.proof import DeclinedFinding, Metrics, NotApplied, Proof, ProofVerdict, Verification
from breakscan.prove.worker.progress import MeasuringStep
from breakscan.report.shared.call_words import captured_words
from breakscan.report.shared.observation_words import observation_words
from breakscan.report.shared.ratio_words import interval, number, ratio_words
from breakscan.report.shared.value_words import rests_on_words
from breakscan.report.verify.unseen_words import grouped, outcome_words, stress_words

NOISY = 1.1
"""How many times as fast two equal processes may look before the report says so."""
KINDS = ("triton", "cpp", "extern", "fallback", "other")


def verdict_words(proof: Proof) -> str:
    """``equal, 4.9× faster [4.7, 5.1]``, ``equal, no faster (1.00 [0.99, 1.02])``, ``accepted with all``, ``rejected:
    …``.

    The first outcome that no captured call had follows, unless the change is rejected.
    """
    if proof.verdict is ProofVerdict.REJECTED:
        return f"rejected: {observation_words(proof.reasons[0])}" if proof.reasons else "rejected"
    ratio = proof.ratio
    if proof.accepted_in is not None:
        words = f"{'equal, ' if proof.after else ''}accepted with {label_words(proof.accepted_in)}"
    else:
        assert ratio is not None
        if proof.verdict is ProofVerdict.ACCEPTED:
            words = f"equal, {number(ratio.median)}× faster {interval(ratio)}"
        else:
            words = f"equal, {'slower' if proof.slower else 'no faster'} ({ratio_words(ratio)})"
    first, *others = outcome_words(proof) or [""]
    if first:
        words += f"; {first}{f' (and {len(others)} more)' if others else ''}"
    return words


def from_to(before: object, after: object) -> str:
    """``3 → 0``; one number where nothing has changed."""
    return f"{before}" if before == after else f"{before} → {after}"


TITLES = ("change", "breaks", "graphs", "kernels", "memory", "step", "verdict")
_MEMORY = TITLES.index("memory")


def table_rows(verification: Verification) -> list[tuple[str, ...]]:
    """The titles of the columns, and a row for each change. Peak memory is that of a GPU: that of a process is mostly
    torch's own.
    """
    rows = [TITLES, *map(_cells, verification.proofs)]
    if verification.environment["device"] == "cpu":
        return [(*row[:_MEMORY], *row[_MEMORY + 1 :]) for row in rows]
    return rows


def _cells(proof: Proof) -> tuple[str, ...]:
    """What is measured is empty where it was not compiled."""
    before, after = proof.before, proof.after
    if after is None:
        return label_words(proof.label), "", "", "", "", "", verdict_words(proof)
    return (
        label_words(proof.label),
        from_to(before.breaks, after.breaks),
        from_to(before.graphs, after.graphs),
        from_to(before.all_kernels, after.all_kernels),
        pair_of_bytes(before.memory_bytes, after.memory_bytes),
        steps(before.step_seconds, after.step_seconds),
        verdict_words(proof),
    )


def steps(before: float | None, after: float | None) -> str:
    """The times of a step, ``11.8 → 7.9 ms``."""
    if before is None or after is None:
        return ""
    size, unit = next(((size, unit) for size, unit in UNITS if max(before, after) >= size), UNITS[-1])
    return f"{_digits(before / size)} → {_digits(after / size)} {unit}"


def pair_of_bytes(before: int | None, after: int | None) -> str:
    """The same of memory, ``375 → 374 MB``."""
    if before is None or after is None:
        return ""
    return f"{before / 1e6:,.0f} → {megabytes(after)}"


def kernel_words(kernels: Mapping[str, int]) -> str:
    """``12 triton, 3 extern``."""
    return ", ".join(f"{kernels[kind]} {kind}" for kind in KINDS if kernels.get(kind)) or "none"


def facts(proof: Proof) -> list[tuple[str, str]]:
    """What was measured, as names and ``before → after``; of a change that was not compiled, nothing."""
    before, after = proof.before, proof.after
    if after is None:
        return []
    told = [
        ("breaks", from_to(before.breaks, after.breaks)),
        ("recompiles", from_to(before.recompiles, after.recompiles)),
        ("graphs", from_to(before.graphs, after.graphs)),
        ("functions run eager", from_to(before.eager_frames, after.eager_frames)),
        ("kernels", from_to(kernel_words(before.kernels), kernel_words(after.kernels))),
        ("launches a step", from_to(_launches(before), _launches(after))),
        ("step", steps(before.step_seconds, after.step_seconds)),
        ("first call", steps(before.first_call_seconds, after.first_call_seconds)),
        ("compiling", steps(before.compile_seconds, after.compile_seconds)),
        ("most memory", pair_of_bytes(before.memory_bytes, after.memory_bytes)),
    ]
    return [(name, text) for name, text in told if text not in ("", "0")]


def remarks(proof: Proof) -> list[str]:
    """What the reader must know of a change that is not rejected, in sentences."""
    if proof.verdict is ProofVerdict.REJECTED:
        return []
    said = []
    if not proof.breaks_there:
        said.append("No break was recorded there in this run: one before it may hide it, or the compiler takes it.")
    if proof.revealed:
        said.append(f"The compiler gets further with it, and breaks the graph there: {', '.join(proof.revealed)}.")
    # Of several changes together, each has told.
    if proof.unrun and not proof.members:
        rest = f" (and {len(proof.unrun) - 1} more)" if proof.unrun[1:] else ""
        said.append(f"Not proved, as the calls do not run it: {proof.unrun[0]}{rest}")
    if not proof.members:
        said += map(_capitalized, outcome_words(proof)[1:])
    said += [_capitalized(stress_words(*group)) for group in grouped(proof.stress)]
    if proof.difference and not proof.members:
        said.append(sentence(f"Not safe: {proof.difference}"))
    if proof.rests_on and not proof.members:
        said.append(sentence(_capitalized(rests_on_words(proof.rests_on))))
    return said


def headline(verification: Verification) -> str:
    """The first line: how many changes hold."""
    proofs = [proof for proof in verification.proofs if not proof.members] or list(verification.proofs)
    if not proofs:
        return nothing_words(verification)
    kinds = [
        (ProofVerdict.ACCEPTED, "accepted"),
        (ProofVerdict.NO_FASTER, "no faster"),
        (ProofVerdict.REJECTED, "rejected"),
    ]
    counts = [(sum(proof.verdict is kind for proof in proofs), word) for kind, word in kinds]
    shown = ", ".join(f"{count} {word}" for count, word in counts if count)
    stopped = " (interrupted: the rest was not proved)" if verification.interrupted else ""
    return f"{counted(len(proofs), 'change')}: {shown}{stopped}"


def nothing_words(verification: Verification) -> str:
    """Why there is nothing to prove."""
    if verification.interrupted:
        return "Interrupted before anything was proved"
    if not verification.breaks:
        return "Nothing to prove: the captured calls break no graph, and no rewrite is offered for their code"
    return "Nothing to prove: no rewrite is offered for the code that the captured calls run"


def notes(verification: Verification) -> list[str]:
    """What else was observed, in sentences."""
    return [sentence(observation_words(note)) for note in verification.notes]


def unproved(verification: Verification) -> list[tuple[str, list[str]]]:
    """The changes of which nothing is proved alone, below what they have in common."""
    groups = (
        ("Proved together alone, as they need others first", verification.dependent),
        ("Not proved, as the captured calls do not run there", verification.unreached),
    )
    return [(words, list(map(label_words, labels))) for words, labels in groups if labels]


_STEPS = {
    MeasuringStep.RUN: "running the program",
    MeasuringStep.COMPILE: "compiling",
    MeasuringStep.TIME: "timing",
    MeasuringStep.REPEAT: "timing it in further processes",
    MeasuringStep.RECORD_TESTS: "recording the outcomes of tests",
}


def progress_words(step: MeasuringStep, label: Label | None) -> str:
    """``net.py:12 where: compiling``."""
    if label is None:
        return "compiling the program as it is" if step is MeasuringStep.COMPILE else _STEPS[step]
    return f"{label_words(label)}: {_STEPS[step]}"


def label_words(label: Label) -> str:
    """``net.py:12+20 where``; ``net.py:12 where to net.py:40 cond``; ``without what is slower``."""
    match label:
        case RewriteLabel(file, lines, rewrite):
            return f"{file}:{'+'.join(map(str, lines))} {rewrite}"
        case SetLabel():
            kinds = [
                word
                for word, is_left_out in (
                    ("slower", label.without_slower),
                    ("held back", label.without_held_back),
                )
                if is_left_out
            ]
            if kinds:
                return f"without what is {' or '.join(kinds)}"
            if label.part is not None:
                return " to ".join(map(label_words, label.part))
            return "all" if label.most is None else f"the {label.most} that gain most"
        case _:
            return label


def declined_words(declined: DeclinedFinding) -> str:
    """``net.py:30 BRK201: keep-tensor: it is printed``."""
    return f"{declined.site.path}:{declined.site.line} {declined.rule}: {grouped_reasons(declined.reasons)}"


_NOT_APPLIED = {
    NotApplied.INTERRUPTED: "it was interrupted before all was proved",
    NotApplied.NONE_ACCEPTED: "no change was accepted",
}


def not_applied_words(reason: NotApplied | tuple[str, ...] | None) -> str | None:
    """Why files were not written; None where all were."""
    return _NOT_APPLIED[reason] if isinstance(reason, NotApplied) else "; ".join(reason or ()) or None


def basis_words(verification: Verification) -> list[str]:
    """On what the verdicts rest."""
    if not verification.proofs:
        return []
    calls = captured_words(verification.callables, verification.backward)
    said = [f"Compared: {calls}; every run has the same weights, inputs and random numbers."]
    if verification.same is not None:
        same = verification.same
        said.append(
            f"Two processes of the program as it is differ by {ratio_words(same)}: what lies within "
            "that, or below 1.02, counts as no faster."
        )
        if max(same.high, 1 / same.low) > NOISY:
            said.append("The machine was busy: on a quieter one, smaller gains can be measured.")
    if len(verification.devices) > 1:
        said.append(
            f"Changes were proved on {' and '.join(verification.devices)} at the same time, each compared with two "
            "processes on its own device."
        )
    if verification.eager_memory_bytes is not None:
        said.append(f"Run eager, a step takes {megabytes(verification.eager_memory_bytes)} at most.")
    if any(proof.accepted_in is not None for proof in verification.proofs):
        said.append("What is accepted with others was not timed by itself: --each does that.")
    return said


def ending_words(verification: Verification) -> str:
    """What became of the files."""
    said = []
    not_applied = not_applied_words(verification.not_applied)
    if verification.applied:
        said.append(f"Written: {', '.join(verification.applied)}.")
        if not_applied:
            said.append(f"Not written: {not_applied}.")
    elif not_applied:
        said.append(f"Your files are unchanged: {not_applied}.")
    else:
        said.append("Your files are unchanged.")
    if verification.held_back:
        labels = ", ".join(map(label_words, verification.held_back))
        said.append(f"Held back: {labels}. --apply-unseen writes what is held back, too.")
    elif not (verification.applied or not_applied):
        said += _options(verification)
    return " ".join(said)


def _options(verification: Verification) -> list[str]:
    """The options that would write the accepted changes."""
    accepted = [one for one in verification.proofs if one.verdict is ProofVerdict.ACCEPTED and one.diff]
    if not accepted:
        return []
    what = "the accepted change" if len(accepted) == 1 else "what is accepted"
    if all(one.is_held_back for one in accepted):
        return [f"{what[:1].upper()}{what[1:]} is held back: --apply-unseen writes it."]
    return [f"--apply writes {what}."]


def _capitalized(text: str) -> str:
    return sentence(text[:1].upper() + text[1:])


def _launches(metrics: Metrics) -> str:
    if metrics.launches is None:
        return ""
    words = [f"{metrics.launches.get('kernels', 0)} kernels"]
    if metrics.launches.get("cuda_graphs"):
        words.append(counted(metrics.launches["cuda_graphs"], "CUDA graph"))
    return ", ".join(words)


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
