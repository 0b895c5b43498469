"""The graphs that Dynamo captured."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.record.records.source import Code, StackFrame


@dataclass(frozen=True, slots=True)
class GraphNode:
    """An operation of a graph: the node's name, and the line that it was traced from."""

    name: str
    line: StackFrame | None


@dataclass(frozen=True, slots=True)
class GraphCompiled:
    """A graph went to the backend and came back: its operations, and the devices of its inputs in words.

    ``graph`` numbers the graphs of a process from 0.  ``ended_by`` is the traced stack of the break that ended it;
    empty where the function ended.  ``seconds`` is what the backend took.  ``inputs`` are Dynamo's names for the
    inputs, such as ``L['x']``; empty where only the structured trace tells of the graph.
    """

    compile_id: str | None
    frame: Code
    ops: int
    devices: tuple[str, ...]
    graph: int
    nodes: tuple[GraphNode, ...]
    ended_by: tuple[StackFrame, ...]
    at: float
    seconds: float
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DdpSplit:
    """DistributedDataParallel split a graph at its buckets; ``ops`` of each part.  Torch tells of one part at a
    time."""

    compile_id: str
    ops: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CompiledAutograd:
    """Compiled autograd captured a backward pass: its id, its operations, and why it was compiled again.  Torch tells
    of the reasons alone, with no operations."""

    compile_id: str
    ops: int
    reasons: tuple[str, ...]
