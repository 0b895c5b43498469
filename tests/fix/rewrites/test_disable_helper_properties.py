"""Random functions with a loop, try or with that breaks: moved into a helper, they compute what they did."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from test_cases import load, repaired

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

NAMES = ("a", "b", "i", "n")
VALUES = (*NAMES, "1", "x.sum()", "y.mean()", "y[0] * 2", "sum(v for v in (a, b))", "max([b, i], key=lambda v: v * n)")
name, value = st.sampled_from(NAMES), st.sampled_from(VALUES)
assigned = st.builds("{} = {}".format, name, value) | st.builds("{} += {}".format, name, value)
changed = st.sampled_from(["y = y + 1", "y = y * n", "seen.append(n)", "y = y.clone(); y.add_(1)", "x = y + x"])
broken = st.builds("if y.sum() > {}:\n    {}".format, st.integers(-2, 2), assigned | changed)
plain = assigned | changed


def indented(lines: list[str]) -> str:
    return "".join("    " + line + "\n" for part in lines for line in part.split("\n"))


def _if(test: str, body: list[str], other: list[str]) -> str:
    return f"if {test}:\n{indented(body)}else:\n{indented(other)}".rstrip("\n")


branch = st.builds(
    _if,
    st.sampled_from(["k", "k > 1"]),
    st.lists(plain, min_size=1, max_size=2),
    st.lists(plain, min_size=1, max_size=2),
)
inner = st.lists(plain | branch | broken, max_size=3).flatmap(
    lambda lines: st.builds(lambda at, one: [*lines[:at], one, *lines[at:]], st.integers(0, len(lines)), broken)
)
head = st.sampled_from(
    [
        "for i in range(k):",
        "for n in (1, 2):",
        "while rounds < 3:\n    rounds += 1",
        'with torch.device("cpu"):',
        "try:",
    ]
)


def _compound(head: str, body: list[str], handler: list[str]) -> str:
    made = f"{head}\n{indented(body)}"
    return (made + f"except ValueError:\n{indented(handler)}" if head == "try:" else made).rstrip("\n")


compound = st.builds(_compound, head, inner, st.lists(plain, min_size=1, max_size=2))
nested = compound | st.builds(
    _if, st.just("k"), st.lists(compound, min_size=1, max_size=1), st.lists(plain, min_size=1)
)
behind = st.lists(plain | branch | st.builds("for {} in (1, 2):\n    y = y + {}".format, name, name), max_size=3)


def program(before: list[str], part: str, after: list[str], result: str) -> str:
    body = indented(["y = x.sin()", "seen = []", "a = x * 2", "n = 1", "rounds = 0", *before, part, *after])
    return f"import torch\n\n\ndef f(x: torch.Tensor, k: int):\n{body}    return y.cos(), seen, {result}\n"


def outcome(function: Any, k: int) -> Any:
    x = torch.tensor([0.5, 1.0, -1.0], requires_grad=True)
    try:
        y, seen, result = function(x, k)
        (gradient,) = torch.autograd.grad(y.sum(), x)
    except (NameError, RuntimeError, TypeError) as error:
        return type(error)
    return y, seen, result, gradient


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.builds(program, st.lists(plain | branch, max_size=4), nested, behind, value))
def test_a_helper_computes_the_same(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = repaired(Path(folder), text, "disable-helper")
        assert not found.errors
        assume(found.changed)
        before, after = load(text, "before", Path(folder)), load(found.after, "after", Path(folder))
        for k in (0, 1, 2):
            old, new = outcome(before, k), outcome(after, k)
            if isinstance(old, type) or isinstance(new, type):
                assert old is new, found.after
            else:
                torch.testing.assert_close(new[0], old[0], equal_nan=True, msg=found.after)
                torch.testing.assert_close(new[3], old[3], equal_nan=True, msg=found.after)
                assert len(new[1]) == len(old[1])
                torch.testing.assert_close(torch.as_tensor(new[2]), torch.as_tensor(old[2]), equal_nan=True)
