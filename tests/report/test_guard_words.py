"""What guards demand, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from explain_results import RECOMPILE, holds

from breakscan.explanation.guards import demand_words
from breakscan.explanation.recompiles import recompile_sentence
from breakscan.recording.parsers.guards import Demand, DemandKind, TensorDemand, Within

WORDS = {
    holds("x.shape[0] == 4"): "x.shape[0] == 4",
    Demand(DemandKind.TENSOR, "n"): "n is a tensor",
    Demand(DemandKind.CLASS, "x", "OrderedDict"): "x is an OrderedDict",
    Demand(DemandKind.CLASS, "x"): "x is of the same type",
    Demand(DemandKind.SAME_OBJECT, "f"): "f is the same object",
    Demand(DemandKind.FALSE, "args"): "args is empty or false",
    Demand(DemandKind.IN_MEMORY, "f"): "f is still in memory",
    Demand(DemandKind.UNCHANGED, "grad_mode"): "grad_mode is unchanged",
    TensorDemand("self.w", "Parameter", "bfloat16", "cuda:0", "[None, 4]", "[4, 1]", "True"): (
        "self.w is a bfloat16 Parameter on cuda:0 of size [any, 4] and stride [4, 1], with requires_grad=True"
    ),
}


@pytest.mark.parametrize(("demand", "words"), WORDS.items(), ids=WORDS.values())
def test_a_demand(demand: Demand | TensorDemand, words: str) -> None:
    assert demand_words(demand) == words


def test_each_kind_of_demand_has_words() -> None:
    assert all(demand_words(Demand(kind, "x", "y")) for kind in DemandKind)


@pytest.mark.parametrize(
    ("guard", "subject", "old", "new", "sentence"),
    [
        (holds("n == 2"), "n", "2", "3", "n was 2, then 3"),
        (Demand(DemandKind.UNCHANGED, "grad_mode"), "grad_mode", None, None, "grad_mode changed"),
        (
            Demand(DemandKind.IN_MEMORY, "f"), "f", None, None,
            "f was freed, and with it the version that was compiled for it",
        ),
        (
            Demand(DemandKind.SAME_OBJECT, "f"), "f", "another object", "the function g",
            "f is another object than before (the function g)",
        ),
        (holds("2 <= n"), "n", Within("2 <= n"), "1", "2 <= n held, then n was 1"),
        (holds("2 <= n"), "n", Within("2 <= n"), None, "a compiled version asks that 2 <= n"),
        (holds("f(n)"), "n", None, "3", "a compiled version asks that f(n), and is 3 now"),
        (
            Demand(DemandKind.NOTHING), "", None, None,
            "no guard fails when asked again: two threads may have compiled it at once",
        ),
    ],
)  # fmt: skip
def test_what_changed(guard: Demand, subject: str, old: str | Within | None, new: str | None, sentence: str) -> None:
    assert recompile_sentence([replace(RECOMPILE, guard=guard, subject=subject, old=old, new=new)]) == sentence
