"""Reports of ``verify``: for terminals, JSON and Markdown.  ``schemas/verify.schema.json`` describes the JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from breakscan.fix.result import Refused
from breakscan.model.findings import Site
from breakscan.model.words import capitalized, clipped, counted, first_few, grouped, listed, megabytes, sentence
from breakscan.prove.changed_code import UnseenCode, UnseenKind
from breakscan.prove.equal import Change
from breakscan.prove.proof import Divergence, Proof, ProofVerdict, VariedDifference, Verification
from breakscan.prove.protocol import GraphOperation, Stage, Variation, VariedCall
from breakscan.report import measurements as measured
from breakscan.report.measured_page import MeasuredPage, PageDetail, PageRow
from breakscan.report.printable import picked, printable, write_json_report

_LONGEST_CODE = 60
_VALUES = {
    Variation.NAN: "NaN inputs",
    Variation.BELOW: "lower integers",
    Variation.ABOVE: "higher integers",
    Variation.MODE: "train() and eval() exchanged",
    Variation.LATER: "what a later call has",
}
_SIZES = {Variation.MORE: "one more", Variation.LESS: "one less", Variation.ONE: "one", Variation.EMPTY: "none"}


def unseen_words(unseen: UnseenCode, site: Site | None = None) -> str:
    """``no call took the `False` side of `x.sum() > 0`, line 12``. The file is named unless it is that of the site."""
    if unseen.kind is UnseenKind.OUTSIDE:
        return unseen.code
    is_here = site is not None and site.path == unseen.path
    where = f"line {unseen.line}" if is_here else f"{unseen.path}:{unseen.line}"
    place = f"`{clipped(unseen.code, _LONGEST_CODE)}`, {where}"
    if unseen.kind is UnseenKind.DEFAULT:
        return f"no call uses the default {place}"
    if unseen.kind is UnseenKind.OUTCOME and not unseen.outcomes[1:]:
        return f"no call took the `{unseen.outcomes[0]}` side of {place}"
    new = {UnseenKind.NEW: " of the new text", UnseenKind.REPLACED: ", which it replaces"}.get(unseen.kind, "")
    return f"no call ran {place}{new}"


def variation_words(call: VariedCall) -> str:
    """``NaN inputs``, ``one more along dimension 0``, ``args[1] = 3``."""
    if call.kind in _SIZES:
        dim, _, kept = call.at.partition(" ")
        return f"{_SIZES[call.kind]} along dimension {dim}{f', except of {kept}' if kept else ''}"
    if call.kind in (Variation.DEFAULT, Variation.HOOK):
        return f"{call.at} left out" if call.kind is Variation.DEFAULT else f"another {call.at}, as a later call has"
    return f"{call.at} = {call.value}" if call.value else _VALUES.get(call.kind, f"{call.kind.value} inputs")


def varied_words(*found: VariedDifference) -> str:
    """``with infinite inputs and NaN inputs of f, output 0 differs by …``. The difference of the first is described."""
    first = found[0]
    how = measured.difference_words(first.difference) if first.difference else f"the process fails: {first.error}"
    kinds = listed(list(dict.fromkeys(variation_words(one.call) for one in found)), "kind", 3)
    return f"with {kinds} of {first.callable}, {how}"


def alike(varied: Sequence[VariedDifference]) -> list[list[VariedDifference]]:
    """The differences in varied calls, with those of the same value and the same kind together."""
    values = ((how.part, how.change, how.path) if (how := one.difference) else one.error for one in varied)
    return [*grouped(((one.callable, value), one) for one, value in zip(varied, values, strict=True)).values()]


def printed_words(printed: tuple[str, str]) -> str:
    """``a call prints 'y 0.5', not 'y 0.7'``."""
    before, after = (text.strip()[:_LONGEST_CODE] for text in printed)
    return f"a call prints {after!r}, not {before!r}" if after else f"a call no longer prints {before!r}"


REFUSED = {ProofVerdict.REJECTED: "rejected", ProofVerdict.NOT_TRIED: "not tried"}
NOISY = 1.1  # the ratio of two equal processes above which the report calls the machine busy
KINDS = ("triton", "cpp", "extern", "fallback", "other")


def verdict_words(proof: Proof) -> str:
    """``equal, 4.9× faster [4.7, 5.1]``, ``equal, no faster (1.00 [0.99, 1.02])``, ``accepted with all``, ``rejected:
    …``, ``not tried: …``.  The first code that no call ran follows."""
    if proof.verdict in REFUSED:
        word = REFUSED[proof.verdict]
        return f"{word}: {measured.observation_words(proof.reasons[0])}" if proof.reasons else word
    ratio = proof.ratio
    kinds = dict.fromkeys("near ties" if one.change is Change.TIE else "types" for one in proof.noted)
    equal = f"equal but for {' and '.join(kinds)}" if kinds else "equal"
    if proof.accepted_in is not None:
        words = f"{f'{equal}, ' if proof.after else ''}accepted with {proof.accepted_in}"
    else:
        assert ratio is not None
        if proof.verdict is ProofVerdict.ACCEPTED:
            words = f"{equal}, {measured.times_words(ratio)} faster {measured.interval(ratio)}"
        elif proof.verdict is ProofVerdict.TOO_NOISY:
            words = f"{equal}, too noisy to say if faster{'' if ratio.disturbed else f' {measured.interval(ratio)}'}"
        else:
            words = f"{equal}, {'slower' if proof.slower else 'no faster'} ({measured.ratio_words(ratio)})"
    first, *others = [unseen_words(unseen, proof.site) for unseen in proof.unseen] or [""]
    if first:
        words += f"; {first}{f' (and {len(others)} more)' if others else ''}"
    return words


def from_to(before: object, after: object) -> str:
    """``3 → 0``; one number where nothing has changed."""
    return f"{before}" if before == after else f"{before} → {after}"


TITLES = ("change", "breaks", "graphs", "kernels", "memory", "step", "verdict")


def table_cells(proof: Proof, on_gpu: bool) -> tuple[str, ...]:
    """The figures of a change that was compiled.  Memory is that of a GPU: that of a process is mostly torch's."""
    before, after = proof.before, proof.after
    if after is None:
        return ("",) * 5
    return (
        from_to(before.breaks, after.breaks),
        from_to(before.graphs, after.graphs),
        from_to(*(sum(one.kernels.values()) for one in (before, after))),
        pair_of_bytes(before.memory_bytes, after.memory_bytes) if on_gpu else "",
        measured.steps(before.step_seconds, after.step_seconds),
    )


def pair_of_bytes(before: int | None, after: int | None) -> str:
    """The same of memory, ``375 → 374 MB``."""
    if before is None or after is None:
        return ""
    return f"{before / 1e6:,.0f} → {megabytes(after)}"


def kernel_words(kernels: Mapping[str, int]) -> str:
    """``12 triton, 3 extern``."""
    return ", ".join(f"{kernels[kind]} {kind}" for kind in KINDS if kernels.get(kind)) or "none"


def facts(proof: Proof) -> list[tuple[str, str]]:
    """Measurements, as names and ``before → after``; none of a change that was not compiled."""
    before, after = proof.before, proof.after
    if after is None:
        return []
    fields = [
        ("breaks", from_to(before.breaks, after.breaks)),
        ("recompiles", from_to(before.recompiles, after.recompiles)),
        ("graphs", from_to(before.graphs, after.graphs)),
        ("functions run eager", from_to(before.eager_frames, after.eager_frames)),
        ("kernels", from_to(kernel_words(before.kernels), kernel_words(after.kernels))),
        ("step", measured.steps(before.step_seconds, after.step_seconds)),
        ("first call", measured.steps(before.first_call_seconds, after.first_call_seconds)),
        ("compiling", measured.steps(before.compile_seconds, after.compile_seconds)),
        ("most memory", pair_of_bytes(before.memory_bytes, after.memory_bytes)),
    ]
    return [(name, text) for name, text in fields if text not in ("", "0")]


def remarks(proof: Proof) -> list[str]:
    """Restrictions of a change that is not rejected, in sentences."""
    if proof.verdict in REFUSED:
        return []
    said = []
    if not proof.breaks_there:
        said.append("No break was recorded there in this run: one before it may hide it, or the compiler takes it.")
    if proof.revealed:
        said.append(f"The compiler gets further with it, and breaks the graph there: {', '.join(proof.revealed)}.")
    said += [measured.difference_words(one) for one in proof.noted]
    # Of several changes together, each has its own.
    if not proof.members:
        said += [unseen_words(unseen, proof.site) for unseen in proof.unseen[1:]]
    said += [varied_words(*group) for group in alike(proof.varied)]
    if proof.printed:
        said.append(printed_words(proof.printed))
    if proof.difference and not proof.members:
        said.append(f"Not safe: {proof.difference}")
    return [sentence(capitalized(one)) for one in said]


def headline(verification: Verification) -> str:
    """The first line: how many changes hold."""
    proofs = [proof for proof in verification.proofs if not proof.members] or list(verification.proofs)
    if not proofs:
        if verification.interrupted:
            return "Interrupted before anything was proved"
        none = "no rewrite is offered for the code that the captured calls run"
        if not verification.breaks:
            none = "the captured calls break no graph, and no rewrite is offered for their code"
        return f"Nothing to prove: {none}"
    kinds = [
        (ProofVerdict.ACCEPTED, "accepted"),
        (ProofVerdict.NO_FASTER, "no faster"),
        (ProofVerdict.TOO_NOISY, "too noisy to say"),
        *REFUSED.items(),
    ]
    counts = [(sum(proof.verdict is kind for proof in proofs), word) for kind, word in kinds]
    shown = ", ".join(f"{count} {word}" for count, word in counts if count)
    stopped = " (interrupted: the rest was not proved)" if verification.interrupted else ""
    return f"{counted(len(proofs), 'change')}: {shown}{stopped}"


_BEFORE = {Stage.AOT_AUTOGRAD: "eager", Stage.DECOMPOSITIONS: "aot_eager", Stage.INDUCTOR: "aot_eager_decomp_partition"}
"""The backend that ends before each stage."""


def compiled_words(verification: Verification) -> list[str]:
    """The result of comparing the unchanged program, compiled, with eager, in sentences."""
    divergence = verification.divergence
    if divergence is None:
        if not verification.compared:
            return []
        # Where changes were proved, the calls are named with them.
        calls = "" if verification.proofs else f": {measured.captured_words(verification)}"
        return [f"Compiled agrees with eager{calls}."]
    first, *others = map(measured.difference_words, divergence.differences)
    rest = f" (and {len(others)} more)" if others else ""
    said = [sentence(f"Compiled differs from eager: {first}{rest}")]
    operation, stage = divergence.operation, divergence.stage
    if stage is not None:
        place = f"first at {_named(operation)}, " if operation is not None else "first "
        if operation is not None and divergence.since is not None:
            place = f"where {_named(divergence.since)}, to {_named(operation)}, are compiled together, "
        agrees = f": backend={_BEFORE[stage]!r} agrees" if stage in _BEFORE else ""
        said.append(f"It differs {place}in {stage.value}{agrees}.")
    if divergence.setting is not None:
        name, value = divergence.setting
        said.append(f"With torch._inductor.config.{name} = {value!r} it agrees.")
    if divergence.program is not None:
        said.append(f"{divergence.program} shows it by itself.")
    return said


def _named(operation: GraphOperation) -> str:
    return f"{operation.name}, {operation.path}:{operation.line}" if operation.path else operation.name


def declined_words(declined: Refused) -> str:
    """``net.py:30 BRK201: the number is printed``."""
    finding = declined.finding
    return f"{finding.site.path}:{finding.site.line} {finding.rule}: {declined.main.text}"


def basis_words(verification: Verification) -> list[str]:
    """On what the verdicts rest."""
    if not verification.proofs:
        return []
    calls = measured.captured_words(verification)
    said = [f"Compared: {calls}; every run has the same weights, inputs and random numbers."]
    said += measured.step_words(verification.step)
    if verification.same is not None:
        same = verification.same
        if not same.disturbed:
            apart = f"Two processes of the program as it is differ by {measured.ratio_words(same)}"
            said.append(f"{apart}: what lies within that, or below 1.02, counts as no faster.")
        noisy = any(proof.verdict is ProofVerdict.TOO_NOISY for proof in verification.proofs)
        if noisy or max(same.high, 1 / same.low) > NOISY:
            said.append("The machine was busy: on a quieter one, smaller gains can be measured.")
    if any(proof.accepted_in is not None for proof in verification.proofs):
        said.append("What is accepted with others was not timed by itself: --each does that.")
    return said


def ending_words(verification: Verification) -> str:
    """The files that were written or not, and the options that write them."""
    said = [measured.written_words(verification)]
    if verification.held_back:
        labels = ", ".join(map(str, verification.held_back))
        said.append(f"Held back: {labels}. --apply-unseen writes what is held back, too.")
    elif not (verification.applied or verification.not_applied):
        said += _options(verification)
    return " ".join(said)


def _options(verification: Verification) -> list[str]:
    """The options that would write the accepted changes."""
    accepted = [one for one in verification.proofs if one.verdict is ProofVerdict.ACCEPTED and one.diff]
    if not accepted:
        return []
    what = "the accepted change" if len(accepted) == 1 else "what is accepted"
    if all(one.is_held_back for one in accepted):
        return [f"{capitalized(what)} is held back: --apply-unseen writes it."]
    return [f"--apply writes {what}."]


STYLES = {ProofVerdict.ACCEPTED: "bold green", **dict.fromkeys(REFUSED, "bold red")}
MOST_REASONS = 4
MOST_NAMED = 5


def verify_page(verification: Verification) -> MeasuredPage:
    printed = printable(verification)
    on_gpu = printed.environment["device"] != "cpu"
    compiled = " ".join(compiled_words(printed))
    differs = printed.divergence is not None
    rows = [
        PageRow(
            one.label,
            table_cells(one, on_gpu),
            verdict_words(one),
            STYLES.get(one.verdict, "yellow"),
            one.verdict is ProofVerdict.ACCEPTED,
        )
        for one in printed.proofs
    ]
    details = [
        PageDetail(one.label, _more(one), facts(one), original.diff)
        for one, original in zip(printed.proofs, verification.proofs, strict=True)
    ]
    said = [*_unproved(printed), *([compiled] if compiled and not differs else []), *basis_words(printed)]
    return MeasuredPage(
        "verify",
        headline(printed),
        TITLES,
        rows,
        details=details,
        basis=[
            *(("Note: ", sentence(measured.observation_words(note))) for note in printed.notes),
            *(("", words) for words in said),
        ],
        ending=ending_words(printed),
        alarm=compiled if differs else "",
    )


def _more(proof: Proof) -> list[str]:
    """Sentences that the table has no room for."""
    said = [sentence(f"Also {measured.observation_words(reason)}") for reason in proof.reasons[1:MOST_REASONS]]
    if len(proof.reasons) > MOST_REASONS:
        said.append(f"{len(proof.reasons) - MOST_REASONS} more reasons are in --format json.")
    return [*said, *remarks(proof)]


def _unproved(verification: Verification) -> Iterator[str]:
    """The changes of which nothing is proved alone, below what they have in common."""
    for words, labels in (
        ("Proved together alone, as they need others first", verification.dependent),
        ("Not proved, as the captured calls do not run there", verification.unreached),
    ):
        if labels:
            yield f"{words}: {first_few([*map(str, labels)], MOST_NAMED)}."
    yield from (f"No rewrite for {sentence(declined_words(one))}" for one in verification.declined[:MOST_NAMED])
    if (rest := len(verification.declined) - MOST_NAMED) > 0:
        yield f"Nor for {counted(rest, 'finding')} more: breakscan fix names them."


SCHEMA = 1


def write_verify_json(verification: Verification, stream: TextIO) -> None:
    fields = {
        **measured.run_fields(verification),
        "tolerances": verification.tolerances,
        "applied": verification.applied,
        "compiled": _compiled(verification),
        "proofs": list(map(_proof, verification.proofs)),
        **{name: list(map(str, getattr(verification, name))) for name in ("dependent", "unreached", "held_back")},
        "declined": list(map(declined_words, verification.declined)),
        "not_applied": measured.not_applied_words(verification.not_applied),
    }
    write_json_report(SCHEMA, fields, stream)


def _compiled(verification: Verification) -> dict[str, Any] | None:
    divergence = verification.divergence
    if divergence is None and not verification.compared:
        return None
    found = divergence or Divergence(())
    return {
        "agrees": divergence is None,
        "differences": list(map(measured.difference_words, found.differences)),
        **picked(found, "stage program"),
        "operation": found.operation and picked(found.operation, "name path line"),
        "since": found.since and picked(found.since, "name path line"),
        "setting": found.setting and {"name": f"torch._inductor.config.{found.setting[0]}", "value": found.setting[1]},
        "says": " ".join(compiled_words(printable(verification))),
    }


def _proof(proof: Proof) -> dict[str, Any]:
    reasons = list(map(measured.observation_words, proof.reasons))
    after = asdict(proof.after) if proof.after is not None else {}
    return {
        **picked(proof, "label rewrite rule site verdict accepted_in difference breaks_there revealed printed"),
        **picked(proof, "outputs_equal ratio diff"),
        "members": list(map(str, proof.members)),
        "says": verdict_words(printable(proof)),
        "reason": next(iter(reasons), None),
        "reasons": reasons,
        "noted": list(map(measured.difference_words, proof.noted)),
        "unseen": [{**asdict(one), "says": unseen_words(one, proof.site)} for one in proof.unseen],
        "varied": [
            {
                "kind": one.call.kind,
                "callable": one.callable,
                "part": one.difference and one.difference.part,
                "stated": one.is_stated,
                "says": varied_words(one),
            }
            for one in proof.varied
        ],
        "held_back": proof.is_held_back,
        **{name: {"before": value, "after": after.get(name)} for name, value in asdict(proof.before).items()},
    }
