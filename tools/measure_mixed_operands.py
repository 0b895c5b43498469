"""Writes ``torch_facts/data/mixed/<version>.json``: which operands of different dtypes an operator refuses.

``python -m tools.measure_mixed_operands`` runs every operator whose result dtype comes from several operands on the
installed torch, with each dtype for the first operand and each dtype, or Python number, for all others.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import breakscan
from breakscan.model.torch_versions import minor_version
from breakscan.rulebook.torch_facts.operators import Operator, measured_versions, names, operator
from breakscan.rulebook.torch_facts.promotion import COMPLEX, DTYPES

FOLDER = Path(breakscan.__file__).parent / "rulebook/torch_facts/data/mixed"
REAL = [dtype for dtype in DTYPES if dtype not in COMPLEX]
NUMBERS = {"number:bool": True, "number:int64": 1, "number:float32": 1.5}


def values(kinds: list[str]) -> list[Any]:
    made = {dtype: torch.ones(2, 2, dtype=getattr(torch, dtype)) for dtype in REAL}
    return [NUMBERS[kind] if kind in NUMBERS else made[kind] for kind in kinds]


def function(name: str) -> Callable[..., Any] | None:
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    return found or getattr(torch.Tensor, name, None)


def runs(known: Operator, called: Callable[..., Any], first: str, others: str) -> bool:
    kinds = [first if place == 0 else others for place in range(len(known.promotes or ()))]
    # The condition of ``where``.
    masks = [torch.ones(2, 2, dtype=torch.bool) for _ in range(min(known.promotes or (0,)))]
    try:
        called(*masks, *values(kinds))
    except Exception:
        return False
    return True


def pairs() -> Iterator[tuple[str, str]]:
    kinds = [*REAL, *NUMBERS]
    for first in kinds:
        for others in kinds:
            if first != others and not (first in NUMBERS and others in NUMBERS):
                yield first, others


def refused(version: str) -> dict[str, list[str]]:
    """For each operator, the pairs (``bool float32``) that it refuses.  Operators that refuse all are left out."""
    found = {}
    for name in sorted(names(version)):
        known, called = operator(version, name), function(name)
        if known is None or called is None or not known.promotes or len(known.promotes) < 2:
            continue
        bad = [f"{first} {others}" for first, others in pairs() if not runs(known, called, first, others)]
        if len(bad) < len(list(pairs())):
            found[name] = bad
    return found


def written(found: dict[str, list[str]]) -> str:
    """The file: each distinct list of pairs, with the operators that refuse them."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, bad in found.items():
        groups.setdefault(tuple(bad), []).append(name)
    rows = [json.dumps([" ".join(names), list(bad)], separators=(",", ":")) for bad, names in groups.items()]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def main() -> None:
    version = minor_version(torch.__version__)
    if version not in measured_versions():
        raise SystemExit(f"the operators of torch {version} are not measured yet: run tools.measure_operators first")
    FOLDER.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = written(refused(version))
    (FOLDER / f"{version}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
