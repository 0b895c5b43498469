"""What a check looked at, of what a baseline allows."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from breakscan.check.baseline.baseline_file import BaselineTarget, FindingsBaseline
from breakscan.check.baseline.known_findings import KnownFinding, relative
from breakscan.model.findings import CheckResult
from breakscan.rulebook.config import FileSettings, enabled_rules, library_of, resolve_target


@dataclass(frozen=True, slots=True)
class CheckedPaths:
    """The absolute paths that were named, and the files that were read below them.  ``complete`` says that these are
    all files there."""

    paths: tuple[str, ...]
    files: frozenset[str]
    settings: FileSettings
    complete: bool
    _rules: dict[int, tuple[Collection[str], Collection[str]]] = field(default_factory=dict)
    """The ids that are on, and all ids, by settings."""

    @classmethod
    def of_run(
        cls, paths: Iterable[str], files: Iterable[Path], result: CheckResult, settings: FileSettings
    ) -> CheckedPaths:
        """What a check of some paths looked at.  It read ``files``, but for those that its result has errors of."""
        unread = {os.path.abspath(error.path) for error in result.errors}
        read = frozenset(map(str, files)) - unread
        left_out = any("exclude" in settings.of(Path(path)).options for path in read)
        return cls(tuple(map(os.path.abspath, paths)), read, settings, not unread and not left_out)

    def targets(self, owns: Callable[[Path], bool]) -> tuple[BaselineTarget, ...]:
        """What the files that a baseline ``owns`` were checked for, without repetition."""
        own = filter(owns, map(Path, sorted(self.files)))
        all_settings = {id(one): one for one in map(self.settings.of, own)}
        targets = (BaselineTarget(resolve_target(one).torch, one.mode, one.regions) for one in all_settings.values())
        return tuple(dict.fromkeys(targets))

    def cover(self, baseline: FindingsBaseline, folder: str) -> bool:
        """Whether all code was checked that a baseline in ``folder`` is of.  Else, code that was not checked can
        compile what is in files that were."""
        recorded = (_full(folder, path) for path in baseline.paths)
        return self.complete and all(_is_below(path, self.paths) for path in recorded if os.path.exists(path))

    def were_asked(self, known: KnownFinding, folder: str) -> bool:
        """Whether the check would have found it in its file, or there is no such file or rule any more."""
        full = _full(folder, known.path)
        if not os.path.exists(full):
            return True
        if full not in self.files:
            return False
        own = self.settings.of(Path(full))
        if id(own) not in self._rules:
            library = library_of([own])
            self._rules[id(own)] = enabled_rules(own, library), {rule.id for rule in library}
        enabled, rules = self._rules[id(own)]
        return known.rule in enabled or known.rule not in rules


def outermost(paths: Iterable[str], folder: str) -> tuple[str, ...]:
    """Absolute paths as a baseline in ``folder`` has them, without those that lie below others."""
    kept = list(dict.fromkeys(paths))
    return tuple(sorted(relative(one, folder) for one in kept if not _is_below(one, [k for k in kept if k != one])))


def _full(folder: str, path: str) -> str:
    return os.path.normpath(os.path.join(folder, path))


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(os.path.join(folder, "")) for folder in folders)
