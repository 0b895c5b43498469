"""Units of a survey (programs and models, each under one set of conditions), their stages and their results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from hashlib import blake2b
from typing import Any


class SurveyStage(str, Enum):
    """A command of breakscan that a survey runs, in this order: the later ones need what ``explain`` saw."""

    EXPLAIN = "explain"
    VERIFY = "verify"
    BENCH = "bench"

    @property
    def measures_time(self) -> bool:
        """True if nothing else may run at the same time."""
        return self is not SurveyStage.EXPLAIN


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python with its packages, name → version."""

    python: str
    executable: str
    packages: dict[str, str] = field(default_factory=dict)
    id: str = field(init=False)
    """A digest of all but where it is."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", digest([self.python, sorted(self.packages.items())]))

    @property
    def torch(self) -> str | None:
        """The version of torch; None without one."""
        return self.packages.get("torch")


@dataclass(frozen=True, slots=True)
class Unit:
    """A program (``command``: the arguments of Python) or a model (``build``: ``MODULE:CALLABLE``, called with
    ``argument`` if there is one).  The conditions of a model are its ``mode`` (``eval`` or ``train``), ``backend``,
    ``device`` and ``dtype``; a program has its own.  ``folder`` is where it runs, as seen from the manifest: the same
    on all machines.  ``sources`` is a digest of the files that it rests on."""

    name: str
    command: tuple[str, ...] = ()
    build: str | None = None
    argument: str | None = None
    mode: str | None = None
    backend: str | None = None
    device: str = "cpu"
    dtype: str | None = None
    folder: str = "."
    sources: str = ""

    @property
    def conditions(self) -> tuple[str, ...]:
        """The values that distinguish units of one name."""
        return tuple(filter(None, (self.mode, self.backend, self.device, self.dtype)))

    def key(self, environment: Environment) -> str:
        """A digest of all that the result depends on."""
        return digest([asdict(self), environment.id])

    def program(self) -> list[str]:
        """The arguments of Python that run it."""
        if self.build is None:
            return list(self.command)
        options = {"--argument": self.argument, "--mode": self.mode, "--backend": self.backend, "--dtype": self.dtype}
        given = [word for name, value in options.items() if value is not None for word in (name, value)]
        return ["-m", "breakscan.survey.model_program", self.build, *given, "--device", self.device]


def digest(value: object) -> str:
    """A digest of a value that JSON can hold."""
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()


class StageStatus(str, Enum):
    """The end of a stage: ``failed`` if the program failed, ``fault`` if breakscan did."""

    OK = "ok"
    FAILED = "failed"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    MISSING = "missing"
    SKIPPED = "skipped"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class StageResult:
    """``seconds`` of wall time, the most memory in bytes (None where it is not known), the ``facts`` that reports of
    surveys need, and the last that it said where it did not succeed."""

    stage: str
    status: str
    seconds: float
    peak: int | None
    facts: dict[str, Any] = field(default_factory=dict)
    said: str = ""
    host: str = ""


def has_work(stage: SurveyStage, explained: Mapping[str, Any]) -> bool:
    """True if a stage can find anything, by the facts of ``explain``: ``verify`` needs something that broke the graph,
    ran eager or was recompiled, ``bench`` something that was compiled."""
    has_causes = any(explained.get(name) for name in ("breaks", "eager", "recompiles"))
    if stage is SurveyStage.VERIFY:
        return has_causes
    return stage is SurveyStage.EXPLAIN or has_causes or bool(explained.get("graphs"))
