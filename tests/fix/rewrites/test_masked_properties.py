"""Random programs that select elements by a mask compute the same after the rewrite."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cases import load, repaired

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

MASKS = ["x > 0", "~(x > 0.5)", "(x > -1) & (x < 1)", "torch.isfinite(x)", "x != x.max()", "(x * 2).abs() <= 1"]
LINEAR = ["{0}", "-{0}", "{0} * 2.5", "{0} + {1}", "{0} - 2 * {1}", "({0} - {1}) / 4"]
OTHERS = [
    "{0} * {1}",
    "{0}.abs()",
    "({0} - {1}) ** 2",
    "torch.exp({0})",
    "{0}.clamp(-1.0, 1.0)",
    "torch.where({0} > 0, {0}, {1})",
]
ENDS = ["sum()", "mean()", "sum(dtype=torch.float64)", "max()", "min()", "amax()"]
VALUES = st.floats(-2, 2, width=32) | st.sampled_from([0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan")])


@st.composite
def arguments(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two tensors of one shape, empty ones and ones of no dimension among them."""
    shape = draw(st.sampled_from([(), (0,), (1,), (5,), (3, 3), (2, 0), (2, 1, 3)]))
    size = int(torch.Size(shape).numel())
    lists = st.lists(VALUES, min_size=size, max_size=size)
    x, y = torch.tensor(draw(lists)).reshape(shape), torch.tensor(draw(lists)).reshape(shape)
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    return x.to(dtype), y.to(dtype)


@cache
def both(text: str, rewrite: str) -> tuple[Any, Any, bool]:
    """The function before and after a rewrite, and whether the rewrite is safe."""
    with tempfile.TemporaryDirectory() as folder:
        found = repaired(Path(folder), text, rewrite)
        assert found.changed, found.refused
        before, after = load(text, "before", Path(folder)), load(found.after, "after", Path(folder))
        return before, after, all(one.difference is None for one in found.applied)


def result(function: Any, given: tuple[Any, ...], safe: bool) -> Any:
    """The result of a call, its arguments afterwards, and the gradients where it is safe; None where it raises."""
    leaves = [one.clone().requires_grad_() for one in given]
    try:
        out, *rest = function(*(leaf * 1 for leaf in leaves))
    except (RuntimeError, IndexError):
        return None
    gradients: tuple[Any, ...] = ()
    if out.requires_grad and safe:
        gradients = torch.autograd.grad(out.sum(), leaves, materialize_grads=True)
    return out.detach(), [one.detach() for one in rest], gradients


def compare(text: str, rewrite: str, given: tuple[Any, Any], raises: bool = False) -> None:
    before, after, safe = both(text, rewrite)
    old, new = result(before, given, safe), result(after, given, safe)
    if old is None:
        assert raises or new is None
        return
    assert new is not None
    close = torch.testing.assert_close
    close(new[0], old[0], equal_nan=True, check_stride=False)
    close(new[1], old[1], equal_nan=True, check_stride=False)
    close(new[2], old[2], equal_nan=True)


def program(*lines: str) -> str:
    return "\n    ".join(["import torch\n\n\ndef f(x: torch.Tensor, y: torch.Tensor):", *lines, ""]).rstrip() + "\n"


@settings(max_examples=20, deadline=None)
@given(
    arguments(),
    st.sampled_from(MASKS),
    st.sampled_from([*LINEAR, *OTHERS]),
    st.sampled_from(["torch.zeros_like(x)", "x.clone()", "x", "x * 1.0"]),
    st.sampled_from(["", "second = out[:1]", "kept = [out]", "torch.relu(out)"]),
)
def test_updates(given: tuple[Any, Any], mask: str, value: str, made: str, use: str) -> None:
    picked = value.format("x[on]", "y.mul(x)[on]") if made != "x" else value.format("out[on]", "x[on]")
    lines = [f"on = {mask}", f"out = {made}", *([use] if use else []), f"out[on] = {picked}"]
    end = {"second = out[:1]": "second", "kept = [out]": "kept[0]"}.get(use, "x")
    if given[0].ndim == 0 and use.startswith("second"):
        end = "x"
        lines.remove(use)
    compare(program(*lines, f"return out, x, y, {end}"), "masked-update", given)


@settings(max_examples=15, deadline=None)
@given(
    arguments(),
    st.sampled_from(MASKS),
    st.sampled_from(["+=", "-=", "*=", "/="]),
    st.sampled_from(["1.5", "-2", "x.sum()", "y.mul(x)[on]", "(x[on] - 2 * x[on])"]),
    st.sampled_from(["torch.ones_like(x)", "x.clone()", "x"]),
)
def test_updates_in_place(given: tuple[Any, Any], mask: str, operator: str, value: str, made: str) -> None:
    lines = [f"on = {mask}", f"out = {made}", f"out[on] {operator} {value}", "return out, x, y"]
    compare(program(*lines), "masked-update", given)


@settings(max_examples=20, deadline=None)
@given(arguments(), st.sampled_from(MASKS), st.sampled_from([*LINEAR, *OTHERS]), st.sampled_from(ENDS))
def test_reductions(given: tuple[Any, Any], mask: str, value: str, end: str) -> None:
    picked = value.format("z[on]", "(y * x.sin())[on]")
    text = program("z = x.sin()", f"on = {mask}", f"return ({picked}).{end}, x, y")
    compare(text, "masked-reduction", given, raises=True)
