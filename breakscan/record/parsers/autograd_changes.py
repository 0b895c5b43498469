"""Reads why compiled autograd captures a backward pass again (the supported versions of torch)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class AutogradChangeKind(Enum):
    """What is another than in the passes that were captured before."""

    NODE = "node"
    """There is another operation in it."""
    STATE = "state"
    """An operation is the same, and what belongs to it is not: what it saves, its hooks, a gradient that is there."""
    SIZES = "sizes"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class AutogradChange:
    """``name`` is that of the operation (``MulBackward0``), or all that torch says; ``count`` that of the sizes."""

    kind: AutogradChangeKind
    name: str = ""
    count: int = 0


_NODE = re.compile(
    r"new autograd node: (?P<name>\S+) \(NodeCall \d+\) with key size \d+, previous key sizes=\[(?P<seen>.*)\]"
)
_SIZES = re.compile(r"due to (?P<count>\d+) changed tensor shapes")
_ID = re.compile(r"^!\d+: ")
_ROOT = "GraphRoot"
"""The first node of each pass: new in the first of all."""


def autograd_change(reason: str) -> AutogradChange | None:
    """What has changed; None for the first pass that is captured, before which there is none."""
    if found := _NODE.search(reason):
        name = found["name"].rpartition("::")[2]
        if name == _ROOT and not found["seen"]:
            return None
        return AutogradChange(AutogradChangeKind.STATE if found["seen"] else AutogradChangeKind.NODE, name)
    if found := _SIZES.search(reason):
        return AutogradChange(AutogradChangeKind.SIZES, count=int(found["count"]))
    return AutogradChange(AutogradChangeKind.OTHER, _ID.sub("", reason))
