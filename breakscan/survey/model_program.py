"""A program that builds a model, compiles it and calls it.

    python -m breakscan.survey.model_program MODULE:CALLABLE

The callable returns a module or function, and what it is called with: ``(model, arguments)``, where arguments are a
tuple, or a dictionary of keyword arguments; or ``(model, tuple, dictionary)``."""

import argparse
import importlib
import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import distributions
from typing import Any

CALLS = 4  # the second shows if the first one's graphs hold, the others costs: one may be disturbed


def load(place: str) -> Any:
    """Return the object with the name ``MODULE:CALLABLE``, also of a module in the working directory."""
    module, _, name = place.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def packages() -> tuple[str, dict[str, str]]:
    """The version of Python, and those of the installed packages, by their names in small letters."""
    versions: dict[str, str] = {}
    for distribution in distributions():
        if name := distribution.metadata["Name"]:
            versions.setdefault(name.lower(), distribution.version)
    return platform.python_version(), versions


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
    from torch.utils._pytree import tree_leaves, tree_map

    torch.manual_seed(0)
    build = load(options.build)
    model, *given = build(options.argument) if options.argument is not None else build()
    dtype = getattr(torch, options.dtype) if options.dtype else None
    if isinstance(model, torch.nn.Module):
        model = model.to(options.device, dtype).train(options.mode == "train")

    def is_floating(value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.is_floating_point()

    def moved(value: Any) -> Any:
        return value.to(options.device, dtype if is_floating(value) else None) if hasattr(value, "to") else value

    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for arguments in given:
        if isinstance(arguments, Mapping):
            keywords.update((name, tree_map(moved, one)) for name, one in arguments.items())
        else:
            positional.extend(tree_map(moved, one) for one in arguments)
    compiled: Any = torch.compile(model, backend=options.backend)
    for _ in range(CALLS):
        # ``tune`` compares what names hold at the end of a step.
        with torch.set_grad_enabled(options.mode == "train"):
            returned = compiled(*positional, **keywords)
        if options.mode == "train":
            loss: Any = sum(one.float().sum() for one in filter(is_floating, tree_leaves(returned)))
            if getattr(loss, "requires_grad", False):
                loss.backward()


if __name__ == "__main__":
    main()
