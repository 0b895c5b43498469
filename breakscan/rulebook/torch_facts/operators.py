"""Facts about torch's operators that were measured by running them, and the kinds of arguments that they depend on."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from breakscan.model.torch_versions import version_key

_DATA = Path(__file__).parent / "data"


def measured(version: str, folder: str = "") -> Any:
    """The facts of a version in a folder of the data; where it was not measured, those of the nearest version."""
    files = {path.stem: path for path in (_DATA / folder).glob("*.json")}
    return json.loads(files[nearest(version, files)].read_text(encoding="utf-8"))


def nearest(version: str, known: Iterable[str]) -> str:
    """The version itself where it is known, else the last one before it, else the first one after it."""
    ordered = sorted(known, key=version_key)
    before = [one for one in ordered if version_key(one) <= version_key(version)]
    return before[-1] if before else ordered[0]


KINDS = "nst"
"""All letters: what an argument may be of which nothing is known."""


def forms(kinds: Iterable[str]) -> frozenset[str]:
    """The forms that a call may have; ``kinds`` are the letters that each argument may have."""
    return frozenset("".join(sorted(letters)) for letters in product(*kinds))


def is_covered(form: str, tried: Collection[str]) -> bool:
    """True if what holds for calls of the forms that were tried holds for a form: it is one of them, or one of them
    with a number for a tensor."""
    alike = [one for one in tried if len(one) == len(form) and one.count("s") == form.count("s")]
    return any(one.count("t") >= form.count("t") for one in alike)


DTYPES = tuple("bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split())
"""The dtypes that are measured, by their names in ``torch``."""


class Often(Enum):
    """In how many of the measured calls something happened."""

    NEVER = "never"
    SOMETIMES = "sometimes"
    ALWAYS = "always"


class Gradient(Enum):
    """The result of the backward pass for a gradient of zero, which is what ``torch.where`` sends to the side
    that it does not choose."""

    NONE = "none"
    """No gradient flows: the result does not require one."""
    ZERO = "zero"
    """Zero, whatever the input is, infinities and NaN included."""
    ZERO_IF_FINITE = "zero if finite"
    """Zero where the input is finite (up to 1e4 in magnitude was tried)."""
    MAY_BE_NAN = "may be nan"
    """NaN for some finite inputs: zero times an infinite derivative."""


class Shape(Enum):
    """A rule that the shape of the result follows in every measured call."""

    FIRST = "first"
    """The shape of the first tensor."""
    BROADCAST = "broadcast"
    """The shape to which all tensors broadcast."""
    RANK_OF_FIRST = "rank of first"
    """As many dimensions as the first tensor."""
    RANK_OF_BROADCAST = "rank of broadcast"
    """As many dimensions as the tensor that has the most."""
    ZERO_DIM = "0-d"
    ONE_DIM = "1-d"


@dataclass(frozen=True, slots=True)
class Operator:
    """The facts about one function or tensor method.  None: not known."""

    name: str
    """As in ``torch.`` (``square``, ``nn.functional.softmax``), or that of the method."""
    result: str | None
    """``tensor``, ``tensors`` (a tuple or list of them), ``python`` (a number or flag) or ``other``."""
    results_by_dtype: Mapping[str, tuple[str, ...]]
    """For all inputs of one dtype, the dtypes of the results.  A dtype that is not here is refused or not known."""
    refused: frozenset[str]
    """The dtypes for which every measured call raised."""
    promotes: tuple[int, ...] | None
    """The positions of the arguments whose promoted dtype decides the dtype of the result.  For a method, position 0
    is the tensor itself."""
    shapes: frozenset[Shape] | None
    """The rules that hold in every measured call."""
    plain_shapes: frozenset[Shape] | None
    """The rules that hold for calls with nothing but tensors, as in ``x.sum()``."""
    elementwise: bool | None
    """True if each element of the result depends only on the elements at the same place."""
    keeps_values: bool | None
    """True if the result is the first tensor, in another dtype maybe."""
    keeps_vectors: bool | None
    """True if a vector, given alone, comes back as it is or as a view that is the same."""
    shares_storage: Often | None
    """True if the result may share the storage of an input."""
    returns_input: Often | None
    """True if the result may be one of the inputs, the same object."""
    writes: frozenset[int] | None
    """The positions of the arguments that are changed in place (without ``out=`` and ``inplace=True``)."""
    draws_random: Often | None
    reads_values: Often | None
    """True if the host needs the values of a tensor, so that it waits for the device."""
    raises_for_values: Often | None
    """True if some values of valid shape and dtype raise: an index out of range, a singular matrix."""
    gradient: Gradient | None
    costly: bool | None
    """True if it multiplies matrices, or does other work that is more than a pass over the elements."""
    alike: frozenset[int]
    """The positions, last of the call, where a 0-d tensor and its Python number give the same result to the last digit,
    and the same gradient of the first argument.  Tried where neither decides the dtype of the result."""
    not_read_in: frozenset[str] | None
    """If values are read sometimes: the forms of calls that read none."""
    not_raised_in: frozenset[str] | None
    """If values raise sometimes: the forms of calls for which none do."""

    def reads_in(self, forms: Collection[str]) -> bool | None:
        """True if the host may need the values of a tensor in a call that has one of these forms."""
        return _happens(self.reads_values, self.not_read_in, forms)

    def raises_in(self, forms: Collection[str]) -> bool | None:
        """True if some values of a tensor may raise in a call that has one of these forms."""
        return _happens(self.raises_for_values, self.not_raised_in, forms)

    def keeps_dtype(self) -> bool | None:
        """True if the result has the dtype of its inputs, for all dtypes that are not refused; None where one of them
        was not measured."""
        asked = [dtype for dtype in DTYPES if dtype not in self.refused]
        if not asked or any(dtype not in self.results_by_dtype for dtype in asked):
            return None
        return all(self.results_by_dtype[dtype] == (dtype,) for dtype in asked)


def operator(version: str, name: str) -> Operator | None:
    """The facts of a function or method; None where torch has none of that name or nothing was measured.  ``name`` is
    ``torch.nn.functional.softmax``, ``torch.Tensor.softmax``, the same without ``torch.`` or the bare name of a method.
    A version that was not measured answers with what the nearest one before it says."""
    table = _table(version)
    name = name.removeprefix("torch.")
    return table.get(name) or table.get(name.removeprefix("Tensor."))


class _Table:
    """The file of one version; an :class:`Operator` is made on demand."""

    def __init__(self, columns: dict[str, list[Any]], rows: dict[str, list[int]]) -> None:
        self.columns = columns
        self.rows = rows
        self._made = cache(self._operator)

    def get(self, name: str) -> Operator | None:
        return self._made(name) if name in self.rows else None

    def _operator(self, name: str) -> Operator:
        row = zip(self.columns.items(), self.rows[name], strict=True)
        facts = {key: column[index] for (key, column), index in row}
        by_dtype = dict(zip(DTYPES, facts.pop("dtypes") or [None] * len(DTYPES), strict=True))
        read = {key: fact if fact is None or key not in _READ else _READ[key](fact) for key, fact in facts.items()}
        return Operator(
            name=name,
            results_by_dtype={dtype: tuple(found.split()) for dtype, found in by_dtype.items() if found},
            refused=frozenset(dtype for dtype, found in by_dtype.items() if found == ""),
            **{**read, "alike": read["alike"] or frozenset()},
        )


_READ: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("shares_storage", "returns_input", "draws_random", "reads_values", "raises_for_values"), Often),
    **dict.fromkeys(("writes", "alike", "not_read_in", "not_raised_in"), frozenset),
    **dict.fromkeys(("shapes", "plain_shapes"), lambda texts: frozenset(map(Shape, texts))),
    "promotes": tuple,
    "gradient": Gradient,
}
"""The functions that make facts of their JSON, by the fields that are not as there."""


def _happens(often: Often | None, never_in: frozenset[str] | None, forms: Collection[str]) -> bool | None:
    if often is not Often.SOMETIMES:
        return None if often is None else often is Often.ALWAYS
    return not all(is_covered(form, never_in or ()) for form in forms)


@cache
def _table(version: str) -> _Table:
    """The table that answers for a version."""
    data = measured(version, "operators")
    return _Table(data["columns"], data["operators"])
