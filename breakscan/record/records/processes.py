"""The processes of a run, and the hooks in them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessStarted:
    """The compiler was loaded in a process.  ``disabled_by`` names the variable that switches it off.

    ``rank`` and ``world_size`` are those of the environment that torchrun makes.  ``clock`` is ``perf_counter`` at
    ``time``, in seconds since the epoch.
    """

    pid: int
    parent_pid: int
    argv: tuple[str, ...]
    rank: int | None
    world_size: int | None
    time: float
    clock: float
    torch: str
    python: str
    torch_folder: str
    standard_library: str
    disabled_by: str | None
    profile_kept: bool


@dataclass(frozen=True, slots=True)
class ProcessForked:
    """A process was forked off one that records, and records too."""

    pid: int
    parent_pid: int


@dataclass(frozen=True, slots=True)
class RankSeen:
    """The process became a rank of a process group that its environment does not name."""

    rank: int
    world_size: int


@dataclass(frozen=True, slots=True)
class HookInstalled:
    """Whether the installed torch has what a hook needs."""

    name: str
    available: bool


@dataclass(frozen=True, slots=True)
class HookFailed:
    """A hook of ours raised; the user's program did not notice."""

    name: str
    error: str
