"""What Dynamo does not trace by its own rules: packages, and names of torch and NumPy.

The tables are measured: ``tools/measure_skipped.py``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from breakscan.rulebook.torch_facts.versions import nearest

_DATA = Path(__file__).parent / "data/skipped"


@dataclass(frozen=True, slots=True)
class Skipped:
    """``packages`` are skipped as a whole.  ``called`` says of calls of other packages whether each broke the graph."""

    packages: frozenset[str]
    names: frozenset[str]
    called: dict[str, bool]
    called_packages: frozenset[str]

    def by_rule(self, dotted: str) -> bool:
        """Whether the rules of Dynamo say that a name is not traced."""
        package, owner = dotted.partition(".")[0], dotted.rpartition(".")[0]
        return package in self.packages or dotted in self.names or owner in self.names

    def in_practice(self, dotted: str) -> bool:
        """Whether calls of a name, or of others of its package, were seen to break the graph."""
        return self.called.get(dotted, dotted.partition(".")[0] in self.called_packages)


@cache
def skipped(version: str) -> Skipped:
    """What a version such as ``2.13`` does not trace."""
    name = nearest(version, {path.stem for path in _DATA.glob("*.json")})
    data = json.loads((_DATA / f"{name}.json").read_text(encoding="utf-8"))
    called = data["called"]
    packages = frozenset(name.partition(".")[0] for name in called)
    return Skipped(frozenset(data["packages"]), frozenset(data["names"]), called, packages)
