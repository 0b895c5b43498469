"""The result of a rewrite: an edit, or the reason why it declines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from breakscan.fix.support.difference import Difference

Replacement = cst.CSTNode | Sequence[cst.BaseStatement] | None
"""The replacement of a node: another node, several statements for one, or nothing."""


class Declined(Exception):
    """A rewrite does not apply here; the text says why, without a period at the end."""


class OtherForm(Declined):
    """The code has a different form from what the rewrite handles; reported only if no rewrite is closer."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one file.

    ``replace`` maps nodes of the tree to their replacements.  ``differences`` are what the edit changes besides speed;
    none for a safe edit.  ``remains`` is the condition, as code, under which the site still breaks; None if it never
    does.  ``keeps_operations`` says that the same tensor operations run in the same order.
    """

    replace: Mapping[cst.CSTNode, Replacement]
    differences: Sequence[Difference] = ()
    remains: str | None = None
    keeps_operations: bool = False

    @property
    def is_safe(self) -> bool:
        return not self.differences
