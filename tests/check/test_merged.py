"""Of several findings at one site the report does not depend on which came first."""

from itertools import permutations

from breakscan.check.pipeline.results import Merged
from breakscan.model.findings import Assumption, Confidence, Finding, Kind, Place, Region, Severity, Site, Verdict

SITE = Site("ops.py", 5, 8, 5, 20)


def finding(confidence: Confidence, severity: Severity, region: Region) -> Finding:
    verdict = Verdict.EAGER if severity is Severity.ERROR else Verdict.SPLITS
    place = Place.LOOP if severity is Severity.ERROR else Place.PLAIN
    return Finding(
        "BRK101", "branch-on-tensor", Kind.GRAPH_BREAK, severity, confidence, "m", SITE, "helper", region, (), "2.13",
        verdict, place,
    )  # fmt: skip


def test_the_surest_and_then_the_worst_stays_with_the_root_that_the_program_compiles() -> None:
    compiled = Region("train.py", 4, "torch.compile(net)", "Net.forward")
    assumed = Region("ops.py", 3, "", "Ops.forward", Assumption.FORWARD)
    seen = [
        finding(Confidence.CERTAIN, Severity.WARNING, assumed),
        finding(Confidence.CERTAIN, Severity.ERROR, assumed),
        finding(Confidence.CONDITIONAL, Severity.ERROR, compiled),
    ]
    for order in permutations(seen):
        merged = Merged()
        for one in order:
            merged.add(one)
        (kept,) = merged.findings()
        assert (kept.confidence, kept.severity, kept.region) == (Confidence.CERTAIN, Severity.ERROR, compiled)
