"""An outcome that no captured call had is named, and the change that it belongs to is held back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from unseen_programs import TEST, program, text_of, verified, write_patch

pytestmark = pytest.mark.torch

FALSE_SIDE = "no captured call took the `False` side of `y.mean() > 2`, line 16"


def test_a_side_that_only_the_fifth_call_takes_is_named_and_the_change_is_not_written(
    tmp_path: Path, valid: Callable[..., Any]
) -> None:
    # The square root of the fifth call's values has a gradient of NaN, which `where` lets through.
    text = program("3.0 if step < 4 else -3.0", "torch.sqrt(y)")
    told = verified(tmp_path, text, valid, "--apply")
    (proof,) = told["proofs"]
    assert proof["verdict"] == "accepted", proof["says"]
    assert proof["says"].endswith(f"]; {FALSE_SIDE}")
    (unseen,) = proof["unseen"]
    assert unseen == {
        "path": "program.py",
        "line": 16,
        "test": "y.mean() > 2",
        "outcomes": [False],
        "says": FALSE_SIDE,
    }
    assert (proof["held_back"], told["held_back"]) == (True, ["program.py:16 where"])
    assert (told["applied"], told["not_applied"]) == ([], None)
    assert text_of(tmp_path) == text


@pytest.mark.slow
def test_it_is_written_if_the_user_says_so(tmp_path: Path, valid: Callable[..., Any]) -> None:
    told = verified(tmp_path, program("3.0", "torch.sqrt(y)"), valid, "--apply-unseen")
    (proof,) = told["proofs"]
    assert (proof["verdict"], proof["held_back"]) == ("accepted", True), proof["says"]
    assert (told["applied"], told["held_back"]) == (["program.py"], [])
    assert TEST not in text_of(tmp_path)


@pytest.mark.slow
def test_a_test_with_both_outcomes_is_written(tmp_path: Path, valid: Callable[..., Any]) -> None:
    told = verified(tmp_path, program("3.0 if step % 2 else 0.5"), valid, "--apply")
    (proof,) = told["proofs"]
    assert (proof["verdict"], proof["unseen"], proof["stress"]) == ("accepted", [], []), proof["says"]
    assert proof["says"].endswith("]")
    assert (told["applied"], told["held_back"]) == (["program.py"], [])
    assert TEST not in text_of(tmp_path)


GUARDED = """\
def f(x: torch.Tensor):
    y = x + 1
    if x.isnan().any():
        raise ValueError("x has NaN")
    return y * 2
"""


@pytest.mark.slow
def test_a_check_that_raises_with_other_inputs_counts_as_seen_and_is_written(
    tmp_path: Path, valid: Callable[..., Any]
) -> None:
    text = program("3.0")
    begin, end = text.index("def f"), text.index("\n\ng = ")
    text = text[:begin] + GUARDED + text[end:]
    told = verified(tmp_path, text, valid, "--apply", "--rewrite", "assert-async")
    (proof,) = told["proofs"]
    seen = "only NaN inputs took the `True` side of `x.isnan().any()`, line 16"
    assert proof["says"].endswith(f"]; {seen}")
    assert (proof["unseen"], proof["stress"]) == ([], [])
    (outcome,) = proof["stressed_outcomes"]
    assert outcome == {
        "path": "program.py",
        "line": 16,
        "test": "x.isnan().any()",
        "outcome": True,
        "inputs": "nan",
        "says": seen,
    }
    assert (told["applied"], told["held_back"]) == (["program.py"], [])
    assert "torch._assert_async" in text_of(tmp_path)


EARLY = program("3.0").replace(
    TEST, "    time.sleep(0.005)\n    if y.numel() > 99:\n        return y\n    torch.rand(1)\n" + TEST
)
MOVED = EARLY.replace("    torch.rand(1)\n", "").replace("    time.sleep(0.005)\n    if", "    torch.rand(1)\n    if")


@pytest.mark.slow
def test_a_test_that_code_moves_across_counts_as_replaced(tmp_path: Path, valid: Callable[..., Any]) -> None:
    told = verified(tmp_path, EARLY, valid, "--apply", "--patch", write_patch(tmp_path, EARLY, MOVED))
    (proof,) = told["proofs"]
    assert proof["verdict"] == "accepted", proof["says"]
    assert [one["says"] for one in proof["unseen"]] == [
        "no captured call took the `True` side of `y.numel() > 99`, program.py:17"
    ]
    assert told["held_back"] == ["it.patch"]
    assert text_of(tmp_path) == EARLY
