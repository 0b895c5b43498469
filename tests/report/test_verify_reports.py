"""The reports of ``verify``: verdicts in words, and nothing of the program's that steers what shows them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from report_results import text_of

from breakscan.fix.result import Reason, Refused
from breakscan.model.findings import Confidence, Finding, Kind, Severity, Site
from breakscan.prove.changed_code import UnseenCode, UnseenKind
from breakscan.prove.equal import Change, Part, ResultDifference
from breakscan.prove.faster import Ratio
from breakscan.prove.observation import Observation, ObservationKind
from breakscan.prove.proof import Divergence, Metrics, NotApplied, Proof, ProofVerdict, VariedDifference, Verification
from breakscan.prove.protocol import GraphOperation, Stage, Variation, VariedCall
from breakscan.report.formats import VERIFY
from breakscan.report.measurements import not_applied_words, steps
from breakscan.report.verify import ending_words, headline, verdict_words

HOSTILE = "\x1b[31m<script>alert(1)</script>\u202e::error::"
SITE = Site("net.py", 12, 12, 12, 23)


def metrics(breaks: int, step: float | None) -> Metrics:
    kernels = {"triton": 3 if breaks else 2, "extern": 1}
    return Metrics(breaks, 0, 1 + breaks, 0, kernels, 5.0, 6.0, 400_000_000, step)


KINDS = Kind.GRAPH_BREAK, Severity.WARNING, Confidence.CERTAIN
STAYS = Finding("BRK201", "tensor-to-number", *KINDS, "it", Site("net.py", 30, 1, 30, 9), "f", None, (), "2.13")
BEFORE = metrics(1, 11.8e-3)
AFTER = metrics(0, 7.9e-3)
ACCEPTED = Proof(
    "net.py:12 where",
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
    "net.py:20 cond",
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
    "all",
    ProofVerdict.REJECTED,
    (Observation(ObservationKind.ERROR, HOSTILE),),
    None,
    BEFORE,
    members=("net.py:12 where", "net.py:20 cond"),
)
DTYPE = ResultDifference(Part.OUTPUT, Change.DTYPE, "output 0", "int64", "int32")
UNSEEN = replace(
    NO_FASTER,
    unseen=(
        UnseenCode(UnseenKind.OUTCOME, "net.py", 20, HOSTILE, (False,)),
        UnseenCode(UnseenKind.OUTCOME, "other.py", 3, "x or y", (True, False)),
        UnseenCode(UnseenKind.DEFAULT, "net.py", 22, "k=3"),
    ),
    varied=(
        VariedDifference(VariedCall(0, Variation.INFINITE), "Net", DTYPE),
        VariedDifference(VariedCall(0, Variation.ONE, "0"), HOSTILE, error=HOSTILE),
        VariedDifference(VariedCall(0, Variation.ARGUMENT, "args[1]", "3"), "Net", DTYPE),
    ),
    printed=("mean 0.5\n", ""),
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
        unreached=("other.py:3 where",),
        declined=(Refused(STAYS, (Reason("item", "it is printed"),)),),
        notes=(Observation(ObservationKind.NOT_CALLED, names=("g",)),),
        breaks=1,
    )


TOO_NOISY = replace(NO_FASTER, verdict=ProofVerdict.TOO_NOISY, ratio=Ratio(1.2, 0.9, 1.6))

WHOLE = verification(ACCEPTED, NO_FASTER, REJECTED, ALL)


def written(format_: str, told: Verification = WHOLE) -> str:
    return text_of(VERIFY, format_, told)


def test_what_was_not_written_in_words() -> None:
    assert not_applied_words(("net.py: is locked", "other.py: is locked")) == "net.py: is locked; other.py: is locked"
    assert all(map(not_applied_words, NotApplied))


def test_verdicts_in_words() -> None:
    assert verdict_words(ACCEPTED) == "equal, 1.49× faster [1.46, 1.52]"
    assert verdict_words(TOO_NOISY) == "equal, too noisy to say if faster [0.90, 1.60]"
    assert verdict_words(NO_FASTER) == "equal, no faster (1.00 [0.99, 1.02])"
    assert (
        verdict_words(replace(NO_FASTER, ratio=Ratio(0.5, 0.48, 0.52), slower=True))
        == "equal, slower (0.50 [0.48, 0.52])"
    )
    assert verdict_words(REJECTED) == (
        "rejected: eager, output 0 differs by 0.03 at [2, 5] (0.03 for 0; allowed 0.0001)"
    )
    assert verdict_words(replace(ACCEPTED, ratio=Ratio(25.04, 24.0, 26.0))) == "equal, 25.0× faster [24.0, 26.0]"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [(11.8e-3, 7.9e-3, "11.8 → 7.9 ms"), (76e-6, 1.2e-5, "76 → 12 µs"), (2.0, 0.5, "2 → 0.5 s"), (1.0, None, "")],
)
def test_times_share_a_unit(before: float, after: float | None, said: str) -> None:
    assert steps(before, after) == said


def test_the_headline_counts_changes_and_not_their_sum() -> None:
    assert headline(WHOLE) == "3 changes: 1 accepted, 1 no faster, 1 rejected"
    assert headline(verification()).startswith("Nothing to prove: no rewrite is offered")


def test_what_becomes_of_the_files_is_said() -> None:
    assert ending_words(WHOLE) == "Your files are unchanged. --apply writes the accepted change."
    assert ending_words(verification(REJECTED)) == "Your files are unchanged."
    held = replace(ACCEPTED, unseen=UNSEEN.unseen)
    assert ending_words(verification(held)) == (
        "Your files are unchanged. The accepted change is held back: --apply-unseen writes it."
    )
    assert ending_words(verification(held, ACCEPTED)) == "Your files are unchanged. --apply writes what is accepted."
    assert ending_words(replace(WHOLE, held_back=ALL.members[:1])) == (
        "Your files are unchanged. Held back: net.py:12 where. --apply-unseen writes what is held back, too."
    )
    assert ending_words(replace(WHOLE, applied=("net.py",))) == "Written: net.py."
    assert ending_words(replace(WHOLE, not_applied=NotApplied.NONE_ACCEPTED)) == (
        "Your files are unchanged: no change was accepted."
    )


def test_a_difference_in_a_varied_call_holds_back_unless_it_is_stated() -> None:
    differs = replace(UNSEEN, unseen=())
    assert differs.is_held_back
    stated = tuple(replace(one, is_stated=True) for one in UNSEEN.varied)
    assert not replace(differs, varied=stated).is_held_back
    assert replace(differs, varied=(stated[0], UNSEEN.varied[1])).is_held_back
    assert replace(UNSEEN, varied=stated).is_held_back


def test_the_terminal_report_has_a_line_a_change() -> None:
    lines = written("terminal").splitlines()
    assert lines[0] == "3 changes: 1 accepted, 1 no faster, 1 rejected."
    assert lines[1].split() == ["change", "breaks", "graphs", "kernels", "step", "verdict"]
    (line,) = [line for line in lines if line.startswith(" net.py:12 where")]
    assert "1 → 0" in line
    assert "2 → 1" in line
    assert "4 → 3" in line
    assert "11.8 → 7.9 ms" in line
    assert line.endswith("equal, 1.49× faster [1.46, 1.52]")


@pytest.mark.parametrize("format_", ["terminal", "markdown"])
def test_peak_memory_is_in_the_table_where_a_gpu_is_used(format_: str) -> None:
    gpu = replace(WHOLE, environment={"device": "NVIDIA H200"})
    table, last = "400 → 400 MB", written(format_, gpu)
    details = 0 if format_ == "terminal" else 2
    assert last.replace("&#8594;", "→").count(table) == details + 2
    assert written(format_).replace("&#8594;", "→").count(table) == details
    assert "memory" not in written("terminal")


def test_what_is_accepted_with_others_says_so(valid: Callable[..., Any]) -> None:
    alone = replace(ACCEPTED, ratio=None, after=None, accepted_in="all")
    assert verdict_words(alone) == "accepted with all"
    assert (
        verdict_words(replace(ACCEPTED, accepted_in="the 3 that are accepted"))
        == "equal, accepted with the 3 that are accepted"
    )
    whole = replace(ACCEPTED, label="all", members=ALL.members, site=None)
    told = " ".join(written("terminal", verification(alone, whole)).split())
    assert "What is accepted with others was not timed by itself: --each does that." in told
    assert "1 change: 1 accepted." in told
    (single, _) = valid(written("json", verification(alone, whole)), "verify")["proofs"]
    assert (single["verdict"], single["accepted_in"], single["ratio"]) == ("accepted", "all", None)
    for format_ in VERIFY.names:
        assert "accepted with all" in " ".join(written(format_, verification(alone, whole)).split())


def test_the_json_is_what_its_schema_says_and_the_whole_set_comes_last(valid: Callable[..., Any]) -> None:
    for result in (WHOLE, verification(), verification(UNSEEN), verification(TOO_NOISY)):
        valid(written("json", result), "verify")
    told = json.loads(written("json"))
    assert told["proofs"][-1]["members"] == list(ALL.members)
    verdicts = {verdict.value for verdict in ProofVerdict} - {TOO_NOISY.verdict.value, ProofVerdict.NOT_TRIED.value}
    assert {proof["verdict"] for proof in told["proofs"]} == verdicts


DIFFERENCE = ResultDifference(Part.OUTPUT, Change.ELEMENT, "output", "224", "-800")
DIVERGENCE = Divergence(
    (DIFFERENCE, replace(DIFFERENCE, path="output 1")),
    Stage.INDUCTOR,
    GraphOperation("Tensor.sum", "net.py", 12, True),
    GraphOperation("torch.abs", "net.py", 9, True),
    ("cpp.simdlen", 1),
    "repro.py",
)


def test_the_report_says_where_compiled_differs_from_eager(valid: Callable[..., Any]) -> None:
    told = valid(written("json", replace(WHOLE, divergence=DIVERGENCE)), "verify")["compiled"]
    assert (told["agrees"], len(told["differences"]), told["stage"]) == (False, 2, "Inductor")
    assert told["operation"] == {"name": "Tensor.sum", "path": "net.py", "line": 12}
    assert told["since"] == {"name": "torch.abs", "path": "net.py", "line": 9}
    assert told["setting"] == {"name": "torch._inductor.config.cpp.simdlen", "value": 1}
    for format_ in ("terminal", "markdown"):
        shown = unescape(written(format_, replace(WHOLE, divergence=DIVERGENCE)))
        assert all(part in shown for part in ("Tensor.sum", "net.py:12", "simdlen", "repro.py")), format_
    assert valid(written("json"), "verify")["compiled"]["agrees"]
    assert valid(written("json", replace(WHOLE, compared=False)), "verify")["compiled"] is None


def test_markdown_ends_below_what_github_takes() -> None:
    long = replace(ACCEPTED, diff="+" + "x" * 40_000 + "\n")
    told = written("markdown", verification(long, long, long))
    assert len(told) < 65_000
    assert "The rest does not fit" in told


@pytest.mark.parametrize("format_", VERIFY.names)
def test_foreign_text_steers_nothing(format_: str) -> None:
    told = written(format_, replace(WHOLE, proofs=(*WHOLE.proofs, UNSEEN), held_back=(HOSTILE,)))
    assert "\x1b" not in told
    assert "\u202e" not in told


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_what_is_not_proved_of_a_change_is_told(form: str) -> None:
    new = UnseenCode(UnseenKind.NEW, "net.py", 21, "y = where(x, 0)")
    half = replace(NO_FASTER, unseen=(new,), revealed=("net.py:31",), breaks_there=False)
    told = " ".join(written(form, verification(half)).split())
    for words in (
        "line 21 of the new text",
        "breaks the graph there: net.py:31",
        "No break was",
    ):
        assert words in told
    assert "y = where(x, 0)" not in written(form, verification(replace(half, verdict=ProofVerdict.REJECTED)))


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_what_the_calls_do_not_show_is_told(form: str) -> None:
    seen = replace(UNSEEN.unseen[0], code="x.sum() > 0")
    page = unescape(written(form, verification(replace(UNSEEN, unseen=(seen, *UNSEEN.unseen[1:])))))
    told = " ".join(page.replace("\\", "").split())
    for words in (
        "(1.00 [0.99, 1.02]); no call took the `False` side of `x.sum() > 0`, line 20 (and 2 more)",
        "No call ran `x or y`, other.py:3.",
        "No call uses the default `k=3`, line 22.",
        "With infinite inputs and args[1] = 3 of Net, output 0 is int32, not int64.",
        "A call no longer prints 'mean 0.5'.",
    ):
        assert words in told
