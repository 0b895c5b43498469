"""Finds the files to check: files that are named, and those below folders."""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from breakscan.model.findings import SourceError
from breakscan.source.paths import (
    PathPattern,
    PatternLayers,
    Patterns,
    PatternSettings,
    PatternSettingsOfFiles,
    display_path,
    relative_to,
)
from breakscan.source.python_text import NOTEBOOK

SKIPPED_FOLDERS = frozenset(
    {
        ".breakscan_cache", ".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox",
        ".pants.d", ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode",
        "__pycache__", "__pypackages__", "_build", "buck-out", "build", "dist", "node_modules", "site-packages",
        "venv",
    }
)  # fmt: skip
"""Folders that are never entered, whatever the configuration says.  A folder that is named is checked."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The files to check, as sorted absolute paths without duplicates, and the paths that could not be read."""

    files: tuple[Path, ...]
    errors: tuple[SourceError, ...]


def discover(
    paths: Iterable[Path | str], settings: PatternSettingsOfFiles, *, force_exclude: bool = False
) -> Discovery:
    """The Python files and notebooks that ``paths`` select.

    A file is selected whatever its name.  In a folder, every ``*.py`` and ``*.ipynb`` file is selected that neither a
    ``.gitignore`` nor the ``exclude`` of its settings nor :data:`SKIPPED_FOLDERS` excludes; links to folders are not
    followed.  ``force_exclude`` applies the excludes to the given paths as well, which pre-commit needs."""
    finder = _Finder(settings, force_exclude)
    for path in paths:
        finder.take(os.path.abspath(path))
    return Discovery(tuple(map(Path, sorted(finder.files))), tuple(finder.errors))


def is_excluded(path: str, settings: PatternSettingsOfFiles, *, is_folder: bool = False) -> bool:
    """True if the ``exclude`` of settings or :data:`SKIPPED_FOLDERS` excludes an absolute path or a folder above it.

    The folder of a configuration is subject to the next one above it, as when folders are walked."""
    while True:
        one = settings.of(Path(path))
        relative = relative_to(path, str(one.root))
        names = relative.split("/") if relative else []
        folders = names if is_folder else names[:-1]
        if not SKIPPED_FOLDERS.isdisjoint(folders) or PatternLayers(one.exclude).decide(path, is_folder):
            return True
        if relative is None:
            return False
        path, is_folder = str(one.root), True


class _Finder:
    def __init__(self, settings: PatternSettingsOfFiles, force_exclude: bool) -> None:
        self.settings = settings
        self.force_exclude = force_exclude
        self.cwd = os.getcwd()
        self.files: dict[str, None] = {}
        self.errors: list[SourceError] = []

    def take(self, path: str) -> None:
        try:
            is_folder = stat.S_ISDIR(os.stat(path).st_mode)
        except FileNotFoundError:
            self.fail(path, "there is no such file or folder")
            return
        except OSError as error:
            self.fail(path, f"cannot be read: {error.strerror}")
            return
        if self.force_exclude and is_excluded(path, self.settings, is_folder=is_folder):
            return
        if is_folder:
            self.walk(path)
        elif not os.path.isfile(path):
            self.fail(path, "is neither a file nor a folder")
        else:
            self.files[path] = None

    def walk(self, top: str) -> None:
        # A folder that is named is checked: ignore files above it do not hide the files below it.
        waiting = [(top, PatternLayers(_ignores_above(top)).without_those_that_hide(top))]
        excludes: dict[int, PatternLayers] = {}
        while waiting:
            folder, ignores = waiting.pop()
            try:
                with os.scandir(folder) as entries:
                    listed = list(entries)
            except OSError as error:
                self.fail(folder, f"cannot be read: {error.strerror}")
                continue
            if any(entry.name == ".gitignore" for entry in listed):
                ignores = PatternLayers(_read_gitignore(folder), ignores)
            settings = self.settings.of(Path(folder, "any file"))
            exclude = excludes.get(id(settings))
            if exclude is None:
                exclude = excludes[id(settings)] = _excluded_below(top, settings)
            for entry in listed:
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder:
                    wanted = entry.name not in SKIPPED_FOLDERS
                else:
                    wanted = entry.name.endswith((".py", NOTEBOOK)) and _is_regular(entry)
                if not wanted or exclude.decide(entry.path, is_folder) or ignores.decide(entry.path, is_folder):
                    continue
                if is_folder:
                    waiting.append((entry.path, ignores))
                else:
                    self.files[entry.path] = None

    def fail(self, path: str, message: str) -> None:
        self.errors.append(SourceError(display_path(path, self.cwd), 1, 1, message))


def _excluded_below(top: str, settings: PatternSettings) -> PatternLayers:
    """The files that settings exclude below a folder that is named, which they do not exclude itself."""
    if top == str(settings.root) or relative_to(top, str(settings.root)) is not None:
        return PatternLayers(settings.exclude).without_those_that_hide(top)
    if relative_to(str(settings.root), top) is not None:
        return PatternLayers(settings.exclude)
    return PatternLayers(replace(pattern, folder=Path(top)) for pattern in settings.exclude)


def _is_regular(entry: os.DirEntry[str]) -> bool:
    """True if it is a file, or a link to one: reading from a pipe would wait for ever."""
    try:
        return entry.is_file()
    except OSError:  # a link to itself
        return False


def _ignores_above(folder: str) -> Iterator[PathPattern]:
    """The patterns of the ``.gitignore`` files between the root of the git repository and a folder, outermost first."""
    parents = [str(parent) for parent in Path(folder).parents]
    in_repository = next((n for n, p in enumerate([folder, *parents]) if os.path.exists(os.path.join(p, ".git"))), 0)
    for parent in reversed(parents[:in_repository]):
        yield from _read_gitignore(parent)


def _read_gitignore(folder: str) -> Iterator[PathPattern]:
    try:
        lines = Path(folder, ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    yield from (PathPattern(Path(folder), line) for line in lines if _is_pattern(line))


def _is_pattern(line: str) -> bool:
    """False for a pattern that git cannot read either, and therefore skips."""
    try:
        Patterns("", [line])
    except (ValueError, re.error):
        return False
    return True


def is_settings_file(path: Path) -> bool:
    """True if a file decides about others: a configuration (any TOML file may be one), a rule, a ``.gitignore``."""
    return path.suffix in (".toml", ".md") or path.name == ".gitignore"


def usable_cores() -> int:
    """Those that the process may run on; all of the machine where the system does not report them (macOS, Windows)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
