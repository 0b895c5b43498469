"""Matches the code of one state of a program with that of another, whatever lines were inserted above it.

Something found in code is known by its file, its function, its kind, and the text of its line."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Generic, Protocol, TypeVar

from breakscan.model.words import grouped

SIMILAR = 0.6
"""From this ratio of ``difflib`` on, a line counts as another one edited."""


class InCode(Protocol):
    """Something that was found on a line of a function; ``kind`` says what."""

    @property
    def path(self) -> str: ...
    @property
    def function(self) -> str | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def code(self) -> str: ...


T = TypeVar("T", bound=InCode)


@dataclass(frozen=True, slots=True)
class Matched(Generic[T]):
    """The items that are in both states, in pairs, and those that are in one."""

    pairs: Sequence[tuple[T, T]]
    gone: Sequence[T]
    new: Sequence[T]


def identity(one: InCode) -> Hashable:
    """Equal for what cannot be distinguished."""
    return one.path, one.function, one.kind, one.code


def matched(before: Sequence[T], after: Sequence[T], keys: Sequence[Callable[[T], Hashable]] = ()) -> Matched[T]:
    """Pairs what is the same; then what is equal by one of ``keys``, in their order; then, within a function, the same
    kind on a line that was edited."""
    pairs: list[tuple[T, T]] = []
    gone, new = list(before), list(after)
    for key in (identity, *keys):
        pairs += _paired(gone, new, key)
    pairs += _edited(gone, new)
    order = {id(one): number for number, one in enumerate(after)}
    return Matched(sorted(pairs, key=lambda pair: order[id(pair[1])]), gone, new)


def _paired(gone: list[T], new: list[T], key: Callable[[T], Hashable]) -> list[tuple[T, T]]:
    """Takes the pairs with equal keys out of both lists."""
    waiting = grouped((key(one), one) for one in gone)
    pairs = [(same.pop(0), other) for other in new if (same := waiting.get(key(other)))]
    _take_out(pairs, gone, new)
    return pairs


def _edited(gone: list[T], new: list[T]) -> list[tuple[T, T]]:
    of_function = grouped(((other.path, other.function, other.kind), j) for j, other in enumerate(new))
    alike = sorted(
        (-ratio, i, j)
        for i, one in enumerate(gone)
        for j in of_function.get((one.path, one.function, one.kind), ())
        if (ratio := SequenceMatcher(None, one.code, new[j].code).ratio()) >= SIMILAR
    )
    pairs: list[tuple[T, T]] = []
    taken_before, taken_after = set(), set()
    for _, i, j in alike:
        if i not in taken_before and j not in taken_after:
            taken_before.add(i)
            taken_after.add(j)
            pairs.append((gone[i], new[j]))
    _take_out(pairs, gone, new)
    return pairs


def _take_out(pairs: Iterable[tuple[T, T]], gone: list[T], new: list[T]) -> None:
    taken = {id(one) for pair in pairs for one in pair}
    gone[:] = [one for one in gone if id(one) not in taken]
    new[:] = [one for one in new if id(one) not in taken]
