"""Wraps private functions of torch for as long as a block runs, without torch or the user noticing."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def untraced(function: Callable[P, T]) -> Callable[P, T]:
    """The function, kept off the compiler.  If a compiled function falls back to eager, Dynamo compiles what it
    calls, and would compile a hook that is called there as well."""
    from torch.compiler import disable

    return disable(function)  # type: ignore[no-any-return, no-untyped-call]


def leave_no_trace(error: BaseException) -> None:
    """Takes the frame that handles an exception, and raises it again, out of its traceback: torch prints it, to the
    user, where a backend fails.  Python 3.10 puts it back."""
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next


@contextmanager
def wrapped(owners: Sequence[str], name: str, wrap: Callable[[Any], Callable[..., Any]]) -> Iterator[bool]:
    """Replaces ``name`` in each owner by ``wrap(original)``.  An owner is a module, ``package.module``, or a class in
    one, ``package.module:Class``.  Yields False, with nothing replaced, where this torch has no such owner, or the
    first of them no such function.

    Dynamo reads the file names of the frames above it: to tell where the user's code ends, and whether a
    function under ``torch.compiler.disable(recursive=False)`` called it.  So the wrapper carries the file name
    of what it wraps, and a traceback that runs through it shows torch alone, as it would without us.
    """
    try:
        found = [pkgutil.resolve_name(owner) for owner in owners]
    except (ImportError, AttributeError):
        yield False
        return
    original = getattr(found[0], name, None)
    if not isinstance(original, FunctionType):
        yield False
        return
    replacement = wrap(original)
    assert isinstance(replacement, FunctionType)
    code = original.__code__
    replacement.__code__ = replacement.__code__.replace(
        co_filename=code.co_filename, co_firstlineno=code.co_firstlineno, co_name=code.co_name
    )
    sharing = [owner for owner in found if getattr(owner, name, None) is original]
    for owner in sharing:
        setattr(owner, name, replacement)
    try:
        yield True
    finally:
        for owner in sharing:
            setattr(owner, name, original)
