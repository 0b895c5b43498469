"""What the static half knows about the expressions of a file, as rewrites read it.

A dtype, a shape or a device is seldom known exactly, but two values are often known to have the same one, because both
are computed from the same value.  Such facts are terms over :class:`Symbol`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

Span = tuple[int, int, int, int]
"""Line and column, end line and end column, as in :class:`breakscan.model.findings.Site`."""


# Facts are never changed once made, though not frozen: a frozen dataclass takes three times as long to make.


class Source(IntEnum):
    """Where a fact comes from, the weakest source first.  A fact is as good as the weakest source that it needs."""

    ASSUMED = 0
    """A convention: a parameter of ``forward`` without annotation is a tensor."""
    OBSERVED = 1
    """It was so in a recorded run, and may be otherwise in another one."""
    MEASURED = 2
    """Measured by running torch."""
    INFERRED = 3
    """It follows from the code alone, with its annotations taken at their word."""


@dataclass(slots=True)
class Symbol:
    """One value of a function that is not computed from others that are known: a parameter, the result of a call.

    ``name`` is its text, for messages.  ``at`` tells symbols apart: two values with one symbol are the same value.
    ``new`` says that the value is a tensor that was made there, with storage that nothing else has.  ``of`` are the
    shapes that a shape is made from, by the step ``name``: a part of a tensor, a call of ``view``.
    """

    name: str
    at: tuple[int, ...]
    new: bool = False
    of: frozenset[Symbol] = frozenset()

    def __hash__(self) -> int:
        # Symbols are hashed all the time, and few have the same name and place.
        return hash((self.name, self.at))


# -- dtypes -------------------------------------------------------------------------------------------------------


@dataclass(slots=True, unsafe_hash=True)
class DtypeOf:
    """The dtype of a value, which is not known exactly.

    ``among`` is the class that it has (``float``, ``int``, ``bool``; None: unknown).  ``number`` says whether the value
    is a Python number (None: unknown).
    """

    symbol: Symbol
    among: str | None = None
    number: bool | None = False
    source: Source = Source.INFERRED


@dataclass(slots=True, unsafe_hash=True)
class Exactly:
    """A dtype by its name in ``torch``.  ``default`` is the default dtype.  ``number``: that of a Python number."""

    dtype: str
    number: bool = False
    source: Source = Source.INFERRED


@dataclass(slots=True, unsafe_hash=True)
class Input:
    """An argument of an operator.  ``shape`` are the symbols whose shapes broadcast to its own; none: it is 0-d."""

    dtype: Dtype
    shape: frozenset[Symbol]


@dataclass(slots=True, unsafe_hash=True)
class ResultOf:
    """The dtype of the result of a torch operator; ``breakscan.rulebook.torch_facts.operators`` says which that is."""

    operator: str
    inputs: tuple[Input, ...]


Dtype = DtypeOf | Exactly | ResultOf


# -- dimensions ---------------------------------------------------------------------------------------------------

_NONE: frozenset[Symbol] = frozenset()


@dataclass(slots=True, unsafe_hash=True)
class RankBounds:
    """Bounds of a number of dimensions: numbers, and the numbers of dimensions of other values.

    At least ``least`` and as many as each of ``over``; at most ``most`` and as many as each of ``under``; fewer than
    each of ``below``.
    """

    least: int = 0
    most: int | None = None
    over: frozenset[Symbol] = _NONE
    under: frozenset[Symbol] = _NONE
    below: frozenset[Symbol] = _NONE


SCALAR = RankBounds(0, 0)


@dataclass(slots=True, unsafe_hash=True)
class TensorFacts:
    """What is known about a value if it is a tensor.

    ``shape`` are the symbols whose shapes broadcast to its own; none: it is 0-d.  ``storage`` are the values whose
    storage it may share.  ``device`` is a value on whose device it is, ``layout`` one whose dimensions have the same
    order in memory.  ``requires_grad`` is None where unknown.
    ``is_new`` says that the expression that computed it made it, with storage of its own.
    """

    dtype: Dtype
    shape: frozenset[Symbol]
    rank: RankBounds
    storage: frozenset[Symbol]
    device: Symbol
    layout: Symbol
    requires_grad: bool | None = None
    is_new: bool = False


def opaque(
    symbol: Symbol,
    dtype: Dtype | None = None,
    shape: frozenset[Symbol] | None = None,
    requires_grad: bool | None = None,
) -> TensorFacts:
    """The facts about a value of which nothing is known but that it is the same one wherever its symbol is."""
    zero_dim = shape is not None and not shape
    alone = frozenset({symbol})
    return TensorFacts(
        dtype or DtypeOf(symbol),
        alone if shape is None else shape,
        SCALAR if zero_dim else RankBounds(over=alone, under=alone),
        alone,
        symbol,
        symbol,
        requires_grad,
    )


@dataclass(slots=True, unsafe_hash=True)
class Fact:
    """What is known about one value, over all calls that were seen.

    ``kind`` is ``tensor``, ``array`` (of NumPy), ``number`` (a Python number that was read out of a tensor), ``shape``
    (a ``torch.Size`` or a number of one), ``constant`` (a Python value that no tensor decides), ``none``, ``module``,
    ``drawn`` (a random Python number), ``instance``, ``class``, ``function``, ``namespace``, ``container`` or
    ``unknown``.  ``source`` says where the kind comes from, ``optional`` that the value has this kind only under some
    condition.  ``dtype`` is the class ``float``, ``int``, ``bool`` or None where unknown, ``zero_dim`` tells whether a
    tensor has no dimension (None: unknown), ``name`` is the dotted name of what was imported.  ``literal`` is the value
    of a constant where it is known, ``elements`` those of a tuple or list of known length.  ``tensor`` says more about
    a tensor or number.
    """

    kind: str = "unknown"
    source: Source = Source.ASSUMED
    dtype: str | None = None
    zero_dim: bool | None = None
    parameter: bool = False
    maybe_none: bool = False
    optional: bool = False
    name: str | None = None
    literal: str | int | float | None = None
    elements: tuple[Fact, ...] | None = None
    tensor: TensorFacts | None = None

    @property
    def certain(self) -> bool:
        """Whether the kind needs no assumption."""
        return self.source is not Source.ASSUMED

    @property
    def is_tensor(self) -> bool:
        """Whether the value is a tensor, as far as is known."""
        return self.kind == "tensor" and not self.maybe_none

    @property
    def is_number(self) -> bool:
        """Whether it is a Python number for sure, wherever it comes from."""
        return self.kind in ("number", "drawn") or (
            isinstance(self.literal, int | float) and not isinstance(self.literal, bool)
        )


UNKNOWN = Fact()


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is known in one file: of expressions by their spans, and of the names that a compound statement meets."""

    values: Mapping[Span, Fact] = field(default_factory=dict)
    names: Mapping[Span, Mapping[str, Fact]] = field(default_factory=dict)
