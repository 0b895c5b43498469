"""Words for what the captured calls do not show of a change: outcomes of tests, and results with other inputs."""

from __future__ import annotations

from breakscan.reports.shared.difference_words import difference_words
from breakscan.verify.proof import Proof, StressDifference, UnseenOutcome
from breakscan.worker.protocol import Stress

_LONGEST_TEST = 60
_INPUTS = {
    Stress.NEGATED: "negated inputs",
    Stress.ZERO: "zero in place of the inputs",
    Stress.NAN: "NaN in place of the inputs",
    Stress.INFINITE: "inf in place of the inputs",
    Stress.EXTREME: "the extremes of the dtype in place of the inputs",
    Stress.PERMUTED: "permuted inputs",
}


def unseen_words(unseen: UnseenOutcome, proof: Proof) -> str:
    """``no captured call took the `False` side of `x.sum() > 0`, line 12``; the file is named unless it is that of the
    proof."""
    is_here = proof.site is not None and proof.site.path == unseen.path
    place = f"line {unseen.line}" if is_here else f"{unseen.path}:{unseen.line}"
    test = unseen.test if len(unseen.test) <= _LONGEST_TEST else unseen.test[: _LONGEST_TEST - 1] + "…"
    if unseen.outcomes[1:]:
        return f"no captured call evaluated `{test}`, {place}"
    return f"no captured call took the `{unseen.outcomes[0]}` side of `{test}`, {place}"


def stress_words(found: StressDifference) -> str:
    """``with NaN in place of the inputs of f, output 0 differs by …``."""
    how = difference_words(found.difference) if found.difference else f"the process fails: {found.error}"
    return f"with {_INPUTS[found.stress]} of {found.callable}, {how}"
