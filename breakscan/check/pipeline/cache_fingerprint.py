"""What the results of a run depend on besides the checked files, and where they are kept."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from hashlib import blake2b
from pathlib import Path

import breakscan
from breakscan.check.pipeline.cache import ResultCache
from breakscan.check.pipeline.results import FileResult
from breakscan.rulebook.config import FileSettings, Settings, Target, resolve_target
from breakscan.rulebook.library import shipped_rules

WITHOUT_EFFECT = frozenset(
    {
        *("config_file", "options", "origins", "target_torch", "exclude", "no_cache", "cache_dir"),
        *("select", "ignore", "per_file_ignores", "confidence", "baseline"),
    }
)
"""The settings that change no entry.  ``target_torch`` is in the target, with what is installed where it is unset;
``exclude`` only says which files are checked.  An entry holds all findings, those that settings hide too: a file can
hold findings of an entry that is another file's, under other settings.
"""
PARTS = (
    "*.py",
    "model/*.py",
    "check/**/*.py",
    "rulebook/**/*.py",
    "rulebook/torch_facts/data/**/*.json",
    "source/**/*.py",
)
"""The files of the package that a result comes from: not those of the other commands, nor how it is shown."""


def cache_fingerprint(settings: Settings, target: Target, cwd: str) -> str:
    """A digest that changes with whatever could change the result for an unchanged file.

    Contents count and not times: where breakscan is installed again, as in continuous integration, what was kept
    still holds.
    """
    digest = blake2b(digest_size=16)
    kept = {f.name: getattr(settings, f.name) for f in fields(settings) if f.name not in WITHOUT_EFFECT}
    python = sys.implementation.name, sys.version_info[:3]
    digest.update(repr((breakscan.__version__, python, cwd, target.torch, target.ledger, kept)).encode())
    digest.update(installation_digest(Path(breakscan.__file__).parent, shipped_rules(), target.ledger))
    digest.update(_digest(path for folder in settings.rule_folders for path in sorted(folder.glob("BRK*.md"))))
    return digest.hexdigest()


@cache
def installation_digest(package: Path, rules: Path, ledger: str) -> bytes:
    """A digest of breakscan itself, which does not change while a process runs."""
    parts = [path for pattern in PARTS for path in sorted(package.glob(pattern))]
    return _digest([*parts, rules / "ledger" / f"{ledger}.json", *sorted(rules.glob("BRK*.md"))])


def _digest(paths: Iterable[Path]) -> bytes:
    digest = blake2b(digest_size=16)
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError:
            content = b""
        digest.update(repr((path.name, len(content))).encode() + content)
    return digest.digest()


class Caches:
    """The results of earlier runs, for the files of each configuration."""

    def __init__(self, settings: FileSettings, cwd: Path) -> None:
        self._settings = settings
        self._cwd = cwd
        self._caches: dict[int, tuple[Settings, ResultCache | None]] = {}
        """By settings, which each entry keeps alive."""

    def of(self, path: Path) -> ResultCache | None:
        """The results for a file at an absolute path, and others under the same settings; None where none are kept."""
        settings = self._settings.of(path)
        if id(settings) not in self._caches:
            self._caches[id(settings)] = settings, self._opened(settings)
        return self._caches[id(settings)][1]

    def result(self, path: Path) -> FileResult | None:
        """The result that is kept for a file and still holds."""
        cache = self.of(path)
        return None if cache is None else cache.get(path)

    def _opened(self, settings: Settings) -> ResultCache | None:
        folder = settings.cache_folder
        if folder is None:
            return None
        return ResultCache(folder, cache_fingerprint(settings, resolve_target(settings), str(self._cwd)))
