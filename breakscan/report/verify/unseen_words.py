"""Words for what the captured calls do not show of a change: outcomes of tests, and results with other inputs."""

from __future__ import annotations

from collections.abc import Sequence

from breakscan.model.words import listed
from breakscan.prove.verify.proof import Proof, StressDifference, StressedOutcome, UnseenOutcome
from breakscan.prove.worker.protocol import Stress
from breakscan.report.shared.difference_words import difference_words

_LONGEST_TEST = 60
_INPUTS = {
    Stress.NEGATED: "negated",
    Stress.ZERO: "zero",
    Stress.NAN: "NaN",
    Stress.INFINITE: "infinite",
    Stress.EXTREME: "extreme",
    Stress.PERMUTED: "permuted",
    Stress.BELOW: "low integer",
    Stress.ABOVE: "high integer",
}


def outcome_words(proof: Proof) -> list[str]:
    """What the captured calls do not show of the tests that the change replaces; the gravest first."""
    return [
        *(unseen_words(unseen, proof) for unseen in proof.unseen),
        *(stressed_outcome_words(found, proof) for found in proof.stressed_outcomes),
    ]


def unseen_words(unseen: UnseenOutcome, proof: Proof) -> str:
    """``no captured call took the `False` side of `x.sum() > 0`, line 12``. The file is named unless it is that of
    the proof.
    """
    place = _place(unseen.test, unseen.path, unseen.line, proof)
    if unseen.outcomes[1:]:
        return f"no captured call evaluated {place}"
    return f"no captured call took the `{unseen.outcomes[0]}` side of {place}"


def stressed_outcome_words(found: StressedOutcome, proof: Proof) -> str:
    """``only NaN inputs took the `True` side of `x.isnan().any()`, line 12``."""
    place = _place(found.test, found.path, found.line, proof)
    return f"only {_INPUTS[found.stress]} inputs took the `{found.outcome}` side of {place}"


def stress_words(*found: StressDifference) -> str:
    """``with infinite and NaN inputs of f, output 0 differs by …``. The difference of the first is told."""
    first = found[0]
    how = difference_words(first.difference) if first.difference else f"the process fails: {first.error}"
    kinds = listed([_INPUTS[one.stress] for one in found], "kind", len(_INPUTS))
    return f"with {kinds} inputs of {first.callable}, {how}"


def grouped(stress: Sequence[StressDifference]) -> list[list[StressDifference]]:
    """The differences with other inputs, with those of the same value and the same kind together."""
    groups: dict[object, list[StressDifference]] = {}
    for found in stress:
        how = found.difference
        kind = (how.part, how.change, how.path) if how else found.error
        groups.setdefault((found.callable, kind), []).append(found)
    return list(groups.values())


def _place(test: str, path: str, line: int, proof: Proof) -> str:
    is_here = proof.site is not None and proof.site.path == path
    shown = test if len(test) <= _LONGEST_TEST else test[: _LONGEST_TEST - 1] + "…"
    return f"`{shown}`, {f'line {line}' if is_here else f'{path}:{line}'}"
