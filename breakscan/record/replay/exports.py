"""Exports an example with ``torch.export.export`` and rules on that."""

from __future__ import annotations

import random
import sys
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any

from breakscan.model.findings import Mode, Place, Verdict
from breakscan.record.hooks.exporting import exported_program, in_own_process
from breakscan.record.parsers.break_text import parse_causes
from breakscan.record.replay.loading import ReplayError, check_runs, loaded
from breakscan.rulebook.document import Example, Rule
from breakscan.rulebook.ledger import Ruling

_SEEDS = range(1, 9)
"""Enough that a number which is drawn while exporting is not drawn again each time."""


def rulings_on_export(rule: Rule, example: Example) -> dict[tuple[Mode, Place], Ruling]:
    """The rulings on a plain and on a strict export of an example.

    Raises ReplayError for an example that fails without the compiler, or whose export crashes the process.
    """
    try:
        return {
            (mode, Place.PLAIN): in_own_process(partial(_ruling_on_export, rule, example, mode))
            for mode in (Mode.EXPORT, Mode.EXPORT_STRICT)
        }
    except BrokenProcessPool as error:
        where = f"{rule.path}:{example.line}: {example.label}"
        raise ReplayError(f"{where} cannot be exported: the process crashes") from error


def _ruling_on_export(rule: Rule, example: Example, mode: Mode) -> Ruling:
    """Whether ``f`` can be exported, and whether the program then gives what ``f`` gives with the same seeds.

    Only the first call counts: an exported program holds for the sizes that it was exported with.
    """
    with loaded(rule, example, Place.PLAIN) as (function, calls):
        check_runs(rule, example, function, calls[:1])
    with loaded(rule, example, Place.PLAIN) as (function, calls):
        try:
            _seed(0)
            exported = exported_program(function, calls[0], strict=mode is Mode.EXPORT_STRICT)
        except Exception as error:
            gb = (cause.gb_id for cause in parse_causes(str(error)) if cause.gb_id)
            return Ruling(Verdict.RAISES, tuple(dict.fromkeys(gb)))
    for seed in _SEEDS:
        with loaded(rule, example, Place.PLAIN) as (function, calls):
            _seed(seed)
            expected = function(*calls[0])
        with loaded(rule, example, Place.PLAIN) as (_, calls):
            _seed(seed)
            try:
                result = exported(*calls[0])
            except Exception:
                return Ruling(Verdict.RAISES)
        if not _same(result, expected):
            return Ruling(Verdict.WRONG)
    return Ruling(Verdict.COMPILES)


def _seed(seed: int) -> None:
    import torch

    torch.manual_seed(seed)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)


def _same(one: Any, other: Any) -> bool:
    import torch

    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        try:
            plain = (each.as_subclass(torch.Tensor) for each in (one, other))  # each load has its own classes
            torch.testing.assert_close(*plain, equal_nan=True, check_device=False)
        except (AssertionError, RuntimeError):  # a fake tensor that got into the program cannot be compared
            return False
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return bool(one.keys() == other.keys()) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
