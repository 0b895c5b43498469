"""The reports of ``tune``: the gain first, then the patch, and why the rest was not taken."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hostile import NASTY, poisoned
from report_results import text_of

from breakscan.model.remedy import RemedyKind
from breakscan.prove.changed_code import UnseenCode, UnseenKind
from breakscan.prove.faster import Ratio
from breakscan.prove.observation import Observation, ObservationKind
from breakscan.prove.proof import (
    Best,
    Evidence,
    Goal,
    NotApplied,
    RunFigures,
    Trial,
    TrialVerdict,
    Tuning,
    VariedDifference,
)
from breakscan.prove.protocol import Variation, VariedCall
from breakscan.report import markdown
from breakscan.report.formats import TUNE
from breakscan.report.tune import ending_words, headline, not_taken, table_rows
from breakscan.serve.agents.answers import answer
from tests.conftest import Valid

BEFORE = RunFigures(9, 4, 1, 12, 38.0, 41.0, 11.8e-3, 1_374_000_000)
AFTER = RunFigures(0, 0, 1, 1, 14.2, 15.1, 6.6e-3, 900_000_000)
EAGER = RunFigures(0, 0, 0, 0, 0.0, 2.0, 15.1e-3)
WHERE = Trial(("net.py:3 where",), RemedyKind.EDIT, TrialVerdict.GAINS, "", AFTER, Ratio(1.2, 1.1, 1.3))
SETTING = Trial(("capture_scalar_outputs = True",), RemedyKind.SETTING, TrialVerdict.NO_GAIN, "", BEFORE)
SLOWER = Trial(("freezing = True",), RemedyKind.SETTING, TrialVerdict.NO_GAIN, "no faster", BEFORE)
LATE = Trial(("dynamic=True",), RemedyKind.SHAPES, TrialVerdict.NOT_TRIED, "the time was over")
WRONG = Trial(("half",), RemedyKind.EDIT, TrialVerdict.DIFFERS, "loss is 2, not 3", AFTER)
BOTH = Trial(
    (*WHERE.names, *SETTING.names), RemedyKind.EDIT, TrialVerdict.FAILS, "backward() raises RuntimeError", None
)
OLD = "def f(x):\n\tif x.isnan().any():\n\t\tx = 0 * x\n\treturn x\n"
PATCH = (
    "--- a/net.py\n+++ b/net.py\n@@ -1,4 +1,3 @@\n def f(x):\n-\tif x.isnan().any():\n-\t\tx = 0 * x\n"
    "+\tx = torch.where(x.isnan().any(), 0 * x, x)\n \treturn x\n"
)
BEST = Best(
    (WHERE,),
    PATCH,
    BEFORE,
    AFTER,
    Ratio(1.79, 1.75, 1.83),
    (Evidence.CALLS, Evidence.RUN),
    assumes=("both sides may be computed",),
)
TUNED = Tuning(
    argv=("train.py", "--steps", "20"),
    environment={"torch": "2.13.0", "device": "1 × NVIDIA H200"},
    goal=Goal.STEP,
    seconds=212.0,
    steps=20,
    step="train.py:63",
    cut=True,
    before=BEFORE,
    eager=EAGER,
    best=BEST,
    tried=(SETTING, SLOWER, WHERE, WRONG, BOTH, LATE, replace(LATE, names=("no_grad",))),
    notes=("The machine was busy.",),
)
NOTHING = replace(TUNED, best=None)
SAME_STEP = Ratio(1.0, 0.98, 1.02)


def best(**changes: Any) -> Tuning:
    return replace(TUNED, best=replace(BEST, **changes))


@pytest.mark.parametrize(
    ("tuning", "said"),
    [
        (TUNED, "1.79× faster [1.75, 1.83]: 9 breaks → 0, 4 recompiles → 0"),
        (best(ratio=Ratio(2.0, 1.5, 2.5)), "At least 1.50× faster [1.50, 2.50]: 9 breaks → 0, 4 recompiles → 0"),
        (
            best(ratio=SAME_STEP, after=replace(BEFORE, recompiles=0, run_seconds=15.1)),
            "41 → 15.1 s for 20 steps with compiling (caches warm): 4 recompiles → 0",
        ),
        (replace(best(ratio=None, after=replace(BEFORE, run_seconds=15.1)), step=None), "41 → 15.1 s for the program"),
        (
            best(ratio=Ratio(0.9, 0.88, 0.92), after=replace(BEFORE, recompiles=0, compile_seconds=4.0)),
            "38 → 4 s of compiling, with steps of 0.90 [0.88, 0.92]: 4 recompiles → 0",
        ),
        (best(ratio=SAME_STEP, after=replace(BEFORE, breaks=0)), "As fast as before, 1.00 [0.98, 1.02]: 9 breaks → 0"),
        (
            best(ratio=Ratio(0.3, 0.1, 2.0), after=replace(BEFORE, breaks=0)),
            "Fewer problems, too noisy to say if faster [0.10, 2.00]: 9 breaks → 0",
        ),
        (replace(TUNED, goal=Goal.COMPILE), "38 → 14.2 s of compiling: 9 breaks → 0"),
        (replace(TUNED, goal=Goal.MEMORY), "1,374 → 900 MB of memory: 9 breaks → 0"),
        (best(after=EAGER), "Eager is best: 1.79× faster [1.75, 1.83]"),
        (best(before=replace(BEFORE, graphs=0), after=EAGER), "Eager is best: 1.79× faster [1.75, 1.83]"),
        (best(after=replace(AFTER, graphs=0)), "1.79× faster [1.75, 1.83]: 9 breaks"),
        (NOTHING, "Nothing faster was found in time: 5 of 7 ways tried (--time)"),
        (replace(NOTHING, tried=TUNED.tried[:1]), "Nothing is faster than what you have (1 way tried)"),
        (replace(NOTHING, tried=(LATE,)), "Nothing was tried"),
        (replace(TUNED, interrupted=True), "Interrupted. 1.79× faster"),
    ],
)
def test_the_gain_is_said_first(tuning: Tuning, said: str) -> None:
    assert headline(tuning).startswith(said)
    assert text_of(TUNE, "terminal", tuning).startswith(f"{headline(tuning)}.\n")
    assert f"### breakscan tune: {markdown.prose(headline(tuning))}\n" in text_of(TUNE, "markdown", tuning)
    assert json.loads(text_of(TUNE, "json", tuning))["says"] == headline(tuning)


def test_the_figures_of_each_run_are_in_the_table() -> None:
    titles, *rows = table_rows(TUNED)
    assert titles == ("", "as it is", "tuned", "eager")
    figures = {name: cells for name, *cells in rows}
    assert figures["step"] == ["11.8 ms", "6.6 ms", "15.1 ms"]
    assert figures["functions run eager"] == ["1", "1", ""]
    assert not {"breaks", "recompiles"} & figures.keys()  # the headline has them
    assert figures["memory"] == ["1,374 MB", "900 MB", ""]
    on_cpu = replace(TUNED, environment={**TUNED.environment, "device": "cpu"})
    assert "memory" not in {name for name, *_ in table_rows(on_cpu)}
    assert ("the program", "41.0 s", "15.1 s", "2.0 s") in table_rows(replace(TUNED, step=None))
    titles, *rows = table_rows(replace(NOTHING, eager=None))
    assert titles == ("", "as it is")
    assert ("breaks", "9") in rows


def test_what_is_not_in_the_best_program_is_named_with_the_reason() -> None:
    assert not_taken(TUNED) == [
        ("capture_scalar_outputs = True", "no gain"),
        ("freezing = True", "no faster"),
        ("half", "computes something else: loss is 2, not 3"),
        ("net.py:3 where + capture_scalar_outputs = True", "fails: backward() raises RuntimeError"),
        ("dynamic=True and no_grad", "not tried: the time was over"),
    ]
    assert not_taken(NOTHING)[2] == ("net.py:3 where", "gains by itself (1.20 [1.10, 1.30])")


@pytest.mark.parametrize(
    ("tuning", "said"),
    [
        (TUNED, ("unchanged", "--apply writes")),
        (best(held_back=("no call ran line 3",)), ("unchanged", "no call ran line 3", "--apply-unseen")),
        (replace(TUNED, applied=("net.py",)), ("Written: net.py.",)),
        (replace(TUNED, not_applied=NotApplied.INTERRUPTED), ("unchanged", NotApplied.INTERRUPTED.value)),
        (NOTHING, ("unchanged",)),
    ],
)
def test_the_end_says_what_was_written(tuning: Tuning, said: tuple[str, ...]) -> None:
    assert all(words in ending_words(tuning) for words in said)
    assert ("--apply" in ending_words(tuning)) is any("--apply" in words for words in said)


@pytest.mark.process
def test_git_takes_the_patch_from_the_report(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(OLD, encoding="utf-8")
    (tmp_path / "tune.txt").write_text(text_of(TUNE, "terminal", TUNED), encoding="utf-8")
    subprocess.run(["git", "apply", "tune.txt"], cwd=tmp_path, check=True)
    assert "\tx = torch.where(" in (tmp_path / "net.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("tuning", [TUNED, NOTHING, replace(NOTHING, tried=(), eager=None, step=None, notes=())])
def test_the_json_is_as_its_schema_says(tuning: Tuning, valid: Valid) -> None:
    told = valid(text_of(TUNE, "json", tuning), "tune")
    assert [one["names"] for one in told["tried"]] == [list(trial.names) for trial in tuning.tried]
    assert (told["best"] is None) is (tuning.best is None)


def test_the_json_has_each_figure_before_and_after() -> None:
    told = json.loads(text_of(TUNE, "json", TUNED))["best"]
    assert told["breaks"] == {"before": 9, "after": 0}
    assert told["compile_seconds"] == {"before": 38.0, "after": 14.2}
    assert told["ratio"] == {"median": 1.79, "low": 1.75, "high": 1.83, "disturbed": False}
    assert told["patch"] == PATCH
    assert (told["equal"], told["compared"]) == (True, ["calls", "run"])
    assert told["candidates"][0]["verdict"] == "gains"


def test_a_comment_has_the_patch_if_there_is_room() -> None:
    told = text_of(TUNE, "markdown", TUNED)
    assert told.startswith("<!-- breakscan tune -->\n")
    assert f"````diff\n{PATCH}````\n" in told
    for patch in (f"{PATCH} {'x' * markdown.LIMIT}", f"{PATCH} ````"):
        told = text_of(TUNE, "markdown", best(patch=patch))
        assert "````" not in told
        assert len(told) < markdown.LIMIT


@pytest.mark.parametrize("format_", TUNE.names)
def test_no_string_of_a_program_steers_what_shows_it(format_: str) -> None:
    hostile = poisoned(TUNED, list(NASTY))
    told = text_of(TUNE, format_, replace(hostile, best=replace(hostile.best, patch=PATCH)))
    assert not set(told) & {"\x1b", "\x07", "\u202e"}
    assert "<script" not in told or format_ != "markdown"


@pytest.mark.parametrize("tuning", [TUNED, best(held_back=("no call ran line 3",)), NOTHING])
def test_an_agent_gets_the_patch_and_a_page_of_what_was_tried(tuning: Tuning) -> None:
    told = answer("tune", json.loads(text_of(TUNE, "json", tuning)), 0, 2)
    assert told["says"] == headline(tuning)
    assert told.get("best", {}).get("patch") == (PATCH if tuning.best else None)
    assert told["tried"][1] == {"names": ["freezing = True"], "verdict": "no-gain", "reason": "no faster"}
    assert told["more"] == len(tuning.tried) - 2


def test_what_no_call_showed_holds_the_patch_back_in_words() -> None:
    unseen = UnseenCode(UnseenKind.OUTCOME, "net.py", 3, "x.isnan().any()", (True,))
    other = VariedDifference(VariedCall(0, Variation.NAN), "Net", error="it ended by signal 11")
    held = best(held_back=(unseen, other, replace(other, call=VariedCall(0, Variation.INFINITE))))
    told = json.loads(text_of(TUNE, "json", held))["best"]["held_back"]
    assert told == [
        "no call took the `True` side of `x.isnan().any()`, net.py:3",
        "with NaN inputs and infinite inputs of Net, the process fails: it ended by signal 11",
    ]
    assert all(words in ending_words(held) for words in told)


def test_what_the_referee_observed_is_said_in_words() -> None:
    refused = Observation(ObservationKind.DOES_NOT_RUN, "backward() raises")
    tuning = replace(NOTHING, tried=(replace(SLOWER, verdict=TrialVerdict.FAILS, reason=refused),), notes=(refused,))
    said = "the program does not run with it: backward() raises"
    assert not_taken(tuning) == [("freezing = True", f"fails: {said}")]
    told = json.loads(text_of(TUNE, "json", tuning))
    assert (told["tried"][0]["reason"], told["notes"]) == (said, [said])
