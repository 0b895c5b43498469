"""The program that ``verify_packages.py`` verifies: one call of a package, compiled, three times.

    python verify_packages_program.py FILE NAME BACKEND [--plain]

FILE is a driver (``JOBS`` of a module ``common`` beside it) or holds ``ROWS``; ``verify_packages.py`` says what these
are.  Each call has its own random inputs.  Unless ``--plain``, floating-point inputs require gradients, and the program
runs the backward pass if there is one.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

CALLS = 3


@dataclass(frozen=True, slots=True)
class Calls:
    """A callable, and the arguments of each call."""

    function: Callable[..., Any]
    cases: list[tuple[list[Any], dict[str, Any]]]

    def require_gradients(self) -> None:
        """Makes all floating-point inputs require gradients."""
        for leaf in tree_leaves(self.cases):
            if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
                leaf.requires_grad_()


def names_of(file: Path) -> list[str]:
    """The calls that a driver or a file of rows lists."""
    found = _loaded(file)
    return list(found.ROWS) if hasattr(found, "ROWS") else [name for name, _, _ in found.JOBS]


def calls_of(file: Path, name: str) -> Calls:
    """One of them, built as often as it is called: the callable is the first one."""
    found = _loaded(file)
    seed()
    if hasattr(found, "ROWS"):
        built = [found.ROWS[name]() for _ in range(CALLS)]
        return Calls(built[0][0], [([], inputs) for _, inputs in built])
    build = next(build for listed, build, _ in found.JOBS if listed == name)
    jobs = [found.call(build) for _ in range(CALLS)]
    return Calls(jobs[0][0], [(list(args), dict(kwargs)) for _, args, kwargs in jobs])


def seed() -> None:
    """All generators that packages draw from."""
    import numpy

    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)


def run(function: Callable[..., Any], calls: Calls, gradients: bool) -> int:
    """Returns for how many calls backward() ran."""
    backward = 0
    for args, kwargs in calls.cases:
        result = function(*args, **kwargs)
        ends = [one for one in tree_leaves(result) if isinstance(one, torch.Tensor) and one.requires_grad]
        if gradients and ends:
            torch.autograd.backward(ends, [torch.ones_like(one) for one in ends])
            backward += 1
    return backward


def _loaded(file: Path) -> Any:
    """The module with ``JOBS`` or ``ROWS``.  Drivers end with a call of ``common.main``, which is not for here."""
    sys.path.insert(0, str(file.parent))
    if (file.parent / "common.py").exists():
        import common

        common.main = lambda *_, **__: None
        common.JOBS.clear()
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with_gradients = sys.argv[4:] != ["--plain"]
    listed = calls_of(Path(sys.argv[1]), sys.argv[2])
    if with_gradients:
        listed.require_gradients()
    run(torch.compile(listed.function, backend=sys.argv[3]), listed, with_gradients)
