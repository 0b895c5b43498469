"""A program that builds a model, compiles it and calls it.

    python -m breakscan.survey.model_program MODULE:CALLABLE

The callable returns a module or function, and what it is called with: ``(model, arguments)``, where arguments are a
tuple, or a dictionary of keyword arguments; or ``(model, tuple, dictionary)``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

CALLS = 4
"""The second call shows whether the first one's graphs hold.  The others measure what breaks cost: one call may be
disturbed."""


def load(place: str) -> Any:
    """Return the object with the name ``MODULE:CALLABLE``, also of a module in the working directory."""
    module, _, name = place.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--argument")
    parser.add_argument("--mode", choices=["eval", "train"], default="eval")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype")
    options = parser.parse_args()

    import torch

    torch.manual_seed(0)
    build = load(options.build)
    model, *given = build(options.argument) if options.argument is not None else build()
    dtype = getattr(torch, options.dtype) if options.dtype else None
    if isinstance(model, torch.nn.Module):
        model = model.to(options.device, dtype).train(options.mode == "train")
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for arguments in given:
        if isinstance(arguments, Mapping):
            keywords.update((name, _moved(one, options.device, dtype)) for name, one in arguments.items())
        else:
            positional.extend(_moved(one, options.device, dtype) for one in arguments)
    compiled: Any = torch.compile(model, backend=options.backend)
    for _ in range(CALLS):
        if options.mode == "train":
            loss: Any = sum(one.float().sum() for one in _results(compiled(*positional, **keywords)))
            if getattr(loss, "requires_grad", False):
                loss.backward()
        else:
            with torch.no_grad():
                compiled(*positional, **keywords)


def _moved(value: Any, device: str, dtype: Any) -> Any:
    """A value with its tensors on a device; those of floating point in ``dtype``, if one is given."""
    if hasattr(value, "is_floating_point") and hasattr(value, "to"):
        return value.to(device, dtype) if dtype is not None and value.is_floating_point() else value.to(device)
    if type(value) in (list, tuple):
        return type(value)(_moved(one, device, dtype) for one in value)
    if type(value) is dict:
        return {name: _moved(one, device, dtype) for name, one in value.items()}
    return value


def _results(value: Any) -> Iterator[Any]:
    """The tensors of floating point in what a model returns."""
    if hasattr(value, "is_floating_point"):
        if value.is_floating_point():
            yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _results(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _results(one)


if __name__ == "__main__":
    main()
