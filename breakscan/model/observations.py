"""The values of a program in a run, as it is recorded, reported and checked with: strings and numbers only."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

MOST_TEXTS = 8  # the number of different Python values of one name that are kept; of more, none
TENSOR = "torch.Tensor"
NONE = "NoneType"
NONE_ALONE = (NONE,)
Range = tuple[int, ...]  # the least and the largest size of a dimension; empty where it is not known


@dataclass(frozen=True, slots=True)
class TensorSeen:
    """Tensors that one name held.  ``sizes`` are those of each dimension, None where the ranks differ or are not
    known; ``contiguous`` is empty where it is not known."""

    dtypes: tuple[str, ...]
    ranks: tuple[int, ...]
    sizes: tuple[Range, ...] | None
    devices: tuple[str, ...]
    requires_grad: tuple[bool, ...]
    contiguous: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class ValueSeen:
    """The values that one name held.  ``types`` are their Python types, those of ``builtins`` without the module.
    ``texts`` are literals of booleans, numbers and short texts: all of them, or None.  ``tensor`` is about those that
    are tensors, ``items`` about the elements of tuples and lists of one length.  ``entries`` are entries of
    dictionaries, and attributes of objects that the function names."""

    types: tuple[str, ...]
    texts: tuple[str, ...] | None = None
    tensor: TensorSeen | None = None
    items: "tuple[ValueSeen, ...] | None" = None
    entries: "Mapping[str, ValueSeen]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunctionSeen:
    """The values that the names of a function had when it started, in how many ``calls``.  ``compiled`` says that
    Dynamo started there, at least once, and did not only follow a call."""

    names: Mapping[str, ValueSeen]
    calls: int
    compiled: bool


@dataclass(frozen=True, slots=True)
class Observations:
    """The observations of one or more runs, by the digest of a file and the qualified name of a function.  ``paths``
    are the digests of files by their absolute paths at that time; ``key`` is a digest of all."""

    files: Mapping[str, Mapping[str, FunctionSeen]] = field(repr=False)
    paths: Mapping[str, str] = field(repr=False)
    key: str

    def concern(self, digests: Iterable[str]) -> bool:
        """True if something was seen of one of the files that have these digests."""
        return any(digest in self.files for digest in digests)


def joined_function(one: FunctionSeen, other: FunctionSeen) -> FunctionSeen:
    """The joined observations of a function by several processes or runs."""
    names = joined_names(one.names, other.names)
    return FunctionSeen(names, one.calls + other.calls, one.compiled or other.compiled)


def joined(one: ValueSeen, other: ValueSeen) -> ValueSeen:
    """The joined observations of two values."""
    if one == other:
        return one
    types = _union(one.types, other.types)
    if NONE_ALONE in (one.types, other.types):
        return replace(other if one.types == NONE_ALONE else one, types=types)
    return ValueSeen(
        types,
        _texts(one.texts, other.texts),
        _tensors(one.tensor, other.tensor) if one.tensor and other.tensor else one.tensor or other.tensor,
        _items(one, other),
        {name: joined(one.entries[name], other.entries[name]) for name in one.entries if name in other.entries},
    )


def joined_names(one: Mapping[str, ValueSeen], other: Mapping[str, ValueSeen]) -> dict[str, ValueSeen]:
    """The values of the names of a function over several calls."""
    return {name: reduce(joined, (known[name] for known in (one, other) if name in known)) for name in {**one, **other}}


def _union(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*one, *other}))


def _texts(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if one is None or other is None:
        return None
    texts = _union(one, other)
    return texts if len(texts) <= MOST_TEXTS else None


def _items(one: ValueSeen, other: ValueSeen) -> tuple[ValueSeen, ...] | None:
    if one.items is None or other.items is None or len(one.items) != len(other.items):
        return None
    return tuple(map(joined, one.items, other.items))


def _tensors(one: TensorSeen, other: TensorSeen) -> TensorSeen:
    sizes = None
    if one.sizes is not None and other.sizes is not None and len(one.sizes) == len(other.sizes):
        sizes = tuple(map(_range, one.sizes, other.sizes))
    return TensorSeen(
        _union(one.dtypes, other.dtypes),
        tuple(sorted({*one.ranks, *other.ranks})),
        sizes,
        _union(one.devices, other.devices),
        tuple(sorted({*one.requires_grad, *other.requires_grad})),
        tuple(sorted({*one.contiguous, *other.contiguous})) if one.contiguous and other.contiguous else (),
    )


def _range(one: Range, other: Range) -> Range:
    return (min(one[0], other[0]), max(one[1], other[1])) if one and other else ()
