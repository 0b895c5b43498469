"""The facts of the static half about the expressions of a file, as rewrites read them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Span = tuple[int, int, int, int]  # line and column, end line and end column, as in :class:`.Site`


# Facts are never changed once made, though not frozen: a frozen dataclass takes three times as long to make.
@dataclass(slots=True, unsafe_hash=True)
class Fact:
    """The facts about one value, over all calls that were seen.

    ``kind`` is ``tensor``, ``array`` (of NumPy), ``number`` (a Python number that was read out of a tensor), ``shape``
    (a ``torch.Size`` or a number of one), ``constant`` (a Python value that no tensor decides), ``none``, ``module``,
    ``drawn`` (a random Python number), ``instance``, ``class``, ``function``, ``namespace``, ``container`` or
    ``unknown``.  ``certain`` says that the kind needs no assumption, ``optional`` that the value has this kind only
    under some condition.  ``dtype`` is the class ``float``, ``int``, ``bool`` or None where unknown, ``zero_dim`` is
    True for a tensor without dimensions (None: unknown), ``name`` is the dotted name of what was imported.  ``literal``
    is the value of a constant where it is known, ``elements`` those of a tuple or list of known length."""

    kind: str = "unknown"
    certain: bool = False
    dtype: str | None = None
    zero_dim: bool | None = None
    parameter: bool = False
    maybe_none: bool = False
    optional: bool = False
    name: str | None = None
    literal: str | int | float | None = None
    elements: "tuple[Fact, ...] | None" = None

    @property
    def is_tensor(self) -> bool:
        """True if the value is a tensor, as far as is known."""
        return self.kind == "tensor" and not self.maybe_none

    @property
    def is_number(self) -> bool:
        """True if it is a Python number for sure, wherever it comes from."""
        return self.kind in ("number", "drawn") or type(self.literal) in (int, float)


UNKNOWN = Fact()


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The facts about one file: about expressions by their spans, and about the names at compound statements."""

    value: Callable[[Span], Fact | None] = lambda span: None
    names: Callable[[Span], Mapping[str, Fact]] = lambda span: {}
