"""From a manifest to the units of a survey: finds files, names, and the packages of each Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

from breakscan.rulebook.config import load_settings
from breakscan.source.files import discover
from breakscan.source.regular_files import read_regular_file
from breakscan.survey.manifest import ManifestError, Models, SurveyManifest
from breakscan.survey.units import Environment, Unit

_PATIENCE = 600.0
"""Seconds that an answer may take."""


@dataclass(frozen=True, slots=True)
class PlannedUnit:
    """A unit with the Python that runs it, and the ``folder`` on this machine.  Results are kept under its ``key``."""

    unit: Unit
    environment: Environment
    folder: str = "."
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.unit.key(self.environment))


def planned(manifest: SurveyManifest) -> list[PlannedUnit]:
    """All units of a manifest.  Runs the Pythons that it names, and calls and imports there what it names.  Raises
    ManifestError."""
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
