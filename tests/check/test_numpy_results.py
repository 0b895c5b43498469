"""Results of NumPy in traced code: a tensor, or a number that Dynamo may or may not know."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked import breaks, found

from breakscan.rulebook.torch_facts.table import OfNumbers, Returned, numpy_function

PROGRAM = """
def f(x: torch.Tensor):
    y = x.sin()
    n = y.shape[0]
    a = y.numpy()
    {use}
    return y.cos()
"""
BROKEN = {
    "r = int(np.prod(y.shape))": "BRK203",
    "r = y.view(int(np.prod(y.shape)))": "BRK203",
    "r = np.prod(y.shape).item()": "BRK201",
    "r = np.ceil(y.shape[0] / 2).astype('int').item()": "BRK201",
    "r = int(np.floor(n / 2).astype(int))": "BRK203",
    "r = float(np.mean([1, 2]))": "BRK202",
    "r = int(np.abs(n))": "BRK203",
    "y = y + 1 if np.sqrt(n) > 3 else y": "BRK103",
    "y = y + 1 if np.max(y.shape) > 3 else y": "BRK103",
    "y = y + 1 if a.sum() > 0 else y": "BRK103",
    "r = bool(np.any(a > 0))": "BRK204",
    "r = np.sqrt(n).tolist()": "BRK205",
    "r = int(a.astype(np.float64).mean())": "BRK203",
    "r = not np.prod(y.shape)": "BRK106",
    "r = np.nanmean(a)": "BRK414",
    "r = y[: np.prod(y.shape)]": "BRK211",
    "y = y[np.argmax([1, 2]) :]": "BRK211",
    "r = np.random.permutation(4)": "BRK411",
}
COMPILED = [
    "r = int(np.ceil(y.shape[0] / 2))",
    "r = int(np.sqrt(n))",
    "r = y[: int(np.sqrt(n) * 2)]",
    "r = float(np.log2(8) + 1)",
    "r = y / np.sqrt(n)",
    "r = y * np.prod(y.shape)",
    "r = np.maximum(a, 0.0).sum(axis=0)",
    "r = np.sqrt(n).astype(np.float32)",
    "r = a.size + 1 if a.size > 3 else 0",
]


@pytest.mark.parametrize("use", BROKEN)
def test_what_needs_the_number_is_found(use: str, tmp_path: Path) -> None:
    assert found(PROGRAM.format(use=use), tmp_path) == {(6, BROKEN[use])}


@pytest.mark.parametrize("use", COMPILED)
def test_what_dynamo_computes_is_not_found(use: str, tmp_path: Path) -> None:
    assert not found(PROGRAM.format(use=use), tmp_path)


@pytest.mark.torch
@pytest.mark.parametrize("use", [*BROKEN, *COMPILED])
def test_the_compiler_agrees(use: str, tmp_path: Path) -> None:
    assert breaks(PROGRAM.format(use=use), tmp_path) is (use in BROKEN)


def test_the_table() -> None:
    root, product, absolute, interpolation = (
        numpy_function("2.13", name) for name in ("sqrt", "prod", "abs", "interp")
    )
    assert root is not None
    assert product is not None
    assert absolute is not None
    assert interpolation is not None
    assert root.of_integers is OfNumbers.KNOWN
    assert absolute.of_integers is OfNumbers.READ
    assert absolute.of_floats is OfNumbers.KNOWN
    assert product.whole
    assert product.dtype_class("bool") == "int"
    assert interpolation.returned is Returned.UNTRACED


ONLY_NUMPY = """
def table(size):
    grid = np.arange(size)
    if np.any(grid > 3):
        grid = grid + 1
    return grid
"""


def test_a_function_that_only_has_arrays_could_be_compiled(tmp_path: Path) -> None:
    assert found(ONLY_NUMPY + "\n\ndef f(x):\n    return x\n", tmp_path) == {(4, "BRK101")}


@pytest.mark.parametrize("use", ["r = a[np.where(a > 0)[0][0]]", "a[np.where(a > 0)[0][0]] = 1.0"])
def test_where_with_a_condition_alone_gives_indices(use: str, tmp_path: Path) -> None:
    assert found(PROGRAM.format(use=use), tmp_path) == {(6, "BRK302"), (6, "BRK210")}
