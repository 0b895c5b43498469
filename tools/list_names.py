"""Adds what can be called in some namespaces of the installed torch and NumPy to
``breakscan/rulebook/torch_facts/data/names/callables.json``.

``python -m tools.list_names``, run once with each supported torch; ``--new`` begins with an empty file.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import breakscan

FILE = Path(breakscan.__file__).parent / "rulebook/torch_facts/data/names/callables.json"
NAMESPACES = (
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "numpy.ndarray",
    "numpy.random",
    "torch",
    "torch.Tensor",
    "torch.amp",
    "torch.autograd",
    "torch.compiler",
    "torch.cuda",
    "torch.distributed",
    "torch.fft",
    "torch.jit",
    "torch.linalg",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.random",
    "torch.sparse",
    "torch.special",
    "torch.utils.checkpoint",
)


def callables(namespace: str) -> set[str]:
    """The callables there, without special methods."""
    names = set()
    thing = named(namespace)
    for name in dir(thing):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = getattr(thing, name, None)
        if callable(value) and not name.startswith("__"):
            names.add(name)
    return names


def named(dotted: str) -> Any:
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError:
        owner, _, name = dotted.rpartition(".")
        return getattr(importlib.import_module(owner), name)


def main() -> None:
    known = {} if "--new" in sys.argv else json.loads(FILE.read_text(encoding="utf-8"))
    made = {name: " ".join(sorted(callables(name) | set(known.get(name, "").split()))) for name in NAMESPACES}
    FILE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
