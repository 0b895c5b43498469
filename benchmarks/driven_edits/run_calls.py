"""``python -m benchmarks.driven_edits.run_calls REQUEST OUTPUT``: the outcomes of a driver's calls, in this process."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import pickle
import sys
import time
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from benchmarks.driven_edits.variants import varied
from benchmarks.rewrite_fuzzer.comparing import time_limit
from benchmarks.rewrite_fuzzer.outcomes import Outcome, describe_input, outcome_of_calls, unsigned_zeros, values

SECONDS_OF_A_CALL = 10


@dataclass(frozen=True)
class Request:
    """What to run: calls of a driver (None: all) in each variant, until ``seconds`` of CPU time have passed."""

    driver: str
    files: tuple[str, ...]
    """The files whose code is observed."""
    variants: tuple[str, ...]
    seconds: float
    calls: frozenset[str] | None = None
    before: tuple[str, ...] = ()
    """Modules that the driver needs and does not import."""


@dataclass(frozen=True)
class Ran:
    """The outcome of one call, and the code of the observed files that it entered: file, first and last line."""

    outcome: Outcome
    entered: frozenset[tuple[str, int, int]]


class K(dict[str, Any]):
    """The keyword arguments of a call."""


def jobs_of(driver: str) -> list[tuple[str, Any, bool]]:
    """The calls of a driver: a name, a function that builds the call, and whether it runs with gradients."""
    jobs: list[tuple[str, Any, bool]] = []
    common = types.ModuleType("common")
    common.__dict__.update(JOBS=jobs, K=K, torch=torch, nn=nn, main=lambda *given, **named: None)
    common.__dict__.update(J=lambda name, build, grad=False: jobs.append((name, build, grad)))
    common.__dict__.update(os=importlib.import_module("os"), sys=sys)
    sys.modules["common"] = common
    spec = importlib.util.spec_from_file_location("driver", driver)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return jobs


def run_call(build: Any, gradients: bool, variant: str, files: tuple[str, ...]) -> Ran | None:
    """None if the call cannot be built."""
    torch.manual_seed(0)
    try:
        function, *rest = build()
        named = dict(rest.pop()) if rest and isinstance(rest[-1], K) else {}
        rest, named = varied((rest, named), variant)
    except Exception:
        return None
    given = [one for one in tree_leaves((rest, named)) if isinstance(one, Tensor)]
    for one in given:
        if one.requires_grad and not one.is_leaf:
            one.retain_grad()
    entered: set[CodeType] = set()
    with torch.set_grad_enabled(gradients or "gradients" in variant):
        outcome = outcome_of_calls(lambda: function(*rest, **named), given, files, entered)
        for place, one in enumerate(given):
            describe_input(outcome, str(place), one)
        for place, module in enumerate(_modules(function)):
            for name, one in module.state_dict(keep_vars=True).items():
                if isinstance(one, Tensor):
                    outcome[f"state {name} of model {place}"] = values(one)
                    grad = one.grad if one.is_leaf else None
                    outcome[f"gradient of {name} of model {place}"] = None if grad is None else unsigned_zeros(grad)
    return Ran({kind: _short(one) for kind, one in outcome.items()}, frozenset(map(_lines, entered)))


def _modules(function: Any) -> Iterator[nn.Module]:
    """The models that a callable holds."""
    cells = getattr(function, "__closure__", None) or ()
    held = [getattr(function, "__self__", function), *(one.cell_contents for one in cells)]
    yield from (one for one in held if isinstance(one, nn.Module))


def _lines(code: CodeType) -> tuple[str, int, int]:
    return code.co_filename, code.co_firstlineno, max(line for _, _, line in code.co_lines() if line is not None)


def _short(value: Any) -> Any:
    """Many values as a digest, with the first ones to show."""
    if not isinstance(value, list):
        return value
    if len(value) > 40:
        return [*map(_short, value[:4]), hashlib.sha1(repr(value).encode()).hexdigest()]
    return [_short(one) for one in value]


def main() -> None:
    request: Request = pickle.loads(Path(sys.argv[1]).read_bytes())
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name in request.before:
        importlib.import_module(name)
    jobs = [one for one in jobs_of(request.driver) if request.calls is None or one[0] in request.calls]
    start = time.process_time()
    found: dict[tuple[str, str], Ran] = {}
    for variant in request.variants:
        for name, build, gradients in jobs:
            if time.process_time() - start > request.seconds:
                break
            try:
                with time_limit(SECONDS_OF_A_CALL):
                    ran = run_call(build, gradients, variant, request.files)
            except KeyboardInterrupt:
                continue
            if ran is not None:
                found[name, variant] = ran
    Path(sys.argv[2]).write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    # The records are pickled by the name of their module.
    from benchmarks.driven_edits.run_calls import main as run

    run()
