"""The arguments that each program is called with: all dtypes, and values and layouts that are unusual."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

_LAST = torch.channels_last
DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
INFINITE = float("inf")


def _of(dtype: str, values: list[float]) -> Tensor:
    return torch.tensor(values).to(getattr(torch, dtype))


def arguments() -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    """Pairs ``(x, y)``, each made again, with a name."""
    for dtype in DTYPES:
        yield f"{dtype} positive", (_of(dtype, [1, 2, 3]), _of(dtype, [3, 1, 1]))
        yield f"{dtype} zero", (_of(dtype, [0, 0, 0]), _of(dtype, [1, 0, 1]))
    for dtype in ("float16", "float32", "float64", "int64"):
        yield f"{dtype} negative", (_of(dtype, [-1, -2, -3]), _of(dtype, [1, 2, 3]))
    nan = float("nan")
    yield "nan", (torch.tensor([1.0, nan, 2.0]), torch.tensor([nan, 1.0, 0.0]))
    yield "infinite", (torch.tensor([INFINITE, -INFINITE, 0.0]), torch.tensor([1.0, INFINITE, 2.0]))
    yield "signed zero", (torch.tensor([0.0, -0.0, 0.0]), torch.tensor([-0.0, 0.0, -0.0]))
    yield "large", (torch.tensor([3e38, -3e38, 1.0]), torch.tensor([6e4, 7e4, 1.0]))
    yield "empty", (torch.ones(0), torch.ones(0))
    yield "empty integers", (torch.ones(0, dtype=torch.int64), torch.ones(3))
    yield "0-d", (torch.tensor(2.0), torch.tensor(-1.0))
    yield "0-d beside 1-d", (torch.tensor(2.0), torch.ones(3))
    yield "one element", (torch.ones(1), -torch.ones(1))
    yield "2-d", (torch.arange(9.0).reshape(3, 3) - 4, torch.ones(3, 3))
    yield "2-d transposed", (torch.arange(6.0).reshape(2, 3).t(), torch.ones(3, 2))
    yield "other shapes", (torch.ones(3), torch.ones(2))
    yield "broadcast", (torch.ones(3, 1), -torch.ones(3))
    yield "mixed dtypes", (torch.ones(3), torch.ones(3, dtype=torch.float64))
    yield "integers beside floats", (torch.arange(3), torch.tensor([0.5, 1.5, -1.0]))
    yield "bool beside floats", (torch.tensor([True, False, True]), torch.ones(3))
    yield "views", (torch.arange(6.0)[::2], torch.arange(6.0)[1::2])
    base = torch.arange(4.0)
    yield "shared storage", (base[:3], base[1:])
    same = torch.arange(3.0)
    yield "a view beside its base", (base, base.view(2, 2))
    yield "one tensor twice", (same, same)
    yield "gradients", (torch.tensor([1.0, -2.0, 3.0]).requires_grad_(), torch.ones(3).requires_grad_())
    yield "gradients, negative", (torch.tensor([-1.0, -2.0, -3.0]).requires_grad_(), torch.ones(3))
    yield "gradients, zero", (torch.zeros(3).requires_grad_(), torch.zeros(3).requires_grad_())
    yield "parameters", (torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(-torch.ones(3)))
    yield "gradients, infinite", (torch.tensor([INFINITE, -INFINITE, 1.0]).requires_grad_(), torch.ones(3))
    yield "gradients, nan", (torch.tensor([nan, 1.0, -1.0]).requires_grad_(), torch.tensor([nan, 1.0, 2.0]))
    yield "gradients, large", (torch.tensor([3e38, 200.0, -200.0]).requires_grad_(), torch.tensor([1.0, -3e38, 2.0]))
    yield "gradients, 2-d transposed", (torch.arange(-3.0, 3.0).reshape(2, 3).t().requires_grad_(), torch.ones(3, 2))
    for dtype in ("float16", "float64"):
        yield f"gradients, {dtype}", (_of(dtype, [1, -2, 3]).requires_grad_(), _of(dtype, [2, 1, -1]).requires_grad_())
    yield "gradients of y", (torch.tensor([1.0, 2.0, -4.0]), torch.tensor([1.0, -2.0, 3.0]).requires_grad_())
    leaf = torch.tensor([2.0, -1.0, 0.5], requires_grad=True)
    yield "gradients, no leaves", (leaf * 2, leaf[:3])
    yield "gradients, 0-d", (torch.tensor(2.0).requires_grad_(), torch.tensor([1.0, 0.0, -1.0]).requires_grad_())
    yield "empty beside elements", (torch.ones(3), torch.ones(0))
    yield "empty integers beside elements", (torch.tensor([1, 2, 3]), torch.ones(0, dtype=torch.int64))
    yield "empty, 2-d", (torch.ones(0, 3), torch.ones(2, 0))
    yield "expanded", (torch.ones(1).expand(3), torch.tensor(2.0).expand(3))
    yield "expanded integers", (torch.tensor([2]).expand(3), torch.tensor([1]).expand(3))
    yield "expanded, 2-d", (torch.tensor([[1.0], [-2.0]]).expand(2, 3), torch.tensor([3, 1, 1]))
    yield "overlapping windows", (torch.arange(4.0).unfold(0, 3, 1), torch.tensor([1.0, -2.0, 0.0]).expand(2, 3))
    yield "integer views", (torch.arange(6)[::2], torch.arange(9).reshape(3, 3)[:, 0])
    yield "integers, 2-d transposed", (torch.arange(6).reshape(2, 3).t(), torch.ones(3, 2, dtype=torch.int64))
    yield "bools, 2-d transposed", (torch.tensor([[True, False], [True, True]]).t(), torch.ones(2, 2).bool())
    yield "0-d integers", (torch.tensor(2), torch.tensor([3, 1, 1]))
    yield "0-d bool", (torch.tensor(True), torch.tensor([True, False]))
    yield "largest", (torch.tensor([127, -128, 1], dtype=torch.int8), torch.tensor([255, 0, 1], dtype=torch.uint8))
    yield "large integers", (torch.tensor([2**53 + 1, 2**62, -1]), torch.tensor([2**53 + 1, 1, 0]))
    yield "large float16", (_of("float16", [6e4, -6e4, 1]), _of("float16", [6e4, 1, 0]))
    yield "one element, 2-d", (torch.ones(1, 1), torch.tensor([[-1.0]]))
    yield "one integer", (torch.tensor([1]), torch.tensor([2]))
    yield "4-d, channels last", (torch.arange(-4.0, 4.0).reshape(1, 2, 2, 2).contiguous(memory_format=_LAST),) * 2
