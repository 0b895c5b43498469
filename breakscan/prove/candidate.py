"""A candidate: anything that changes how the program runs, and how it is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from breakscan.prove.protocol import CompileOption, RegionalCompile


class MeasuringStep(Enum):
    """What a process is doing, as progress shows it."""

    RUN = "running the program"
    TRACE = "running Dynamo alone"
    COMPILE = "compiling"
    TIME = "timing"
    REPEAT = "timing it in further processes"
    RECORD_TESTS = "recording the outcomes of tests"


@dataclass(frozen=True, slots=True)
class RewriteLabel:
    """A rewrite of findings in a file, by their lines."""

    file: str
    lines: tuple[int, ...]
    rewrite: str

    def __str__(self) -> str:
        """``net.py:12+20 where``."""
        return f"{self.file}:{'+'.join(map(str, self.lines))} {self.rewrite}"


@dataclass(frozen=True, slots=True)
class SetLabel:
    """Several rewrites together: the ``most`` that gain most, all but those of a kind, or those from the first to the
    last of a ``part``.
    """

    most: int | None = None
    without_slower: bool = False
    without_held_back: bool = False
    part: tuple[Label, Label] | None = None

    def __str__(self) -> str:
        """``net.py:12 where to net.py:40 cond``; ``without what is slower``; ``all``."""
        left_out = [
            *(["slower"] if self.without_slower else []),
            *(["held back"] if self.without_held_back else []),
        ]
        if left_out:
            return f"without what is {' or '.join(left_out)}"
        if self.part is not None:
            return " to ".join(map(str, self.part))
        return "all" if self.most is None else f"the {self.most} that gain most"


Label = str | RewriteLabel | SetLabel
"""A text is the name of a patch, or settings as they were given."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to run the calls.

    ``options`` are keyword arguments of ``torch.compile``, None for the program's own; ``settings`` belong to the
    compiler's configurations (``dynamo.capture_scalar_outputs``); ``region`` is compiled by itself, None if all is
    compiled as a whole. ``label`` is written as a user would write it.
    """

    label: str
    options: Mapping[str, CompileOption] | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    regional: RegionalCompile | None = None
