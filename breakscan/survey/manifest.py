"""Reads a manifest: the programs and models of a survey, and the conditions under which they run."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakscan.model.words import InputError
from breakscan.rulebook.document import TomlTable
from breakscan.source.toml_text import TomlProblem, parse_toml
from breakscan.survey.units import SurveyStage

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
    """The programs and models of a survey, and their conditions.

    ``folder`` is where commands run and modules are found, and ``place`` is its path from the manifest, which is the
    same on each machine.  ``sources`` are patterns of the files that programs and models depend on, by default those
    that ``check`` reads there.  Limits are for each stage: ``seconds``, and ``memory`` in bytes.
    """

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

    data = TomlTable(_of_toml(path), fail)
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
        pythons=tuple(_python(folder, one) for one in data.strings("pythons")),
        sources=data.strings("sources"),
        seconds=_seconds(data),
        memory=_memory(data),
        place=_seen_from(path.parent, folder),
    )


def _of_toml(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ManifestError(f"{path} cannot be read: {error.strerror}") from error
    except (TomlProblem, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: {error}") from error


def _seen_from(here: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(folder, here)).as_posix()
    except ValueError:  # on another drive
        return folder.as_posix()


def _python(folder: Path, path: str) -> str:
    """The path of an interpreter; links stay, since they decide which packages it has."""
    return os.path.abspath(folder / os.path.expanduser(path)) if os.sep in path else path


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
