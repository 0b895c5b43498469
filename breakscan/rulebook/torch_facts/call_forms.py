"""What a call gives to an operator: the kinds of its arguments, which decide whether some operators read values.

A form has a letter for each argument, in alphabetical order: ``t`` for a tensor or a list of tensors, ``s`` for a text,
``n`` for anything else.  ``x.sum(0)`` has the form ``nt``, ``torch.where(mask, x, y)`` the form ``ttt``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import product

KINDS = "nst"
"""All letters: what an argument may be of which nothing is known."""


def forms(kinds: Iterable[str]) -> frozenset[str]:
    """The forms that a call may have; ``kinds`` are the letters that each argument may have."""
    return frozenset("".join(sorted(letters)) for letters in product(*kinds))


def is_covered(form: str, tried: Collection[str]) -> bool:
    """Whether what holds for calls of the forms that were tried holds for a form: it is one of them, or one of them
    with a number for a tensor."""
    return any(
        len(one) == len(form) and one.count("s") == form.count("s") and one.count("t") >= form.count("t")
        for one in tried
    )
