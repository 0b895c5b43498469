"""Writes ``torch_facts/data/operators/<version>.json`` by running the operators of the installed torch:
``python -m tools.measure_operators [NAME ...]``.

The calls are torch's own operator samples (``torch.testing``, which needs numpy and expecttest) and small made ones, on
the CPU.  Each operator runs in a process that is forked for it, because some crash for inputs that they do not check.
What is measured is described in ``breakscan/rulebook/torch_facts/operators.py``; ``operator_probes.py`` measures it.
With names, only these are measured again, and the rest of the file stays.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

from breakscan.rulebook.torch_facts.table import load_api
from tools.operator_calls import Entry
from tools.operator_probes import COLUMNS, facts_of

DATA = Path(__file__).parents[1] / "breakscan" / "rulebook" / "torch_facts" / "data" / "operators"
SECONDS = 120
REORDERED = {"where": (1, 0, 2), "polygamma": (1, 0), "special.polygamma": (1, 0)}
"""Functions whose first tensor is not their first argument, with the order of a sample's arguments in a call.  The
methods of that name are entries of their own: ``Tensor.where``."""


def entries() -> dict[str, Entry]:
    """Every public function and tensor method, by its name."""
    found: dict[str, Entry] = {}
    for info in op_db:
        for name, function in ((info.name, info.op), *((alias.name, alias.op) for alias in info.aliases)):
            name = name.removeprefix("torch.")
            if name in REORDERED:
                _add_reordered(found, name, info)
            elif _is_public(name):
                found.setdefault(name, Entry(name)).infos.append((function, info))
                if info.inplace_variant is not None and "." not in name and hasattr(torch.Tensor, f"{name}_"):
                    in_place = found.setdefault(f"{name}_", Entry(f"{name}_"))
                    in_place.infos.append((getattr(torch.Tensor, f"{name}_"), info))
    for name, function in _callables():
        entry = found.setdefault(name, Entry(name))
        entry.plain = entry.plain or function
    return dict(sorted(found.items()))


def _add_reordered(found: dict[str, Entry], name: str, info: Any) -> None:
    function = torch
    for part in name.split("."):
        function = getattr(function, part)
    found.setdefault(name, Entry(name, plain=function, order=REORDERED[name])).infos.append((function, info))
    if hasattr(torch.Tensor, name):
        method = getattr(torch.Tensor, name)
        found.setdefault(f"Tensor.{name}", Entry(f"Tensor.{name}", plain=method)).infos.append((method, info))


def _is_public(name: str) -> bool:
    parts = name.split(".")
    return not any(part.startswith("_") for part in parts) and name == _resolved(name)


def _resolved(name: str) -> str | None:
    owner: Any = torch
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return name if owner is not None or hasattr(torch.Tensor, name) else None


def _callables() -> Iterator[tuple[str, Any]]:
    """Functions and methods that the stubs name, whether operators' tests try them or not."""
    api = load_api(".".join(torch.__version__.split(".")[:2]))
    for dotted in api.functions:
        name = dotted.removeprefix("torch.")
        owner: Any = torch
        for part in name.split("."):
            owner = getattr(owner, part, None)
        if callable(owner) and not any(part.startswith("_") for part in name.split(".")):
            yield name, owner
    for name in api.methods:
        method = getattr(torch.Tensor, name, None)
        if callable(method) and not name.startswith("_"):
            yield name, method


def in_child(entry: Entry) -> dict[str, Any]:
    """The facts of an operator, from a process of its own; what it had found when it crashed or ran too long."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        signal.alarm(SECONDS)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            with os.fdopen(writing, "w") as out:
                for facts in facts_of(entry):
                    out.write(json.dumps(facts) + "\n")
                    out.flush()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        found: dict[str, Any] = dict.fromkeys(COLUMNS)
        for line in lines:
            found.update(json.loads(line))
    os.waitpid(child, 0)
    return found


def written(table: dict[str, dict[str, Any]]) -> str:
    """The file: each column's distinct values, and for each operator their numbers."""
    columns: dict[str, list[Any]] = {column: [] for column in COLUMNS}
    rows = []
    for name, facts in sorted(table.items()):
        numbers = []
        for column, values in columns.items():
            if facts[column] not in values:
                values.append(facts[column])
            numbers.append(values.index(facts[column]))
        rows.append(f"{json.dumps(name)}: {json.dumps(numbers, separators=(',', ':'))}")
    heads = ",\n".join(
        f"{json.dumps(c)}: [\n" + ",\n".join(json.dumps(v, separators=(",", ":")) for v in values) + "]"
        for c, values in columns.items()
    )
    return '{"columns": {\n' + heads + '},\n"operators": {\n' + ",\n".join(rows) + "}}\n"


def _kept(path: Path) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    data = json.loads(path.read_text(encoding="utf-8"))
    columns = data["columns"]
    return {
        name: dict.fromkeys(COLUMNS) | {c: columns[c][row] for c, row in zip(columns, rows, strict=True)}
        for name, rows in data["operators"].items()
    }


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    asked = sys.argv[1:]
    path = DATA / f"{'.'.join(torch.__version__.split('.')[:2])}.json"
    chosen = {name: entry for name, entry in entries().items() if not asked or name in asked}
    table = _kept(path) if asked else {}
    with ThreadPoolExecutor(2) as pool:
        for done, (name, facts) in enumerate(zip(chosen, pool.map(in_child, chosen.values()), strict=True)):
            if any(value is not None for value in facts.values()):
                table[name] = facts
            print(f"\r{done + 1}/{len(chosen)} {name:40}", end="", flush=True)
    path.parent.mkdir(exist_ok=True)
    path.write_text(written(table), encoding="utf-8")
    print(f"\nwrote {path}")
    for column in COLUMNS:
        if all(facts[column] is None for facts in table.values()):
            print(f"{column}: nothing could be measured on torch {torch.__version__}")


if __name__ == "__main__":
    main()
