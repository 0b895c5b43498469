"""Shapes that the input of a module may have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Shape = tuple[int, ...]
_LENGTH = 16
_SIDES = (16, 32, 64)
_USUAL: tuple[Shape, ...] = (
    (2, 3, 32, 32),
    (2, 1, 32, 32),
    (2, 1, 16, 16, 16),
    (2, 3, 3),
    (2, 16, 3),
    (2, 4, 4),
    (16,),
    (2, 2, 16, 8),
    (2, 3, 64, 64),
    (2, 3, 224, 224),
    (),
)


def shapes(module: Any, width: int, numbers: Iterable[int]) -> list[Shape]:
    """The likeliest first: what the first layer of a module takes, ``numbers`` that errors spoke of, and what is
    usual."""
    found = [*_of_first_layer(module)]
    for number in numbers:
        found += [(2, _LENGTH, number), (2, number), (2, number, 16, 16), (2, number, _LENGTH)]
        found += [(2, 3, number, number), (2, 1, number, number)] if 8 <= number <= 512 else []
    found += [*_of_width(width), *_USUAL]
    return list(dict.fromkeys(found))


def _of_width(width: int) -> tuple[Shape, ...]:
    return (2, width), (2, _LENGTH, width), (2, width, 16, 16), (2, width, _LENGTH), (2, width, 8, 8, 8)


def _of_first_layer(module: Any) -> Iterator[Shape]:
    """What the first of its layers takes, by the weight of it."""
    import torch

    for layer in module.modules() if isinstance(module, torch.nn.Module) else ():
        weight = next(iter(layer.parameters(recurse=False)), None)
        if weight is None:
            continue
        if torch.nn.parameter.is_lazy(weight):
            return
        if isinstance(layer, torch.nn.Embedding):
            yield (2, _LENGTH)
        elif weight.dim() > 2:
            channels = getattr(layer, "in_channels", weight.shape[1])
            yield from ((2, channels, *(side,) * (weight.dim() - 2)) for side in _SIDES)
        elif weight.dim() == 2:
            yield from ((2, _LENGTH, weight.shape[1]), (2, weight.shape[1]), (2, 4, 4, weight.shape[1]))
        elif weight.dim() == 1:
            yield from _of_width(weight.shape[0])
        return
