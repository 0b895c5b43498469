"""Reads a manifest: the programs and models of a survey, and the conditions under which they run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakscan.model.words import InputError
from breakscan.rulebook.document import nearest
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
    data = _of_toml(path)
    reader = _Reader(path)
    known = ("program", "model", "folder", "stages", "modes", "backends", "devices", "dtypes", "pythons")
    reader.known(data, (*known, "sources", "seconds", "memory"), "")
    folder = Path(os.path.abspath(path.parent / reader.text(data, "folder", ".")))
    if not folder.is_dir():
        raise reader.error("folder", f"there is no folder {folder}")
    programs = tuple(reader.programs(table) for table in reader.tables(data, "program"))
    models = tuple(reader.models(table) for table in reader.tables(data, "model"))
    if not (programs or models):
        raise ManifestError(f"{path} names nothing to run: add a [[program]] or a [[model]]")
    stages = reader.words(data, "stages", ("explain",), tuple(one.value for one in SurveyStage))
    asked = tuple(stage for stage in SurveyStage if stage.value in stages)
    if SurveyStage.EXPLAIN not in asked:
        raise reader.error("stages", "explain must be among them: the others need what it saw")
    return SurveyManifest(
        folder=folder,
        programs=programs,
        models=models,
        stages=asked,
        modes=reader.words(data, "modes", ("eval",), MODES),
        backends=reader.words(data, "backends", ("inductor",)),
        devices=reader.words(data, "devices", ("cpu",)),
        dtypes=reader.words(data, "dtypes", ()) or (None,),
        pythons=tuple(_python(folder, one) for one in reader.words(data, "pythons", ())),
        sources=reader.words(data, "sources", ()),
        seconds=reader.seconds(data),
        memory=reader.memory(data),
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


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path

    def error(self, key: str, reason: str) -> ManifestError:
        return ManifestError(f"{self.path}: {key}: {reason}")

    def known(self, table: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
        for key in table:
            if key not in keys:
                hint = nearest(key, keys) or f" (known: {', '.join(keys)})"
                raise self.error(f"{where}{key}", f"unknown key{hint}")

    def text(self, table: Mapping[str, Any], key: str, default: str | None = None) -> Any:
        value = table.get(key, default)
        if value is not None and (not isinstance(value, str) or not value.strip() or "\0" in value):
            raise self.error(key, "must be a string")
        return value

    def words(
        self, table: Mapping[str, Any], key: str, default: tuple[str, ...], allowed: Sequence[str] = ()
    ) -> tuple[str, ...]:
        value = table.get(key, list(default))
        if not isinstance(value, list) or not all(isinstance(one, str) and one and "\0" not in one for one in value):
            raise self.error(key, "must be a list of strings")
        for one in value:
            if allowed and one not in allowed:
                raise self.error(key, f"must be among {', '.join(allowed)}{nearest(one, allowed)}")
        if not value and default:
            raise self.error(key, "must not be empty")
        return tuple(dict.fromkeys(value))

    def tables(self, data: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
        value = data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self.error(key, f"must be tables: [[{key}]]")
        return value

    def programs(self, table: Mapping[str, Any]) -> Programs:
        self.known(table, ("name", "command", "files"), "program.")
        command, files = self.words(table, "command", ()), self.text(table, "files")
        if bool(command) == (files is not None):
            raise self.error("program", 'needs either command = ["train.py", "--steps", "2"] or files = "drivers/*.py"')
        if files is not None and "name" in table:
            raise self.error("program.name", "files are called by their paths: leave it out")
        return Programs(self.text(table, "name"), command, files)

    def models(self, table: Mapping[str, Any]) -> Models:
        self.known(table, ("name", "build", "names"), "model.")
        build = self.text(table, "build")
        listed = self.words(table, "names", ()) if isinstance(table.get("names"), list) else None
        place = self.text(table, "names") if listed is None else None
        if build is None:
            raise self.error("model", 'needs build = "MODULE:CALLABLE"')
        if listed == ():
            raise self.error("model.names", "must not be empty")
        for key, value in (("build", build), ("names", place)):
            if value is not None and not re.fullmatch(r"[\w.]+:[\w.]+", value):
                raise self.error(f"model.{key}", f"must be MODULE:CALLABLE, not {value!r}")
        return Models(self.text(table, "name"), build, place if listed is None else listed)

    def seconds(self, data: Mapping[str, Any]) -> float:
        value = data.get("seconds", 600)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**7:
            raise self.error("seconds", "must be a number of seconds above 0")
        return float(value)

    def memory(self, data: Mapping[str, Any]) -> int | None:
        value = self.text(data, "memory")
        if value is None:
            return None
        match = _SIZE.fullmatch(value.strip())
        if match is None:
            raise self.error("memory", 'must be a size such as "4 GiB" or "800 MiB"')
        return int(float(match[1]) * _UNITS[match[2]])
