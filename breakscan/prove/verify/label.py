"""What names a change, as values: ``reports/verify/words.py`` words them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RewriteLabel:
    """A rewrite of findings in a file, by their lines."""

    file: str
    lines: tuple[int, ...]
    rewrite: str


@dataclass(frozen=True, slots=True)
class SetLabel:
    """Several rewrites together: the ``most`` that gain most, all but those of a kind, or those from the first to the
    last of a ``part``.
    """

    most: int | None = None
    without_slower: bool = False
    without_held_back: bool = False
    part: tuple[Label, Label] | None = None


Label = str | RewriteLabel | SetLabel
"""A text is the name of a patch, or settings as they were given."""
