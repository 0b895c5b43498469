"""What one compilation spent its time on: the objects of which flame graphs are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from breakscan.model.findings import Origin, Site


class CompilePart(str, Enum):
    """The parts of the compiler."""

    TRACING = "tracing"
    """Dynamo goes through the program's code."""
    GUARDS = "guards"
    AOT_AUTOGRAD = "aot-autograd"
    INDUCTOR = "inductor"
    """Its passes, and the code that it generates."""
    KERNELS = "kernels"
    """Triton's compiler, or the one for C++."""
    AUTOTUNING = "autotuning"
    CACHES = "caches"
    """Loading what an earlier compilation has left."""
    CUDA_GRAPHS = "cuda-graphs"
    """Recording them."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class TimeNode:
    """Something that the compiler did, with all that it did meanwhile: torch's name for it, or that of the function
    whose line was traced.  ``site`` is that line, in a file of ``origin``; ``count`` how often it was done."""

    name: str
    part: CompilePart
    seconds: float
    count: int = 1
    site: Site | None = None
    origin: Origin | None = None
    inner: Sequence[TimeNode] = ()

    @property
    def own_seconds(self) -> float:
        return max(0.0, self.seconds - sum(node.seconds for node in self.inner))

    def all(self) -> Iterator[TimeNode]:
        """The node, and what is in it."""
        yield self
        for node in self.inner:
            yield from node.all()
