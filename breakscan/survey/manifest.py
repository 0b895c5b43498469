"""Reads a manifest: the programs and models of a survey, and the conditions under which they run; and finds its units,
each a program or model under one set of conditions: files, names, and the packages of each Python."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

from breakscan.model.words import InputError
from breakscan.rulebook.config import load_settings
from breakscan.rulebook.document import TomlTable
from breakscan.source.files import discover
from breakscan.source.paths import path_from
from breakscan.source.regular_files import read_regular_file
from breakscan.source.toml_text import TomlProblem, parse_toml


class SurveyStage(str, Enum):
    """A command of breakscan that a survey runs, in this order: the later ones need what ``explain`` saw."""

    EXPLAIN = "explain"
    VERIFY = "verify"
    BENCH = "bench"
    TUNE = "tune"

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

    @property
    def id(self) -> str:
        """A digest of all but where it is."""
        return digest([self.python, sorted(self.packages.items())])

    @property
    def torch(self) -> str | None:
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
        return digest([asdict(self), environment.id])

    def program(self, script: str | None = None) -> list[str]:
        """The arguments of Python that run it; a model by :mod:`.model_program`, or by a copy, the ``script``."""
        if self.build is None:
            return list(self.command)
        options = {"--argument": self.argument, "--mode": self.mode, "--backend": self.backend, "--dtype": self.dtype}
        given = [word for name, value in options.items() if value is not None for word in (name, value)]
        runs = [script] if script is not None else ["-m", "breakscan.survey.model_program"]
        return [*runs, self.build, *given, "--device", self.device]


def digest(value: object) -> str:
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


MODES = ("eval", "train")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(MiB|GiB)")
_UNITS = {"MiB": 2**20, "GiB": 2**30}


class ManifestError(InputError):
    """A manifest cannot be used, with the file, the key and the reason."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Programs that Python runs: one by its ``command``, or each file that the pattern ``files`` matches."""

    name: str | None
    command: tuple[str, ...]
    files: str | None


@dataclass(frozen=True, slots=True)
class Models:
    """A model that ``build`` makes (``MODULE:CALLABLE``), or one for each of the ``names``, or of those that a callable
    (``MODULE:CALLABLE``) gives, which it is called with."""

    name: str | None
    build: str
    names: str | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class SurveyManifest:
    """The programs and models of a survey, and their conditions.  ``folder`` is where commands run and modules are
    found, and ``place`` is its path from the manifest, which is the same on each machine.  ``sources`` are patterns of
    the files that programs and models depend on, by default what ``check`` reads.  ``seconds`` and ``memory`` (bytes)
    limit each stage."""

    folder: Path
    programs: tuple[Programs, ...]
    models: tuple[Models, ...]
    stages: tuple[SurveyStage, ...] = (SurveyStage.EXPLAIN,)
    modes: tuple[str, ...] = ("eval",)
    backends: tuple[str, ...] = ("inductor",)
    devices: tuple[str, ...] = ("cpu",)
    dtypes: tuple[str | None, ...] = (None,)
    pythons: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    seconds: float = 600.0
    memory: int | None = None
    place: str = "."


def read_manifest(path: Path) -> SurveyManifest:
    """The manifest in a file of TOML.  Raises ManifestError."""

    def fail(message: str, key: str) -> ManifestError:
        return ManifestError(f"{path}: {key}: {message}")

    try:
        data = TomlTable(parse_toml(path.read_text(encoding="utf-8")), fail)
    except OSError as error:
        raise ManifestError(f"{path} cannot be read: {error.strerror}") from error
    except (TomlProblem, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: {error}") from error
    known = ("program", "model", "folder", "stages", "modes", "backends", "devices", "dtypes", "pythons")
    data.only(*known, "sources", "seconds", "memory")
    folder = Path(os.path.abspath(path.parent / data.text("folder", ".")))
    if not folder.is_dir():
        raise fail(f"there is no folder {folder}", "folder")
    programs = tuple(map(_programs, data.tables("program")))
    models = tuple(map(_models, data.tables("model")))
    if not (programs or models):
        raise ManifestError(f"{path} names nothing to run: add a [[program]] or a [[model]]")
    stages = data.strings("stages", [one.value for one in SurveyStage]) or (SurveyStage.EXPLAIN.value,)
    if SurveyStage.EXPLAIN.value not in stages:
        raise fail("explain must be among them: the others need what it saw", "stages")
    return SurveyManifest(
        folder=folder,
        programs=programs,
        models=models,
        stages=tuple(stage for stage in SurveyStage if stage.value in stages),
        modes=data.strings("modes", MODES) or ("eval",),
        backends=data.strings("backends") or ("inductor",),
        devices=data.strings("devices") or ("cpu",),
        dtypes=data.strings("dtypes") or (None,),
        # Links stay: they decide which packages an interpreter has.
        pythons=tuple(
            os.path.abspath(folder / os.path.expanduser(path)) if os.sep in path else path
            for path in data.strings("pythons")
        ),
        sources=data.strings("sources"),
        seconds=_seconds(data),
        memory=_memory(data),
        place=path_from(path.parent, folder),
    )


def _programs(table: TomlTable) -> Programs:
    table.only("name", "command", "files")
    command, files = table.strings("command"), table.text("files", "") or None
    if bool(command) == (files is not None):
        reason = 'either command = ["train.py", "--steps", "2"] or files = "drivers/*.py" is needed'
        raise table.error(reason, "command")
    if files is not None and "name" in table.values:
        raise table.error("files are called by their paths: leave it out", "name")
    return Programs(table.text("name", "") or None, command, files)


def _models(table: TomlTable) -> Models:
    table.only("name", "build", "names")
    build, names = table.text("build"), table.values.get("names")
    listed = table.strings("names") if names is not None else ()
    if names == []:
        raise table.error("must not be empty", "names")
    for key, value in (("build", build), ("names", names if isinstance(names, str) else build)):
        if not re.fullmatch(r"[\w.]+:[\w.]+", value):
            raise table.error(f"must be MODULE:CALLABLE, not {value!r}", key)
    return Models(table.text("name", "") or None, build, names if isinstance(names, str) else listed or None)


def _seconds(data: TomlTable) -> float:
    value = data.values.get("seconds", 600)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**7:
        raise data.error("must be a number of seconds above 0", "seconds")
    return float(value)


def _memory(data: TomlTable) -> int | None:
    match = _SIZE.fullmatch(data.text("memory", "0 MiB"))
    if match is None:
        raise data.error('must be a size such as "4 GiB" or "800 MiB"', "memory")
    return int(float(match[1]) * _UNITS[match[2]]) or None


_PATIENCE = 600.0  # seconds that an answer may take


@dataclass(frozen=True, slots=True)
class PlannedUnit:
    """A unit with the Python that runs it, and the ``folder`` on this machine.  Results are kept under its ``key``."""

    unit: Unit
    environment: Environment
    folder: str = "."

    @property
    def key(self) -> str:
        return self.unit.key(self.environment)


def planned(manifest: SurveyManifest) -> list[PlannedUnit]:
    """All units of a manifest.  Runs its Pythons, and calls and imports there what it names.  Raises ManifestError."""
    sources = _sources(manifest)
    found: dict[str, PlannedUnit] = {}
    for python in manifest.pythons or (sys.executable,):
        environment = environment_of(python)
        for unit in _units(manifest, python, sources):
            one = PlannedUnit(unit, environment, str(manifest.folder))
            found.setdefault(one.key, one)
    return list(found.values())


def environment_of(python: str) -> Environment:
    """The version and the packages of a Python.  Raises ManifestError where it does not run."""
    try:
        version, packages = _answer(python, "packages()")
    except (subprocess.CalledProcessError, ValueError) as error:
        raise ManifestError(f"pythons: {python} does not run this breakscan: install it there") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ManifestError(f"pythons: {python} does not run: {error}") from error
    return Environment(version, python, packages)


def _answer(python: str, expression: str, *arguments: str, folder: Path | None = None) -> Any:
    """The value of an expression over :mod:`.model_program`, in a process of its own: it can run code of users."""
    code = "import json, sys; from breakscan.survey.model_program import load, packages"
    command = [python, "-c", f"{code}; print(json.dumps({expression}))", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, cwd=folder, check=True)
    return json.loads(done.stdout.strip().rpartition("\n")[2])


def _units(manifest: SurveyManifest, python: str, sources: str) -> Iterator[Unit]:
    folder = manifest.place
    for program in manifest.programs:
        commands = [(program.name, program.command)] if program.command else _files(manifest, program.files or "")
        for name, command in commands:
            yield Unit(name or " ".join(command), command=command, folder=folder, sources=sources)
    for models in manifest.models:
        conditions = product(manifest.modes, manifest.backends, manifest.devices, manifest.dtypes)
        for (name, argument), (mode, backend, device, dtype) in product(_named(manifest, models, python), conditions):
            yield Unit(name, (), models.build, argument, mode, backend, device, dtype, folder, sources)


def _files(manifest: SurveyManifest, pattern: str) -> list[tuple[str | None, tuple[str, ...]]]:
    try:
        found = sorted(path.relative_to(manifest.folder).as_posix() for path in manifest.folder.glob(pattern))
    except (ValueError, NotImplementedError) as error:
        raise ManifestError(f"program.files: {pattern!r} is no pattern below the folder: {error}") from error
    if not found:
        raise ManifestError(f"program.files: {pattern!r} matches nothing in {manifest.folder}")
    return [(name, (name,)) for name in found]


def _named(manifest: SurveyManifest, models: Models, python: str) -> list[tuple[str, str | None]]:
    """The models, each with what ``build`` is called with."""
    if models.names is None:
        return [(models.name or models.build, None)]
    names = models.names if isinstance(models.names, tuple) else _names_of(manifest, models.names, python)
    prefix = f"{models.name}/" if models.name else ""
    return [(prefix + name, name) for name in dict.fromkeys(names)]


def _names_of(manifest: SurveyManifest, place: str, python: str) -> list[str]:
    """Return the names that a callable returns."""
    try:
        names: list[str] = _answer(python, "[*map(str, load(sys.argv[1])())]", place, folder=manifest.folder)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        said = str(getattr(error, "stderr", None) or error).strip().rpartition("\n")[2]
        raise ManifestError(f"model.names: {place} failed: {said}") from error
    return names


def _sources(manifest: SurveyManifest) -> str:
    """A digest of the files that the manifest says its programs rest on."""
    found = blake2b(digest_size=16)
    if manifest.sources:
        paths = {path for pattern in manifest.sources for path in manifest.folder.glob(pattern)}
    else:
        paths = set(discover([manifest.folder], load_settings(manifest.folder)).files)
    for path in sorted(paths):
        try:
            content = read_regular_file(str(path))[0]
        except OSError:
            continue
        name = os.fsencode(path.relative_to(manifest.folder))
        found.update(b"%d %s %d " % (len(name), name, len(content)) + content)
    return found.hexdigest()
