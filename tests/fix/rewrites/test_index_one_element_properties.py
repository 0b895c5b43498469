"""Indices by 0-d tensors in random places: what the rewrite makes of them takes the same elements."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_cases import load, repaired
from test_keep_tensor_properties import outcome, same

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

OTHERS = st.sampled_from([":", "0", "-1", "1:", "None", "..."])
FORMS = st.sampled_from(
    [
        "return y[I] * 2",
        "return y[I].sum(-1)",
        "z = y[I]\n    return z + 1",
        "y[I] = 0.5\n    return y",
        "y[I] += 1\n    return y",
    ]
)
INDEX = st.sampled_from(["i.sum()", "i.argmax()", "-i.argmax()", "i.sum() - 1", "i[1:].argmin() + 1"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(OTHERS, max_size=2), st.lists(OTHERS, max_size=2), INDEX, FORMS, st.integers(0, 2))
def test_the_same_elements(
    tmp_path: Path, front: list[str], back: list[str], index: str, form: str, value: int
) -> None:
    if [*front, *back].count("...") > 1:
        return
    body = form.replace("I", ", ".join([*front, index, *back]))
    text = f"import torch\n\n\ndef f(x: torch.Tensor, i: torch.Tensor):\n    y = x.sin()\n    {body}\n"
    found = repaired(tmp_path, text, "index-one-element")
    if not found.changed:
        return
    arguments = torch.randn(3, 3, 3), torch.tensor([0, value, 0])
    before, after = load(text, "before", tmp_path), load(found.after, "after", tmp_path)
    assert same(outcome(before, arguments), outcome(after, arguments)), found.after
