"""The baseline: the findings that a project allows, in a committed file that only shrinks by itself, and its scope."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from breakscan.check.baseline.known_findings import KnownFinding, relative
from breakscan.model.findings import CheckResult, Mode
from breakscan.rulebook.config import REGIONS, FileSettings, Regions, enabled_rules, library_of, resolve_target
from breakscan.source.toml_text import quoted
from breakscan.source.writing import damaged, not_ours, read_committed

# The baseline: the findings that a project allows, in a file that is committed and only shrinks by itself.


VERSION = 1
_HEADER = """\
# The findings that `breakscan check --baseline` allows.  Commit this file.
# breakscan writes it: what is gone is taken out, nothing is added but with --baseline-add.
"""


class BaselineTarget(NamedTuple):
    """What files were checked for: the version of torch (``2.13``), how code is compiled, and which code is."""

    torch: str
    mode: Mode
    regions: Regions


@dataclass(frozen=True, slots=True)
class FindingsBaseline:
    """What a baseline says: what it is for, the paths of which it allows findings, and what it allows.  Paths have
    slashes, and are relative to its folder."""

    targets: tuple[BaselineTarget, ...]
    paths: tuple[str, ...]
    findings: tuple[KnownFinding, ...]


def read_baseline(path: Path) -> FindingsBaseline | None:
    """The baseline in a file; None where there is no file.  Raises CommittedFileError."""
    data = read_committed(path, VERSION, "baseline")
    if data is None:
        return None
    targets, paths, files = data.get("targets"), data.get("paths"), data.get("file", [])
    if not isinstance(targets, list) or not isinstance(files, list):
        raise not_ours(path, "baseline")
    if not isinstance(paths, list) or not all(isinstance(one, str) for one in paths):
        raise damaged(path, "the top", "paths")
    return FindingsBaseline(
        tuple(_target(path, entry) for entry in targets),
        tuple(paths),
        tuple(known for entry in files for known in _of_file(path, entry)),
    )


def _target(path: Path, entry: Any) -> BaselineTarget:
    table = entry if isinstance(entry, dict) else {}
    torch, mode, regions = table.get("torch"), table.get("mode"), table.get("regions")
    if not isinstance(torch, str):
        raise damaged(path, "targets", "torch")
    if mode not in [one.value for one in Mode]:
        raise damaged(path, "targets", "mode")
    if regions not in REGIONS:
        raise damaged(path, "targets", "regions")
    return BaselineTarget(torch, Mode(mode), regions)


def _of_file(path: Path, entry: Any) -> Iterable[KnownFinding]:
    table = entry if isinstance(entry, dict) else {}
    name, findings = table.get("path"), table.get("findings")
    if not isinstance(name, str) or not isinstance(findings, list):
        raise damaged(path, "a [[file]]", "path" if not isinstance(name, str) else "findings")
    return [_finding(path, name, one) for one in findings]


def _finding(path: Path, name: str, entry: Any) -> KnownFinding:
    table = entry if isinstance(entry, dict) else {}
    rule, function, code, count = (table.get(key) for key in ("rule", "function", "code", "count"))
    count = 1 if count is None else count
    where = f"{name}: {code}"
    if not isinstance(rule, str):
        raise damaged(path, where, "rule")
    if not isinstance(code, str):
        raise damaged(path, where, "code")
    if function is not None and not isinstance(function, str):
        raise damaged(path, where, "function")
    if type(count) is not int or count < 1:
        raise damaged(path, where, "count")
    return KnownFinding(name, function, rule, code, count)


def baseline_text(baseline: FindingsBaseline) -> str:
    """The content of a baseline: one line for each finding, so that changes merge."""
    targets = (
        f"{{ torch = {quoted(one.torch)}, mode = {quoted(one.mode.value)}, regions = {quoted(one.regions)} }}"
        for one in baseline.targets
    )
    paths = map(quoted, baseline.paths)
    head = f"version = {VERSION}\ntargets = [{', '.join(targets)}]\npaths = [{', '.join(paths)}]\n"
    parts = [_HEADER, head]
    for path, findings in groupby(sorted(baseline.findings, key=_order), key=lambda one: one.path):
        lines = "".join(f"  {_line(one)},\n" for one in findings)
        parts.append(f"\n[[file]]\npath = {quoted(path)}\nfindings = [\n{lines}]\n")
    return "".join(parts)


def _line(one: KnownFinding) -> str:
    function = [] if one.function is None else [f"function = {quoted(one.function)}"]
    count = [] if one.count == 1 else [f"count = {one.count}"]
    return f"{{ {', '.join([f'rule = {quoted(one.rule)}', *function, f'code = {quoted(one.code)}', *count])} }}"


def _order(one: KnownFinding) -> tuple[str, ...]:
    return one.path, one.function or "", one.rule, one.code


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
