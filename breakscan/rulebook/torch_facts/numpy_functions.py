"""The treatment of NumPy's functions by Dynamo, and the names that it does not trace by its own rules.

The tables are measured: ``tools/measure_numpy.py`` and ``tools/measure_skipped.py``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from breakscan.rulebook.torch_facts.operators import nearest

_DATA = Path(__file__).parent / "data"


class Returned(Enum):
    """The kind of result of a traced call."""

    UNTRACED = "untraced"
    """Nothing: the call breaks the graph."""
    PYTHON = "python"
    ARRAY = "array"
    ARRAYS = "arrays"


class OfNumbers(Enum):
    """The kind of result of a call with Python numbers alone."""

    KNOWN = "k"
    """A number that Dynamo computes while it traces: ``int()`` of it compiles, a test of it does not."""
    READ = "u"
    """A number that is known only when the graph runs."""
    ARRAY = "a"
    UNTRACED = "."


@dataclass(frozen=True, slots=True)
class NumpyFunction:
    """``dtypes`` are the letters of the dtype class of the result for arrays of floats, integers and booleans.
    ``whole`` says that one array gives a number."""

    returned: Returned
    dtypes: str = "..."
    whole: bool = False
    of_integers: OfNumbers = OfNumbers.UNTRACED
    of_floats: OfNumbers = OfNumbers.UNTRACED

    def dtype_class(self, given: str | None) -> str | None:
        """The dtype class of the result for arrays of the class ``given``."""
        letters = set(self.dtypes) - {"."} if given is None else {self.dtypes[_PLACES[given]]}
        return _CLASSES.get(letters.pop()) if len(letters) == 1 else None


_PLACES = {"float": 0, "int": 1, "bool": 2}
_CLASSES = {"f": "float", "i": "int", "b": "bool"}


def numpy_function(version: str, name: str) -> NumpyFunction | None:
    """The treatment of ``numpy.<name>`` by a version such as ``2.13``; methods of arrays are ``ndarray.<name>``."""
    return _table(version).get(name)


@cache
def _table(version: str) -> dict[str, NumpyFunction]:
    measured = nearest(version, {path.stem for path in (_DATA / "numpy").glob("*.json")})
    groups = json.loads((_DATA / "numpy" / f"{measured}.json").read_text(encoding="utf-8"))
    return {name: function for text, names in groups.items() for function in [_parsed(text)] for name in names.split()}


def _parsed(text: str) -> NumpyFunction:
    kind, *more = text.split()
    if not more:
        return NumpyFunction(Returned(kind))
    dtypes, whole, numbers = more
    return NumpyFunction(Returned(kind), dtypes, whole == "0", OfNumbers(numbers[0]), OfNumbers(numbers[1]))


@dataclass(frozen=True, slots=True)
class Skipped:
    """``packages`` are skipped as a whole.  ``called`` says of calls of other packages whether each broke the graph."""

    packages: frozenset[str]
    names: frozenset[str]
    called: dict[str, bool]
    called_packages: frozenset[str]

    def by_rule(self, dotted: str) -> bool:
        """True if the rules of Dynamo say that a name is not traced."""
        package, owner = dotted.partition(".")[0], dotted.rpartition(".")[0]
        return package in self.packages or dotted in self.names or owner in self.names

    def in_practice(self, dotted: str) -> bool:
        """True if calls of a name, or of others of its package, were seen to break the graph."""
        return self.called.get(dotted, dotted.partition(".")[0] in self.called_packages)


@cache
def skipped(version: str) -> Skipped:
    """The names that a version such as ``2.13`` does not trace."""
    name = nearest(version, {path.stem for path in (_DATA / "skipped").glob("*.json")})
    data = json.loads((_DATA / "skipped" / f"{name}.json").read_text(encoding="utf-8"))
    called = data["called"]
    packages = frozenset(name.partition(".")[0] for name in called)
    return Skipped(frozenset(data["packages"]), frozenset(data["names"]), called, packages)
