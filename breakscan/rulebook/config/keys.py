"""Errors of configurations, and functions that read the values of their keys."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from breakscan.model.errors import InputError
from breakscan.model.torch_versions import has_compiler, supported_range
from breakscan.rulebook.document import nearest
from breakscan.rulebook.library import Library
from breakscan.source.paths import PathPattern, Patterns


class ConfigError(InputError):
    """A configuration file or option is wrong.  Names the file and line (from 1), or the option, and the key."""

    def __init__(self, message: str, *, path: Path | None = None, line: int = 1, key: str | None = None) -> None:
        self.path = path
        self.line = line
        self.key = key
        self.reason = message
        where = f"{path}:{line}: " if path else ""
        what = (key if path else f"--{key}") if key else ""
        super().__init__(f"{where}{what}{': ' if what else ''}{message}")


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """The place of a key's value: a file in ``folder``, where ``library()`` has the rules.

    ``fail(message, word)`` makes an error that names the file, the key, and its line, or the line after it that has
    ``word``.
    """

    folder: Path
    library: Callable[[], Library]
    fail: Callable[..., ConfigError]


Reader = Callable[[object, KeyPlace], object]
"""Returns the value of a key as settings have it.  Raises ConfigError for a wrong one."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a configuration file, as ``breakscan/schemas/config.schema.json`` describes it.  ``adds`` says that a
    value adds to the one that it goes over."""

    name: str
    read: Reader
    adds: bool = False


def read_boolean(value: object, at: KeyPlace) -> bool:
    if not isinstance(value, bool):
        raise at.fail("must be true or false")
    return value


def one_of(words: tuple[str, ...], convert: Callable[[str], object] = str) -> Reader:
    """Reads one of some words; ``convert`` makes what settings have."""

    def read(value: object, at: KeyPlace) -> object:
        if value not in words:
            raise at.fail(f"must be one of {', '.join(words)}{nearest(value, words)}")
        return convert(str(value))

    return read


def read_torch_version(value: object, at: KeyPlace) -> str:
    if isinstance(value, float):
        raise at.fail(f'must be a string: "{value}"')
    if problem := version_problem(value):
        raise at.fail(problem)
    return str(value)


def path_of(what: str) -> Reader:
    """Reads the path of a file or a folder that need not exist."""

    def read(value: object, at: KeyPlace) -> Path:
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise at.fail(f"must be the path of a {what}, as a string")
        return absolute(value, at.folder)

    return read


def read_folders(value: object, at: KeyPlace) -> tuple[Path, ...]:
    """Reads folders that exist."""
    folders = []
    for word in _strings(value, at):
        folder = absolute(word, at.folder) if "\0" not in word else at.folder / "\ufffd"
        if not folder.is_dir():
            raise at.fail(f"there is no folder {word!r} in {at.folder}", word)
        folders.append(folder)
    return tuple(folders)


def read_selectors(value: object, at: KeyPlace, under: str | None = None) -> tuple[str, ...]:
    """Reads words that select rules; ``under`` is the key of a value in a table."""
    words = _strings(value, at, under)
    for word in words:
        if problem := selector_problem(word, at.library()):
            raise at.fail(problem, word)
    return words


def read_patterns(value: object, at: KeyPlace) -> tuple[PathPattern, ...]:
    """Reads gitignore-style patterns."""
    words = _strings(value, at)
    for word in words:
        if problem := pattern_problem(word):
            raise at.fail(problem, word)
    return tuple(PathPattern(at.folder, word) for word in words)


def read_selectors_by_pattern(value: object, at: KeyPlace) -> tuple[tuple[PathPattern, tuple[str, ...]], ...]:
    """Reads a table: pattern → selectors."""
    if not isinstance(value, dict):
        raise at.fail('must be a table of lists, such as "tests/*" = ["BRK2"]')
    entries = []
    for pattern, selectors in value.items():
        if problem := pattern_problem(pattern):
            raise at.fail(problem, pattern)
        entries.append((PathPattern(at.folder, pattern), read_selectors(selectors, at, pattern)))
    return tuple(entries)


def _strings(value: object, at: KeyPlace, under: str | None = None) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise at.fail("must be a list of strings", under)
    return tuple(value)


def absolute(path: str | Path, base: Path) -> Path:
    """The absolute form of a path that may start with ``~``."""
    return Path(os.path.abspath(base / os.path.expanduser(path)))


_VERSION = re.compile(r"\d{1,9}\.\d{1,9}([.+a-z0-9]*)", re.ASCII)


def version_problem(value: object) -> str | None:
    """The reason why this is no torch version that can be checked for; None if it is one."""
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        return f'must be a torch version such as "2.13", not {value!r}'
    if not has_compiler(value):
        return f"torch {value} has no torch.compile, which came with 2.0; verdicts are of {supported_range()}"
    return None


def pattern_problem(pattern: str) -> str | None:
    """The reason why this is no gitignore-style pattern; None if it is one."""
    if not pattern.strip():
        return "a pattern must not be empty"
    try:
        Patterns("/", [pattern])
    except ValueError as error:
        return f"not a gitignore-style pattern: {error}"
    return None


def selector_problem(word: str, library: Library) -> str | None:
    """The reason why this word selects no rule; None if it selects one."""
    try:
        library.select(word)
    except ValueError as error:
        return str(error)
    return None
