"""What the functions of NumPy return in traced code, where Dynamo runs them as operations of torch.

The table is measured: ``tools/measure_numpy.py``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from breakscan.rulebook.torch_facts.versions import nearest

_DATA = Path(__file__).parent / "data/numpy"


class Returned(Enum):
    """What a call returns while it is traced."""

    UNTRACED = "untraced"
    """Nothing: the call breaks the graph."""
    PYTHON = "python"
    ARRAY = "array"
    ARRAYS = "arrays"


class OfNumbers(Enum):
    """What a call with Python numbers alone returns."""

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
    """What a version such as ``2.13`` does with ``numpy.<name>``; methods of arrays are ``ndarray.<name>``."""
    return _table(version).get(name)


@cache
def _table(version: str) -> dict[str, NumpyFunction]:
    measured = nearest(version, {path.stem for path in _DATA.glob("*.json")})
    groups = json.loads((_DATA / f"{measured}.json").read_text(encoding="utf-8"))
    return {name: function for text, names in groups.items() for function in [_parsed(text)] for name in names.split()}


def _parsed(text: str) -> NumpyFunction:
    kind, *more = text.split()
    if not more:
        return NumpyFunction(Returned(kind))
    dtypes, whole, numbers = more
    return NumpyFunction(Returned(kind), dtypes, whole == "0", OfNumbers(numbers[0]), OfNumbers(numbers[1]))
