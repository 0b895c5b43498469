"""The result of ``verify``: for each change what was measured with it and without it, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from breakscan.findings import Site
from breakscan.worker.observation import Observation
from breakscan.worker.timing import Ratio


class ProofVerdict(str, Enum):
    """What is said of a change in one word."""

    ACCEPTED = "accepted"
    NO_FASTER = "no-faster"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class KernelCode:
    """The code that the backend generated for a graph, of one phase, with the function that the graph is of."""

    function: str
    phase: str
    code: str


@dataclass(frozen=True, slots=True)
class Metrics:
    """What one process did with the same calls.

    ``kernels`` are those of a step, by kind; ``launches`` what a step hands to a GPU (``kernels``,
    ``cuda_graphs``); ``step_seconds`` the median of a step, None where it was not timed.  ``eager_frames`` are
    functions that run eager as a whole.
    """

    breaks: int
    recompiles: int
    graphs: int
    eager_frames: int
    kernels: Mapping[str, int]
    compile_seconds: float
    first_call_seconds: float
    memory_bytes: int | None = None
    launches: Mapping[str, int] | None = None
    step_seconds: float | None = None
    code: Sequence[KernelCode] = ()

    @property
    def all_kernels(self) -> int:
        """Kernels of all kinds."""
        return sum(self.kernels.values())


@dataclass(frozen=True, slots=True)
class Proof:
    """One change, and what was found.  ``label`` names it for people; ``rule``, ``rewrite`` and ``site`` say which
    rewrite of which finding it is, and ``difference`` in which way it is not safe, None where it is.

    ``reasons`` are those for which it is rejected, the most important first; ``outputs_equal`` is None where that could
    not be compared.
    """

    label: str
    verdict: ProofVerdict
    reasons: tuple[Observation, ...]
    outputs_equal: bool | None
    before: Metrics
    after: Metrics | None = None
    ratio: Ratio | None = None
    rule: str | None = None
    rewrite: str | None = None
    site: Site | None = None
    difference: str | None = None
    diff: str = ""
    members: tuple[str, ...] = ()
    """Of a proof of several changes together, their labels."""
    slower: bool = False
    """Not only no faster."""
    breaks_there: bool = True
    """Whether the program as it is breaks the graph where the change is, as far as that is asked: it may be hidden by
    another break."""
    revealed: tuple[str, ...] = ()
    """Where it breaks the graph with the change, and did not without."""
    unrun: tuple[str, ...] = ()
    """Lines of the change that the captured calls do not execute: nothing is proved of them."""


@dataclass(frozen=True, slots=True)
class Verification:
    """All proofs of one command, the whole set last.

    ``same`` is the ratio of two processes that both run the program as it is; ``tolerances`` are those of results by
    dtype.  ``dependent`` are rewrites that change something only where others come first, so that they are proved with
    these alone, ``unreached`` findings that could be rewritten and whose code the calls do not run, ``notes`` what else
    there is to know.  ``applied`` are the files that were written.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    callables: Mapping[str, int]
    proofs: tuple[Proof, ...]
    same: Ratio | None
    tolerances: Mapping[str, float]
    dependent: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    notes: tuple[Observation, ...] = ()
    applied: tuple[str, ...] = ()
    not_applied: str | None = None
    breaks: int = 0
    interrupted: bool = False
    """Stopped by the user: what was proved until then."""
