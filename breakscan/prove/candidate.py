"""A candidate: anything that changes how the program runs, and how it is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from breakscan.prove.protocol import CompileOption, RegionalCompile


class MeasuringStep(Enum):
    RUN = "run"
    """Running the program."""
    TRACE = "trace"
    """Running Dynamo alone."""
    COMPILE = "compile"
    TIME = "time"
    REPEAT = "repeat"
    """Timing again in another process."""
    RECORD_TESTS = "record-tests"
    """Recording the outcomes of tests."""


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
