"""What AOTAutograd and Inductor made of graphs."""

from __future__ import annotations

from dataclasses import dataclass, field

from breakscan.record.records.source import CodeLine


@dataclass(frozen=True, slots=True)
class AutogradNode:
    """A value of AOTAutograd's graph: its name, its operator (``aten.relu.default``), the number of its line among
    those of the graph."""

    name: str
    operator: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Saved:
    """A value that a forward graph keeps for its backward: its name, its type (``f32[8, 16]``), and where it is an
    input of the graph that Dynamo traced, its number there."""

    name: str
    type: str
    input: int | None


@dataclass(frozen=True, slots=True)
class AutogradGraph:
    """A graph as AOTAutograd made it.  ``phase`` is ``forward``, ``backward`` or ``inference``."""

    compile_id: str
    phase: str
    ops: int
    saved: tuple[Saved, ...]
    nodes: tuple[AutogradNode, ...]
    lines: tuple[CodeLine, ...]


@dataclass(frozen=True, slots=True)
class CodeGenerated:
    """What Inductor wrote for a graph.  ``phase`` as in :class:`AutogradGraph`, None where torch does not say.  Of very
    long code, ``code`` leaves parts out, and says so."""

    compile_id: str
    phase: str | None
    path: str
    code: str


@dataclass(frozen=True, slots=True)
class BytesMoved:
    """What the kernels of a graph read and write, in bytes, by Inductor's own estimate; of fresh compiles only."""

    compile_id: str | None
    phase: str | None
    bytes: int


@dataclass(frozen=True, slots=True)
class CacheLooked:
    """A compiler cache was asked: ``cache`` is ``fx_graph`` or ``aotautograd``, ``outcome`` ``hit``, ``miss``,
    ``disabled`` or ``bypass``, and why it was passed by.  ``guards`` are those of what the cache has under the key, if
    they did not hold; ``parts`` are what the key is made of, where torch lists that, and ``settings`` is the digest of
    the rest of it."""

    compile_id: str
    cache: str
    outcome: str
    reason: str | None
    guards: str | None = None
    parts: dict[str, str] = field(default_factory=dict)
    settings: str | None = None


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """What of the keys of a cache is the same for most graphs of a program.  Only ``values`` are another than in the
    settings with the digest ``base``."""

    digest: str
    base: str | None
    values: dict[str, str]


@dataclass(frozen=True, slots=True)
class CudaGraphSkipped:
    """A graph does not run as a CUDA graph, and why."""

    compile_id: str | None
    reason: str
