"""Which rewrites are proved in processes of their own, and which with the set that has them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from breakscan.prove.changed_code import UnseenCode, UnseenKind
from breakscan.prove.proof import Metrics, Proof, ProofVerdict, VariedDifference
from breakscan.prove.protocol import Variation, VariedCall
from breakscan.prove.rewrites import Planned
from breakscan.prove.verify import prove_together
from breakscan.prove.worker import ALL, Candidate

METRICS = Metrics(1, 0, 2, 0, {}, 5.0, 6.0)
ACCEPTED, NO_FASTER, REJECTED = ProofVerdict.ACCEPTED, ProofVerdict.NO_FASTER, ProofVerdict.REJECTED


class Rewrites:
    def together(self, members: Sequence[Candidate], label: str) -> Candidate | None:
        return Candidate(label, members=tuple(one.label for one in members)) if members else None


class Verifier:
    """``judge`` says what a process shows of the rewrites with these lines. ``asked`` are the processes: their lines,
    and whether they were timed.
    """

    def __init__(self, judge: Callable[[frozenset[int]], Proof]) -> None:
        self.judge = judge
        self.proofs: list[Proof] = []
        self.candidates: dict[str, Candidate] = {}
        self.asked: list[tuple[tuple[int, ...], bool]] = []

    def prove(self, candidate: Candidate, accepted_in: str | None = None) -> Proof:
        lines = [int(label[7:-6]) for label in candidate.members or (candidate.label,)]
        self.asked.append((tuple(lines), accepted_in is None))
        judged = self.judge(frozenset(lines))
        self.proofs.append(replace(judged, label=candidate.label, members=candidate.members, accepted_in=accepted_in))
        return self.proofs[-1]

    def member_of(self, accepted: Proof, candidate: Candidate) -> Proof:
        return proof(ACCEPTED, label=candidate.label, accepted_in=accepted.label)


def proof(verdict: ProofVerdict, **more: Any) -> Proof:
    return replace(Proof("", verdict, (), True, METRICS), **more)


def proved(
    judge: Callable[[frozenset[int]], Proof], count: int, each: bool = False
) -> tuple[Verifier, dict[str, Proof]]:
    alone = tuple(Candidate(f"net.py:{line} where") for line in range(count))
    verifier = Verifier(judge)
    prove_together(verifier, Rewrites(), Planned(alone, (), (), ()), each)  # type: ignore[arg-type]
    assert {one.label for one in alone} <= verifier.candidates.keys()
    return verifier, {one.label: one for one in verifier.proofs}


def singles(found: dict[str, Proof]) -> list[Proof]:
    return [one for one in found.values() if not one.members]


def test_what_is_accepted_together_takes_one_process() -> None:
    verifier, found = proved(lambda _: proof(ACCEPTED), 5)
    assert verifier.asked == [((0, 1, 2, 3, 4), True)]
    assert [(one.verdict, one.accepted_in) for one in singles(found)] == [(ACCEPTED, ALL)] * 5
    verifier, found = proved(lambda _: proof(ACCEPTED), 2, each=True)
    assert verifier.asked == [((0, 1), True), ((0,), True), ((1,), True)]
    verifier, found = proved(lambda _: proof(ACCEPTED), 1)
    assert (verifier.asked, list(found)) == ([((0,), True)], ["net.py:0 where"]), "one rewrite is no set"


@pytest.mark.parametrize(
    "what",
    [
        {"unseen": (UnseenCode(UnseenKind.NEW, "net.py", 1, "y = 1"),)},
        {"varied": (VariedDifference(VariedCall(0, Variation.NAN), "Net", is_stated=True),)},
    ],
)
def test_what_differs_in_varied_calls_or_does_not_run_is_proved_apart_without_timing(what: dict[str, Any]) -> None:
    verifier, found = proved(lambda lines: proof(ACCEPTED, **(what if lines > {0} else {})), 2)
    assert verifier.asked == [((0, 1), True), ((0,), False), ((1,), False)]
    assert {one.accepted_in for one in singles(found)} == {ALL}


def test_what_is_rejected_or_no_faster_is_timed_one_by_one() -> None:
    for verdict in (REJECTED, NO_FASTER):
        verifier, _ = proved(lambda _, verdict=verdict: proof(verdict), 5)  # type: ignore[misc]
        assert [lines for lines, _ in verifier.asked] == [tuple(range(5)), *((one,) for one in range(5))]
        assert all(timed for _, timed in verifier.asked)
