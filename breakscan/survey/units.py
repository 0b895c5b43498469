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
    CHECK = "check"
    FIX = "fix"
    VERIFY = "verify"
    BENCH = "bench"

    @property
    def measures_time(self) -> bool:
        """True if nothing else may run at the same time."""
        return self in (SurveyStage.VERIFY, SurveyStage.BENCH)


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


@dataclass(frozen=True, slots=True)
class Explained:
    """The result of ``explain``: the ``files`` that were compiled; ``has_causes`` if anything in them broke the graph,
    ran eager or was recompiled."""

    files: tuple[str, ...] = ()
    has_causes: bool = False

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Explained:
        """From the facts of the stage; of one that gave none, nothing."""
        causes = any(facts.get(name) for name in ("breaks", "eager", "recompiles"))
        return cls(tuple(facts.get("files", ())), causes)


NOTHING = Explained()


def has_work(stage: SurveyStage, explained: Explained) -> bool:
    """Return True if a stage can find anything: all but ``explain`` need compiled files, and rewrites and their proofs
    a problem to remove.  ``check`` also finds problems in code that did not run."""
    if stage is SurveyStage.EXPLAIN:
        return True
    if stage in (SurveyStage.FIX, SurveyStage.VERIFY):
        return bool(explained.files) and explained.has_causes
    return bool(explained.files)
