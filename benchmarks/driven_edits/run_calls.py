"""``python -m benchmarks.driven_edits.run_calls REQUEST OUTPUT``: the outcomes of a driver's calls, in this process."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import itertools
import pickle
import random
import sys
import time
import types
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from benchmarks.driven_edits.variants import varied, vary_models
from benchmarks.rewrite_fuzzer.comparing import time_limit
from benchmarks.rewrite_fuzzer.outcomes import (
    Line,
    Outcome,
    describe_input,
    outcome_of_calls,
    tracing,
    unsigned_zeros,
    values,
)

SECONDS_OF_A_CALL = 10


Label = tuple[str, str]
"""The name of a call and a variant of its inputs."""


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
    done: frozenset[Label] = frozenset()
    """What an earlier process ran."""
    skipped: frozenset[str] = frozenset()
    """Calls that ended an earlier process."""


@dataclass(frozen=True)
class Ran:
    """The outcome of one call, and the lines of the observed files that it executed, building included."""

    outcome: Outcome
    executed: frozenset[Line]


class Why(Enum):
    """Why there is no outcome."""

    NOT_BUILT = "not built"
    TOO_LONG = f"over {SECONDS_OF_A_CALL} seconds"
    CRASHED = "crashed"
    SKIPPED = "skipped after a crash"
    SAME = "the same inputs as another variant"
    NO_TIME = "no time left"


@dataclass(frozen=True)
class NotRun:
    """A call without an outcome."""

    why: Why
    detail: str = ""


class K(dict[str, Any]):
    """The keyword arguments of a call."""


def jobs_of(driver: str) -> list[tuple[str, Any, bool]]:
    """The calls of a driver: a name, a function that builds the call, and whether it runs with gradients."""
    jobs: list[tuple[str, Any, bool]] = []
    common = types.ModuleType("common")
    common.__dict__.update(JOBS=jobs, K=K, torch=torch, nn=nn, main=lambda *given, **named: None)
    common.__dict__.update(J=lambda name, build, grad=False: jobs.append((_free(name, jobs), build, grad)))
    common.__dict__.update(os=importlib.import_module("os"), sys=sys)
    sys.modules["common"] = common
    spec = importlib.util.spec_from_file_location("driver", driver)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    torch.manual_seed(0)
    spec.loader.exec_module(module)
    return jobs


def _free(name: str, jobs: Collection[tuple[str, Any, bool]]) -> str:
    """The name of a call, or one with a number behind it if another call has the name."""
    taken = {one for one, _, _ in jobs}
    names = itertools.chain([name], (f"{name} {number}" for number in itertools.count(2)))
    return next(one for one in names if one not in taken)


def run_call(build: Any, gradients: bool, variant: str, files: tuple[str, ...]) -> Ran | NotRun:
    """Builds a call and runs it, twice in a row."""
    torch.manual_seed(0)
    executed: set[Line] = set()
    try:
        with tracing(files, [], executed):
            function, *rest = build()
        named = dict(rest.pop()) if rest and isinstance(rest[-1], K) else {}
        models = list(_models(function, rest, named))
        if (changed := varied((rest, named), variant)) is None:
            return NotRun(Why.SAME)
        rest, named = changed
        vary_models(models, variant)
    except Exception as error:
        text = str(error).partition("\n")[0]
        return NotRun(Why.NOT_BUILT, f"{type(error).__name__}: {text}")
    given = [one for one in tree_leaves((rest, named)) if isinstance(one, Tensor)]
    for one in given:
        if one.requires_grad and not one.is_leaf:
            one.retain_grad()
    with torch.set_grad_enabled(gradients or "gradients" in variant):
        outcome = outcome_of_calls(lambda: function(*rest, **named), given, files, executed)
        for place, one in enumerate(given):
            describe_input(outcome, str(place), one)
        for place, model in enumerate(models):
            for name, one in model.state_dict(keep_vars=True).items():
                if isinstance(one, Tensor):
                    outcome[f"state {name} of model {place}"] = values(one)
                    grad = one.grad if one.is_leaf else None
                    outcome[f"gradient of {name} of model {place}"] = None if grad is None else unsigned_zeros(grad)
    return Ran({kind: _short(one) for kind, one in outcome.items()}, frozenset(executed))


def _models(function: Any, *arguments: Any) -> Iterator[nn.Module]:
    """The models that a callable holds, or is given."""
    cells = getattr(function, "__closure__", None) or ()
    bound = getattr(function, "__self__", function), getattr(function, "__defaults__", None)
    held = tree_leaves((bound, [one.cell_contents for one in cells], arguments))
    yield from dict.fromkeys(one for one in held if isinstance(one, nn.Module))


def _short(value: Any) -> Any:
    """Many values as a digest, with the first ones to show."""
    if not isinstance(value, list):
        return value
    if len(value) > 40:
        return [*map(_short, value[:4]), hashlib.sha1(repr(value).encode()).hexdigest()]
    return [_short(one) for one in value]


def run_calls(request: Request, answers: BinaryIO) -> None:
    """Writes each label before its call runs, so that a crash shows which call it was, and the outcome behind it.

    The order is mixed, so that what there is no time for is not always the same variants.
    """
    jobs = [one for one in jobs_of(request.driver) if request.calls is None or one[0] in request.calls]
    start = time.process_time()
    pairs = list(itertools.product(request.variants, jobs))
    random.Random(0).shuffle(pairs)
    for variant, (name, build, gradients) in pairs:
        label = name, variant
        if label in request.done:
            continue
        if name in request.skipped or time.process_time() - start > request.seconds:
            why = Why.SKIPPED if name in request.skipped else Why.NO_TIME
            _write(answers, (label, NotRun(why), 0.0))
            continue
        _write(answers, label)
        ran: Ran | NotRun = NotRun(Why.TOO_LONG)
        with contextlib.suppress(KeyboardInterrupt), time_limit(SECONDS_OF_A_CALL):
            ran = run_call(build, gradients, variant, request.files)
        _write(answers, (label, ran, time.process_time() - start))


def _write(answers: BinaryIO, record: object) -> None:
    pickle.dump(record, answers)
    answers.flush()


def main() -> None:
    request: Request = pickle.loads(Path(sys.argv[1]).read_bytes())
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name in request.before:
        importlib.import_module(name)
    with Path(sys.argv[2]).open("wb") as answers:
        run_calls(request, answers)


if __name__ == "__main__":
    # The records are pickled by the name of their module.
    from benchmarks.driven_edits.run_calls import main as run

    run()
