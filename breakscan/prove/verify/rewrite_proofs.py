"""Proves rewrites in as few processes as are needed: all together first, then what has to be told apart."""

from __future__ import annotations

from collections.abc import Sequence

from breakscan.prove.verify.candidates import Candidate, Planned, Rewrites
from breakscan.prove.verify.label import Label, SetLabel
from breakscan.prove.verify.proof import Proof, ProofVerdict
from breakscan.prove.verify.verifier import Verifier

FEWEST_HALVED = 4
"""Of fewer rewrites, each is proved by itself if they are rejected together."""


class RewriteProofs:
    """The proofs so far, which an interrupt leaves as they are, and the candidate of each label."""

    def __init__(self, rewrites: Rewrites, verifier: Verifier) -> None:
        self.proofs: list[Proof] = []
        self.candidates: dict[Label, Candidate] = {}
        self._rewrites = rewrites
        self._verifier = verifier

    @property
    def in_order(self) -> list[Proof]:
        """The proofs of single changes, then those of parts of the whole set, of the set, and of what was tried after
        it.
        """
        return sorted(self.proofs, key=_place)

    def prove(self, candidate: Candidate, accepted_in: Label | None = None) -> Proof:
        """Proves a change, without timing if it is a member of an accepted set."""
        proof = self._verifier.prove(candidate, accepted_in)
        self.proofs.append(proof)
        self.candidates[candidate.label] = candidate
        return proof

    def prove_together(self, planned: Planned, each: bool) -> None:
        """Proves all rewrites together, and ``each`` by itself or as few as have to be told apart."""
        rewrites = (*planned.alone, *planned.dependent)
        self.candidates |= {one.label: one for one in rewrites}
        whole = self._prove_set(rewrites, SetLabel()) if len(rewrites) > 1 else None
        if whole is None or each:
            self._prove_each(planned.alone)
        else:
            self._tell_apart(planned.alone, whole)

    def _tell_apart(self, members: Sequence[Candidate], together: Proof) -> None:
        """Proves members of a set that is proved already, as far as its proof leaves open what each of them does."""
        if together.is_clear:
            self.proofs += [self._verifier.member_of(together, one) for one in members]
        elif together.verdict is ProofVerdict.ACCEPTED:
            self._prove_each(members, together.label)
        elif together.verdict is ProofVerdict.REJECTED and len(members) >= FEWEST_HALVED:
            middle = len(members) // 2
            for half in (members[:middle], members[middle:]):
                self._prove_part(half)
        else:
            self._prove_each(members)

    def _prove_part(self, members: Sequence[Candidate]) -> None:
        together = self._prove_set(members, SetLabel(part=(members[0].label, members[-1].label)))
        if together is None:
            self._prove_each(members)
        else:
            self._tell_apart(members, together)

    def _prove_set(self, members: Sequence[Candidate], label: SetLabel) -> Proof | None:
        candidate = self._rewrites.together(members, label)
        return None if candidate is None else self.prove(candidate)

    def _prove_each(self, members: Sequence[Candidate], accepted_in: Label | None = None) -> None:
        found: dict[Label, Proof] = {}

        def done(candidate: Candidate, proof: Proof) -> None:
            found[candidate.label] = proof
            self.candidates[candidate.label] = candidate

        try:
            self._verifier.prove_each(members, accepted_in, done)
        finally:
            # Devices need not finish in this order.
            self.proofs += [found[one.label] for one in members if one.label in found]


def _place(proof: Proof) -> int:
    if not proof.members:
        return 0
    if proof.label == SetLabel():
        return 2
    return 1 if isinstance(proof.label, SetLabel) and proof.label.part is not None else 3
