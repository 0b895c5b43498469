"""What compiling spent its time on."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.record.records.source import Code


@dataclass(frozen=True, slots=True)
class SpansTimed:
    """What the compiler did for one compilation, from one beginning to its end, as torch names it: a tree whose nodes
    stand in order, each before its children.  What has the same name and the same parent is one node: ``seconds`` is
    all of it, its children included, ``counts`` how often.  What took next to no time is left out."""

    compile_id: str
    names: tuple[str, ...]
    depths: tuple[int, ...]
    seconds: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TracingTimed:
    """How long Dynamo traced each line for one compilation: a tree as in :class:`SpansTimed`, of lines and of the lines
    of the functions that they call.  ``functions`` are numbers into ``codes``."""

    compile_id: str
    codes: tuple[Code, ...]
    functions: tuple[int, ...]
    lines: tuple[int, ...]
    depths: tuple[int, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class KernelsTimed:
    """How long the Triton kernels took to compile that took longest.  Workers compile several at a time."""

    compile_id: str
    names: tuple[str, ...]
    seconds: tuple[float, ...]
