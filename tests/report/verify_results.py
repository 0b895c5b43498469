"""A verification with a proof of every kind, for the tests of its reports."""

from __future__ import annotations

from dataclasses import replace

from breakscan.model.findings import Site
from breakscan.prove.candidate import RewriteLabel, SetLabel
from breakscan.prove.equal import Change, Part, ResultDifference
from breakscan.prove.faster import Ratio
from breakscan.prove.observation import Observation, ObservationKind
from breakscan.prove.proof import (
    DeclinedFinding,
    KernelCode,
    Metrics,
    Proof,
    ProofVerdict,
    StressDifference,
    StressedOutcome,
    UnseenOutcome,
    Verification,
)
from breakscan.prove.protocol import Stress

HOSTILE = "\x1b[31m<script>alert(1)</script>\u202e::error::"
SITE = Site("net.py", 12, 12, 12, 23)


def metrics(breaks: int, step: float | None, code: str) -> Metrics:
    made = (KernelCode("Net.forward", "inference", code),)
    kernels = {"triton": 3 if breaks else 2, "extern": 1}
    return Metrics(breaks, 0, 1 + breaks, 0, kernels, 5.0, 6.0, 400_000_000, {"kernels": 4}, step, made)


BEFORE = metrics(1, 11.8e-3, f"a = 1\nb = '{HOSTILE}'\n")
AFTER = metrics(0, 7.9e-3, "a = 2\n")
ACCEPTED = Proof(
    RewriteLabel("net.py", (12,), "where"),
    ProofVerdict.ACCEPTED,
    (),
    True,
    BEFORE,
    AFTER,
    Ratio(1.49, 1.46, 1.52),
    "BRK101",
    "where",
    SITE,
    "both sides are computed",
    "--- a/net.py\n+++ b/net.py\n@@ -1 +1 @@\n-if x:\n+y = where(x)\n",
)
NO_FASTER = Proof(
    RewriteLabel("net.py", (20,), "cond"),
    ProofVerdict.NO_FASTER,
    (),
    True,
    BEFORE,
    AFTER,
    Ratio(1.0, 0.99, 1.02),
    "BRK101",
    "cond",
    SITE,
)
REJECTED = Proof(
    HOSTILE,
    ProofVerdict.REJECTED,
    (
        Observation(
            ObservationKind.EAGER_DIFFERS,
            details=(ResultDifference(Part.OUTPUT, Change.ERROR, "output 0", "0", "0.03", (2, 5), 0.03, 1e-4),),
        ),
        Observation(ObservationKind.BREAK_STAYS, "net.py:12"),
    ),
    False,
    BEFORE,
)
ALL = Proof(
    SetLabel(),
    ProofVerdict.REJECTED,
    (Observation(ObservationKind.ERROR, HOSTILE),),
    None,
    BEFORE,
    members=(RewriteLabel("net.py", (12,), "where"), RewriteLabel("net.py", (20,), "cond")),
)
DTYPE = ResultDifference(Part.OUTPUT, Change.DTYPE, "output 0", "int64", "int32")
UNSEEN = replace(
    NO_FASTER,
    unseen=(UnseenOutcome("net.py", 20, HOSTILE, (False,)), UnseenOutcome("other.py", 3, "x or y", (True, False))),
    stressed_outcomes=(StressedOutcome("net.py", 22, "x.isnan()", True, Stress.NAN),),
    stress=(
        StressDifference(Stress.INFINITE, "Net", DTYPE),
        StressDifference(Stress.ZERO, HOSTILE, error=HOSTILE),
        StressDifference(Stress.NAN, "Net", DTYPE),
    ),
)


def verification(*proofs: Proof) -> Verification:
    return Verification(
        ("train.py", "--steps", "3"),
        {"torch": "2.13.0", "device": "cpu"},
        {"Net": 3},
        frozenset({"Net"}),
        proofs,
        Ratio(1.0, 0.99, 1.01) if proofs else None,
        {"torch.float32": 1e-4},
        unreached=(RewriteLabel("other.py", (3,), "where"),),
        declined=(DeclinedFinding(Site("net.py", 30, 1, 30, 9), "BRK201", (("keep-tensor", "it is printed"),)),),
        notes=(Observation(ObservationKind.NOT_CALLED, names=("g",)),),
        breaks=1,
    )


WHOLE = verification(ACCEPTED, NO_FASTER, REJECTED, ALL)
