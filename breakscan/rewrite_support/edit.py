"""What a rewrite gives back: an edit, or the reason why it declines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from breakscan.rewrite_support.difference import Difference, TakenOut

Replacement = cst.CSTNode | Sequence[cst.BaseStatement] | None
"""What takes the place of a node: another one, several statements for one, or nothing."""


class Declined(Exception):
    """A rewrite does not apply here; the text says why, as the end of a sentence without a full stop."""


class OtherForm(Declined):
    """The site is of another form than the rewrite is about: of interest only where no rewrite comes nearer."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one file.

    ``replace`` maps nodes of the tree to what takes their place.  ``differences`` are what is no longer as it was;
    none for a safe edit.  ``above`` is put in front of the outermost statement of the file that holds the site.
    ``remains`` is the condition, as code, under which alone the site still breaks; None where it never does.
    ``takes_out`` is what leaves the graph if the edit does not remove the break and only softens it.
    """

    replace: Mapping[cst.CSTNode, Replacement]
    differences: Sequence[Difference] = ()
    above: Sequence[cst.BaseStatement] = field(default=())
    remains: str | None = None
    takes_out: TakenOut | None = None

    @property
    def is_safe(self) -> bool:
        return not self.differences
