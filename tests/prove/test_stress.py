"""Other inputs than the program's own: what differs there is told beside the verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from unseen_programs import TEST, program, text_of, verified, write_patch

from breakscan.prove.call_result import CallResult
from breakscan.prove.equal import Change, Part
from breakscan.prove.probe import stressed_difference

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SLOW = program("3.0 if step % 2 else 0.5").replace("    y = x + 1\n", "    y = torch.relu(x)\n    time.sleep(0.005)\n")

CLAMPED = SLOW.replace("    y = torch.relu(x)\n    time.sleep(0.005)\n", "    y = torch.where(x > 0, x, 0.0)\n")


def test_after_the_same_exception_nothing_else_counts() -> None:
    def result(error: str | None, state: float) -> CallResult:
        return CallResult(error=error, changed={"self.total": torch.tensor(state)}, rng={"torch": str(state)})

    assert stressed_difference(result("ValueError", 1.0), result("ValueError", 2.0)) is None
    other = stressed_difference(result("ValueError", 1.0), result("IndexError", 1.0))
    assert other is not None
    assert other.change is Change.RAISES
    other = stressed_difference(result(None, 1.0), result(None, 2.0))
    assert other is not None
    assert other.part is Part.STATE


def test_a_difference_with_nan_is_told_and_the_change_is_held_back(tmp_path: Path, valid: Callable[..., Any]) -> None:
    told = verified(tmp_path, SLOW, valid, "--apply", "--patch", write_patch(tmp_path, SLOW, CLAMPED))
    (proof,) = told["proofs"]
    assert (proof["verdict"], proof["outputs_equal"]) == ("accepted", True), proof["says"]
    (found,) = proof["stress"]
    assert (found["inputs"], found["callable"], found["part"]) == ("nan", "f", "output")
    assert found["says"].startswith("with NaN inputs of f, output differs by inf at [0] (0 for nan")
    assert told["held_back"] == ["it.patch"]
    assert text_of(tmp_path) == SLOW


@pytest.mark.slow
def test_a_difference_that_a_rewrite_states_is_told_and_written(tmp_path: Path, valid: Callable[..., Any]) -> None:
    told = verified(tmp_path, program("3.0 if step % 2 else 0.5", "torch.sqrt(y)"), valid, "--apply")
    (proof,) = told["proofs"]
    assert "gradients flow through both sides" in proof["difference"]
    assert ("nan", "gradient") in {(one["inputs"], one["part"]) for one in proof["stress"]}
    assert (proof["held_back"], told["applied"]) == (False, ["program.py"])
    assert TEST not in text_of(tmp_path)


RAISES = program("3.0 if step % 2 else 0.5").replace(
    "    y = x + 1\n", "    y = x + 1\n    while not y.isfinite().all():\n        y = y * 2\n    range(int(x.sum()))\n"
)


@pytest.mark.slow
def test_what_raises_or_never_ends_with_other_inputs_anyway_is_no_difference(
    tmp_path: Path, valid: Callable[..., Any]
) -> None:
    told = verified(tmp_path, RAISES, valid, "--rewrite", "where")
    (proof,) = [one for one in told["proofs"] if one["label"] == "program.py:19 where"]
    assert proof["outputs_equal"] is True, proof["reasons"]
    assert proof["stress"] == []
    assert told["notes"] == []


@pytest.mark.slow
def test_a_program_that_other_inputs_end_is_verified_all_the_same(tmp_path: Path, valid: Callable[..., Any]) -> None:
    text = program("3.0 if step % 2 else 0.5").replace(
        "    y = x + 1\n", "    y = x + 1\n    __import__('os')._exit(3) if bool(x.isnan().any()) else None\n"
    )
    told = verified(tmp_path, text, valid, "--rewrite", "where")
    (proof,) = told["proofs"]
    assert (proof["outputs_equal"], proof["stress"]) == (True, []), proof["says"]
    (note,) = told["notes"]
    assert note == "not all other inputs could be run: the program ended with exit status 3"


@pytest.mark.slow
def test_a_change_that_other_inputs_end_is_held_back(tmp_path: Path, valid: Callable[..., Any]) -> None:
    end = "    if not torch.compiler.is_compiling() and x.isnan().any():\n        __import__('os')._exit(3)\n"
    ended = SLOW.replace("    time.sleep(0.005)\n    if", f"{end}    if")
    told = verified(tmp_path, SLOW, valid, "--apply", "--patch", write_patch(tmp_path, SLOW, ended))
    (proof,) = told["proofs"]
    assert proof["verdict"] == "accepted", proof["says"]
    (found,) = proof["stress"]
    assert (found["part"], told["held_back"]) == (None, ["it.patch"])
    assert found["says"].endswith("the process fails: the program ended with exit status 3")
