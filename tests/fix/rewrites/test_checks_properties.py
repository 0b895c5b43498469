"""Random checks and tests of tensors: what is made of them fails where they fail, and gives what they give."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_cases import load, outcome, repaired

pytestmark = pytest.mark.torch
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

ATOMS = st.sampled_from(
    [
        "(x > 1).any()",
        "(x < 0).all()",
        "torch.isnan(x).any()",
        "x.sum() > 0",
        "x.min() <= -1",
        "x.sum()",
        "torch.any(x == y)",
        "torch.equal(x, y)",
        "any((v > 1).any() for v in (x, y))",
    ]
)
STATIC = st.sampled_from(["flag", "x.dim() == 1", "torch.is_complex(x)", "y is None"])


def joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def both(one: str, word: str, other: str) -> str:
        return f"({one} {word} {other})"

    return st.one_of(
        parts.map(lambda one: f"(not {one})"),
        st.builds(both, parts, st.sampled_from(["and", "or"]), parts),
        st.builds(both, STATIC, st.sampled_from(["and", "or"]), parts),
    )


TESTS = st.recursive(ATOMS, joined, max_leaves=4)
ELEMENTS = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, float("nan")]), min_size=3, max_size=3)
HEAD = "import torch\n\n\ndef f(x: torch.Tensor, y: torch.Tensor, flag: bool = True):\n"


def as_if_compiled(text: str) -> str:
    """The text as compiled code runs it, where nothing breaks the graph."""
    return text.replace("torch.compiler.is_compiling()", "True")


@given(test=TESTS, one=ELEMENTS, other=ELEMENTS)
@QUICK
def test_a_guard_fails_where_it_did(test: str, one: list[float], other: list[float]) -> None:
    import torch

    text = HEAD + f'    if {test}:\n        raise ValueError(f"bad: {{x}}")\n    return x + y\n'
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        after = repaired(folder, text, "assert-async").after
        before, eager = load(text, "before", folder), load(after, "after", folder)
        compiled = load(as_if_compiled(after), "compiled", folder)
        for flag in (True, False):
            arguments: tuple[Any, ...] = (torch.tensor(one), torch.tensor(other), flag)
            old = outcome(before, arguments)
            assert outcome(eager, arguments).raised is old.raised
            assert (outcome(compiled, arguments).raised is None) is (old.raised is None), after


@given(test=TESTS, one=ELEMENTS, other=ELEMENTS)
@QUICK
def test_an_assert_fails_where_it_did(test: str, one: list[float], other: list[float]) -> None:
    import torch

    text = HEAD + f'    assert {test}, f"bad: {{x}}"\n    return x + y\n'
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = load(text, "before", folder)
        eager = load(repaired(folder, text, "assert-async").after, "after", folder)
        for flag in (True, False):
            arguments: tuple[Any, ...] = (torch.tensor(one), torch.tensor(other), flag)
            assert outcome(eager, arguments).raised is outcome(before, arguments).raised
