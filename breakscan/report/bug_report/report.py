"""What a bug report tells of the place where something went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """What the installed torch says of itself when it is imported.  ``problem`` is why it could not be asked."""

    version: str
    cuda: str | None = None
    hip: str | None = None
    devices: Sequence[str] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class BugReport:
    """``packages`` are the versions of what breakscan uses, None for what is not installed.  ``settings`` are the lines
    of ``breakscan config``; ``variables`` the names of environment variables that are set and matter."""

    version: str
    python: str
    system: str
    packages: Mapping[str, str | None]
    torch: TorchBuild | None
    settings: Sequence[str]
    variables: Sequence[str]
