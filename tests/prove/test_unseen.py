"""What the captured calls do not show of a change is named, and holds it back: code that no call ran, varied calls."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

PROGRAM = """\
import time

import torch


def costly(graph, inputs):
    def run(*values):
        time.sleep(0.005)
        return graph(*values)

    return run


def f(x: torch.Tensor):
    y = x + 1
    if y.mean() > 2:
        y = SIDE
    else:
        y = y * 3
    return y


g = torch.compile(f, backend=costly)
for step in range(5):
    g(torch.full((8,), VALUE, requires_grad=True).clone()).sum().backward()
"""
TEST = "    if y.mean() > 2:\n"
"""Line 16."""


def program(value: str, side: str = "y * 2") -> str:
    """A program that calls with ``value``, which may depend on ``step``; ``side`` is what one side computes."""
    return PROGRAM.replace("VALUE", value).replace("SIDE", side)


def text_of(folder: Path) -> str:
    """What the program's file holds now."""
    return (folder / "program.py").read_text(encoding="utf-8")


WIDE = program("3.0").replace(TEST, "    if y.numel() > 99:\n")
NARROW = WIDE.replace("    if y.numel() > 99:\n        y = y * 2\n    else:\n        y = y * 3\n", "    y = y * 3\n")
SLEEPING = WIDE.replace("    y = x + 1\n", "    time.sleep(0.03)\n    y = x + 1\n")


def test_a_side_that_no_call_takes_is_named_and_the_change_is_not_written(tmp_path: Path, verified: Any) -> None:
    told = verified(SLEEPING, "--apply", becomes=NARROW)
    (proof,) = told["proofs"]
    assert proof["verdict"] == "accepted", proof["says"]
    (unseen,) = proof["unseen"]
    assert (unseen["kind"], unseen["line"], unseen["code"]) == ("outcome", 17, "y.numel() > 99")
    assert unseen["outcomes"] == [True]
    assert proof["says"].endswith("]; no call took the `True` side of `y.numel() > 99`, program.py:17")
    assert (proof["held_back"], told["held_back"]) == (True, ["it.patch"])
    assert (told["applied"], told["not_applied"]) == ([], None)
    assert text_of(tmp_path) == SLEEPING


@pytest.mark.slow
def test_a_side_that_only_a_later_call_takes_is_compared(verified: Any) -> None:
    # The square of the fifth call's values has a gradient of NaN, which `where` lets through, and says so.
    told = verified(program("3.0 if step < 4 else float('-inf')", "y * y"), "--apply")
    (proof,) = told["proofs"]
    assert proof["unseen"] == []
    assert ("later", "gradient", True) in {(one["kind"], one["part"], one["stated"]) for one in proof["varied"]}


@pytest.mark.slow
def test_a_test_with_both_outcomes_is_written(tmp_path: Path, verified: Any) -> None:
    told = verified(program("3.0 if step % 2 else 0.5"), "--apply")
    (proof,) = told["proofs"]
    assert (proof["verdict"], proof["unseen"], proof["varied"]) == ("accepted", [], []), proof["says"]
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
def test_a_check_that_raises_with_other_inputs_counts_as_seen_and_is_written(tmp_path: Path, verified: Any) -> None:
    text = program("3.0")
    begin, end = text.index("def f"), text.index("\n\ng = ")
    text = text[:begin] + GUARDED + text[end:]
    told = verified(text, "--apply", "--rewrite", "assert-async")
    (proof,) = told["proofs"]
    # Compiled code raises another exception, as the rewrite states.
    assert proof["unseen"] == []
    assert all(one["stated"] for one in proof["varied"])
    assert (told["applied"], told["held_back"]) == (["program.py"], [])
    assert "torch._assert_async" in text_of(tmp_path)


EARLY = program("3.0").replace(
    TEST, "    time.sleep(0.005)\n    if y.numel() > 99:\n        return y\n    torch.rand(1)\n" + TEST
)
MOVED = EARLY.replace("    torch.rand(1)\n", "").replace("    time.sleep(0.005)\n    if", "    torch.rand(1)\n    if")


@pytest.mark.slow
def test_a_test_that_code_moves_across_counts_as_replaced(tmp_path: Path, verified: Any) -> None:
    told = verified(EARLY, "--apply", becomes=MOVED)
    (proof,) = told["proofs"]
    assert proof["verdict"] == "accepted", proof["says"]
    assert [one["says"] for one in proof["unseen"]] == [
        "no call took the `True` side of `y.numel() > 99`, program.py:17"
    ]
    assert told["held_back"] == ["it.patch"]
    assert text_of(tmp_path) == EARLY


SLOW = program("3.0 if step % 2 else 0.5").replace("    y = x + 1\n", "    y = torch.relu(x)\n    time.sleep(0.005)\n")

CLAMPED = SLOW.replace("    y = torch.relu(x)\n    time.sleep(0.005)\n", "    y = torch.where(x > 0, x, 0.0)\n")


def test_a_difference_with_nan_is_told_and_the_change_is_held_back(tmp_path: Path, verified: Any) -> None:
    told = verified(SLOW, "--apply", becomes=CLAMPED)
    (proof,) = told["proofs"]
    assert (proof["verdict"], proof["outputs_equal"]) == ("accepted", True), proof["says"]
    (found,) = proof["varied"]
    assert (found["kind"], found["callable"], found["part"]) == ("nan", "f", "output")
    assert found["says"].startswith("with NaN inputs of f, output differs by inf at [0] (0 for nan")
    assert told["held_back"] == ["it.patch"]
    assert text_of(tmp_path) == SLOW


EXIT = "    if x.isnan().any():\n        return x * 0\n"


@pytest.mark.slow
def test_what_is_left_to_eager_code_is_compared_as_compiled(verified: Any) -> None:
    guarded = EXIT.replace("if ", "if not torch.compiler.is_compiling() and ")
    before, after = (
        SLOW.replace("    y = torch.relu(x)\n", f"{one}    y = torch.relu(x)\n") for one in (EXIT, guarded)
    )
    told = verified(before, "--apply", becomes=after)
    (proof,) = told["proofs"]
    assert (proof["verdict"], proof["outputs_equal"]) == ("accepted", True), proof["says"]
    assert "nan" in {one["kind"] for one in proof["varied"]}
    assert told["held_back"] == ["it.patch"]


@pytest.mark.slow
def test_a_program_that_differs_as_compiled_hides_no_difference_of_eager_code(verified: Any) -> None:
    own = "    if not torch.compiler.is_compiling() and x.isnan().any():\n        return x * 0\n"
    before = SLOW.replace("    y = torch.relu(x)\n", f"{own}    y = torch.relu(x)\n")
    other = own.replace("return x * 0", "return x * 0 + 1") + own.replace("x.isnan()", "(x > 1e9)")
    after = SLOW.replace("    y = torch.relu(x)\n    time.sleep(0.005)\n", f"{other}    y = torch.relu(x)\n")
    told = verified(before, "--apply", becomes=after)
    (proof,) = told["proofs"]
    assert proof["verdict"] == "accepted", proof["says"]
    assert "nan" in {one["kind"] for one in proof["varied"]}
    assert told["held_back"] == ["it.patch"]


@pytest.mark.slow
def test_a_difference_that_a_rewrite_states_is_told_and_written(tmp_path: Path, verified: Any) -> None:
    told = verified(program("3.0 if step % 2 else 0.5", "y * y"), "--apply")
    (proof,) = told["proofs"]
    assert "gradients flow through both sides" in proof["difference"]
    assert ("nan", "gradient") in {(one["kind"], one["part"]) for one in proof["varied"]}
    assert (proof["held_back"], told["applied"]) == (False, ["program.py"])
    assert TEST not in text_of(tmp_path)


RAISES = program("3.0 if step % 2 else 0.5").replace(
    "    y = x + 1\n", "    y = x + 1\n    while not y.isfinite().all():\n        y = y * 2\n    range(int(x.sum()))\n"
)


@pytest.mark.slow
def test_what_raises_or_never_ends_with_other_inputs_anyway_is_no_difference(verified: Any) -> None:
    told = verified(RAISES, "--rewrite", "where")
    (proof,) = [one for one in told["proofs"] if one["label"] == "program.py:19 where"]
    assert proof["outputs_equal"] is True, proof["reasons"]
    assert proof["varied"] == []
    assert told["notes"] == []


@pytest.mark.slow
def test_a_program_that_other_inputs_end_is_verified_all_the_same(verified: Any) -> None:
    text = program("3.0 if step % 2 else 0.5").replace(
        "    y = x + 1\n", "    y = x + 1\n    __import__('os')._exit(3) if bool(x.isnan().any()) else None\n"
    )
    told = verified(text, "--rewrite", "where")
    (proof,) = told["proofs"]
    assert (proof["outputs_equal"], proof["varied"]) == (True, []), proof["says"]
    assert told["notes"] == []


@pytest.mark.slow
def test_a_change_that_other_inputs_end_is_held_back(verified: Any) -> None:
    end = "    if not torch.compiler.is_compiling() and x.isnan().any():\n        __import__('os')._exit(3)\n"
    ended = SLOW.replace("    time.sleep(0.005)\n    if", f"{end}    if")
    told = verified(SLOW, "--apply", becomes=ended)
    (proof,) = told["proofs"]
    assert proof["verdict"] == "accepted", proof["says"]
    (found,) = proof["varied"]
    assert (found["part"], told["held_back"]) == (None, ["it.patch"])
    assert found["says"].endswith("the process fails: the program ended with exit status 3")


PRINTS = """\
import torch


def f(x):
    total = (x * 3).sum()
    print("total", total.item())
    return x.tanh()


compiled = torch.compile(f, backend="aot_eager")
torch.manual_seed(0)
for _ in range(8):
    out = compiled(torch.randn(6, 6))
"""
RETURNED = (
    PRINTS.replace('    print("total", total.item())\n', "")
    .replace("return x.tanh()", "return x.tanh(), total")
    .replace(
        "out = compiled(torch.randn(6, 6))",
        'out, total = compiled(torch.randn(6, 6))\n    print("total", total.item())',
    )
)


def test_parts_of_results_may_move_with_the_code_that_reads_them(tmp_path: Path, verified: Any) -> None:
    told = verified(PRINTS, "--apply", becomes=RETURNED)
    (proof,) = told["proofs"]
    assert proof["outputs_equal"] is True, proof["says"]
    assert proof["verdict"] != "rejected", proof["says"]
    assert "outside" in {one["kind"] for one in proof["unseen"]}
    assert text_of(tmp_path) == PRINTS
