"""A call of a module that runs, and what may be tried to find one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

LARGEST = 80_000_000
"""Parameters of a model, at most."""


class TooLargeError(ValueError):
    """A model has more parameters than :data:`LARGEST`."""


@dataclass(frozen=True, slots=True)
class FoundCall:
    """What is called, and with what: a call that has run."""

    module: Any
    positional: tuple[Any, ...]
    keywords: Mapping[str, Any]


def run(module: Any, positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> FoundCall:
    """Calls a module, with copies of what is given, since it may change them."""
    import torch

    seed()
    with torch.no_grad():
        module(*copied(positional), **copied(dict(keywords)))
    return FoundCall(module, positional, keywords)


def seed() -> None:
    """The same random numbers for whatever is tried next."""
    import torch

    random.seed(0)
    torch.manual_seed(0)


def copied(value: Any) -> Any:
    """A value with tensors of its own, those in it too."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if type(value) in (list, tuple):
        return type(value)(copied(one) for one in value)
    if type(value) is dict:
        return {name: copied(one) for name, one in value.items()}
    return value


@contextmanager
def small_models() -> Iterator[None]:
    """Whatever makes a model with more parameters than :data:`LARGEST` raises TooLargeError meanwhile.

    They are counted as they come, so that no memory is filled.  On the device ``meta`` they would need none, but what a
    package keeps from one model for the next would be there as well.
    """
    from torch.nn.modules.module import register_module_parameter_registration_hook

    parameters = 0

    def count(module: Any, name: str, parameter: Any) -> None:
        nonlocal parameters
        numel = getattr(parameter, "numel", None)
        parameters += numel() if numel is not None and not _is_lazy(parameter) else 0
        if parameters > LARGEST:
            raise TooLargeError(f"it has over {LARGEST:,} parameters")

    handle = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        handle.remove()


def _is_lazy(parameter: Any) -> bool:
    from torch.nn.parameter import is_lazy

    return bool(is_lazy(parameter))
