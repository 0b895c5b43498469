"""Writes a shrunk program as a case of ``tests/fix/rewrites/cases/``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.rewrite_fuzzer.inputs import arguments
from benchmarks.rewrite_fuzzer.shrinking import Shrunk


def input_expression(given: Sequence[Tensor]) -> str:
    """An expression that makes a pair of inputs again: a tuple, with the layout, and what the two share."""
    x, y = given
    if x is y:
        return f"((x := {_tensor(x)}), x)"
    if x.numel() and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr():
        shared = _plain(_whole(x))
        return f"((s := {shared}){_view(x)}, s{_view(y)})"
    return f"({_tensor(x)}, {_tensor(y)})"


def _tensor(tensor: Tensor) -> str:
    plain = _plain(tensor) if tensor.is_contiguous() else _plain(_whole(tensor)) + _view(tensor)
    if isinstance(tensor, torch.nn.Parameter):
        return f"torch.nn.Parameter({plain})"
    if tensor.requires_grad:
        return f"{plain}.requires_grad_()" if tensor.is_leaf else f"({plain}.requires_grad_() * 1)"
    return plain


def _plain(tensor: Tensor) -> str:
    values = str(tensor.tolist()).replace("nan", 'float("nan")').replace("inf", 'float("inf")')
    usual = (torch.bool, torch.int64) if tensor.numel() and not tensor.is_floating_point() else (torch.float32,)
    made = f"torch.tensor({values})" if tensor.dtype in usual else f"torch.tensor({values}, dtype={tensor.dtype})"
    return made if tensor.numel() else f"{made}.reshape({tuple(tensor.shape)})"


def _whole(tensor: Tensor) -> Tensor:
    """All elements of the storage of a tensor."""
    plain = tensor.detach()
    return plain.as_strided((plain.untyped_storage().nbytes() // plain.element_size(),), (1,), 0)


def _view(tensor: Tensor) -> str:
    return f".as_strided({tuple(tensor.shape)}, {tensor.stride()}, {tensor.storage_offset()})"


def case(shrunk: Shrunk, name: str) -> str:
    """The section of a case. It expects that the rewrite declines, which fails until it does."""
    shown = {one.inputs: one for one in reversed(shrunk.found.faults)}
    given = dict(arguments())
    notes = [
        f"{one.kind}, {label}: `{one.before[:60]}` before, `{one.after[:60]}` after" for label, one in shown.items()
    ]
    inputs = ", ".join(input_expression(given[label]) for label in shown)
    return "\n".join(
        [
            f"## {name}",
            *("```python before", shrunk.text.strip("\n"), "```"),
            *("```text declines", "```"),
            *("```python inputs", f"[{inputs}]", "```"),
            *notes,
            "",
        ]
    )


def write_case(folder: Path, rewrite: str, text: str) -> Path:
    """Appends a case to the file of its rewrite, which is made if there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{rewrite}.md"
    before = path.read_text(encoding="utf-8") if path.exists() else f"# {rewrite}\n"
    path.write_text(f"{before.rstrip()}\n\n{text}", encoding="utf-8")
    return path
