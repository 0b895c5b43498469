"""Numbers read out of tensors in random programs: what a safe rewrite makes of them computes the very same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_cases import load, repaired

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

STARTS = st.sampled_from(["x.sin()", "x.sigmoid()", "x.exp()", "x * 2", "-x", "x.abs()", "x", "x.float()", "x > 0"])
READS = st.sampled_from(
    [
        *(
            "y.sum().item()",
            "y.max().item()",
            "float(y.sum())",
            "float(y.mean())",
            "int(y.argmax())",
            "y.norm().item()",
        ),
        *("y.argmin().item()", "(y > 0).sum().item()", "bool((y > 0).any())", "int(y.sum())", "x.min().item()"),
        *("y.abs().max().cpu().item()", "w.sum().item()", "float(w.amax())", "y.any().item()"),
    ]
)
USES = st.sampled_from(
    [
        *("y * N", "N + y", "y / N", "y - N", "y > N", "torch.where(y > 0, y, N)", "y.clamp(max=N)", "y * -N"),
        *("torch.full((2,), N)", "y.masked_fill(y > 0, N)", "y * (N + 1)", "y * abs(N)", "y * max(N, 1.0)", "w * N"),
        *("y + x * N", "y.mul(N)", "torch.add(y, N)", "y.sum() * N", "y[:0] * N", "(y * N).sum()", "y**N", "y % N"),
        *("torch.where(y > 0, N, 0.0)", "y.clone().add_(N)", "y.new_full((2,), N)", "y[N]", "y[N] * 2", "y[:N]"),
    ]
)
DTYPES = st.sampled_from(["float32", "float64", "float16", "int64", "int32", "bool", "bfloat16", "uint8"])


def outcome(function: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call gives, with the gradients of its arguments, or the kind of its exception."""
    given = [one.clone().requires_grad_(one.is_floating_point()) for one in arguments]
    try:
        result = function(*given)
    except Exception as error:
        return ("raises", type(error))
    if isinstance(result, torch.Tensor) and result.requires_grad:
        result.double().sum().backward()
    gradients = tuple(one.grad for one in given if one.is_floating_point())
    return ("returns", result, gradients)


def same(one: Any, other: Any) -> bool:
    """Whether two results have the same types, dtypes, shapes and bits."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        alike = one.dtype == other.dtype and one.shape == other.shape
        return alike and torch.equal(one.detach().nan_to_num(7), other.detach().nan_to_num(7))
    return type(one) is type(other) and (one == other or (one != one and other != other))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STARTS, READS, USES, DTYPES, st.booleans(), st.integers(0, 4), st.integers(0, 99))
def test_safe_rewrites_change_nothing(
    tmp_path: Path, start: str, read: str, use: str, dtype: str, named: bool, length: int, seed: int
) -> None:
    lines = (
        [f"y = {start}"] + ([f"n = {read}"] if named else []) + [f"return {use.replace('N', 'n' if named else read)}"]
    )
    text = "import torch\n\n\ndef f(x: torch.Tensor, w: torch.Tensor):\n" + "".join(f"    {line}\n" for line in lines)
    found = repaired(tmp_path, text, "keep-tensor")
    if not found.changed or any(one.difference is not None for one in found.applied):
        return
    torch.manual_seed(seed)
    x = (torch.randn(length) * 3).to(getattr(torch, dtype))
    w = torch.randn(2, 1)
    before, after = load(text, "before", tmp_path), load(found.after, "after", tmp_path)
    assert same(outcome(before, (x, w)), outcome(after, (x, w))), found.after
