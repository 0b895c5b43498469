"""Rewrites a program and runs both sides: what differs, and what of that no edit states."""

from __future__ import annotations

import re
import signal
import tempfile
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch

from benchmarks.rewrite_fuzzer.effects import CALLS, unstated
from benchmarks.rewrite_fuzzer.outcomes import RAISED, Outcome, difference_kinds, outcomes
from breakscan.fix.planner import WantedRewrites, repair_file
from breakscan.fix.result import FileRepair
from breakscan.fix.support.difference import effects_of
from breakscan.rulebook.config import load_settings


@dataclass(frozen=True)
class Fault:
    """A difference that no edit states, with the pair of inputs that shows it and what either side did."""

    inputs: str
    kind: str
    before: str
    after: str
    raised: tuple[tuple[str, ...], tuple[str, ...]]
    """The types of the exceptions of both calls, on each side."""

    @property
    def sort(self) -> tuple[object, ...]:
        """What is equal for two programs that fail in the same way on the same inputs."""
        return self.inputs, self.kind.split()[0], self.raised


@dataclass(frozen=True)
class Comparison:
    """What ``fix`` made of a program, and what then differs. ``after`` is empty if nothing was rewritten."""

    after: str = ""
    rewrites: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()
    differs: bool = False
    faults: tuple[Fault, ...] = ()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises KeyboardInterrupt in the block after so many seconds of CPU time."""
    signal.signal(signal.SIGPROF, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def repaired(text: str, *, unsafe: bool, only: str | None = None) -> FileRepair:
    """What ``fix`` makes of a text, with all rewrites or with one."""
    ids = None if only is None else frozenset({only})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(text, encoding="utf-8")
        settings = replace(load_settings(Path(folder), None, target_torch="2.13", no_cache=True), regions="all")
        return repair_file(path, (), settings, WantedRewrites(unsafe, soften=True, ids=ids))


def compare(text: str, *, unsafe: bool, only: str | None = None, inputs: Collection[str] | None = None) -> Comparison:
    """Compares a program with its rewritten text. ``inputs`` are names of pairs of arguments (None: all)."""
    torch.set_num_threads(1)
    _warm_up()
    repair = repaired(text, unsafe=unsafe, only=only)
    if not repair.changed:
        return Comparison()
    # The programs run on one device, in eager mode, and what is taken for a tensor is one.
    stated = [difference for one in repair.applied for difference in one.differences if difference.only is None]
    # Dynamo compiles anew for each pair of inputs, which takes long, and the programs are compared in eager mode. Only
    # `torch.cond`, which a rewrite puts in, is compiled as in eager mode.
    with torch._dynamo.config.patch(disable="torch.compile(" in text):
        before = outcomes(text, "before", inputs)
        after = outcomes(repair.after, "after", inputs, may_fail=True)
    differs, faults = False, []
    for label in before:
        kinds = difference_kinds(before[label], after[label])
        differs |= bool(kinds)
        effects = effects_of(stated, reads_gradients=_reads_gradients(text, kinds))
        raised = {call: (before[label][key], after[label][key]) for call in CALLS if (key := RAISED.format(call))}
        types = _exceptions(before[label]), _exceptions(after[label])
        for kind, (old, new) in unstated(kinds, effects, raised, reads_output="redirect_stdout(" in text).items():
            faults.append(Fault(label, kind, str(old), str(new), types))
    return Comparison(
        repair.after,
        tuple(sorted({one.rewrite for one in repair.applied})),
        tuple(sorted({one.difference for one in repair.applied if one.difference})),
        differs,
        tuple(faults),
    )


@cache
def _warm_up() -> None:
    """Imports what the first compiled call of a process imports, which warns once."""
    with warnings.catch_warnings(), torch._dynamo.config.patch(disable=True):
        warnings.simplefilter("ignore")
        torch.compile(torch.sin)(torch.ones(1))


def _reads_gradients(text: str, kinds: Collection[str]) -> bool:
    """Whether a program computes with gradients, or branches on whether a result requires one, and that differs."""
    asks = re.search(r"\.requires_grad\b(?!\s*=[^=])", text) and any(kind.startswith("requires_grad") for kind in kinds)
    return "autograd.grad(" in text or bool(asks)


def _exceptions(outcome: Outcome) -> tuple[str, ...]:
    return tuple(f"{key}: {value}" for key, value in outcome.items() if key.startswith("exception"))
