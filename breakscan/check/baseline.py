"""The findings of ``check`` that a project allows: their identity when lines move, the comparison with those of a
check, and the committed file that holds them, which only shrinks by itself."""

import os
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from breakscan.model.findings import CheckResult, Finding, Mode
from breakscan.rulebook.config import REGIONS, FileSettings, Regions, enabled_rules, resolve_target
from breakscan.source.code_match import identity, matched
from breakscan.source.module import SourceProblem, read_source
from breakscan.source.paths import path_from
from breakscan.source.python_text import python_text
from breakscan.source.toml_text import quoted
from breakscan.source.writing import is_count, is_text, not_ours, read_committed, table_values


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """The findings of one rule on lines of one text in a function, ``count`` of them.  ``path`` has slashes, and is
    relative to the folder of the file that keeps them.  ``findings`` are those of the present code, in the order of
    lines."""

    path: str
    function: str | None
    rule: str
    code: str
    count: int
    findings: tuple[Finding, ...] = field(default=(), compare=False)

    @property
    def kind(self) -> str:
        return self.rule


def checked_lines(path: str) -> list[str]:
    """The lines that the findings of a file count: of a notebook, its code.  None where it is another file now."""
    try:
        return python_text(read_source(Path(path), path), path, path).split("\n")
    except SourceProblem:
        return []


def known_findings(
    findings: Iterable[Finding], folder: str, here: str | None = None, lines: Callable[[str], list[str]] = checked_lines
) -> list[KnownFinding]:
    """The findings of a check.  Their paths are relative to the working directory, which is also called ``here``;
    ``lines`` reads a file by such a path.  ``folder`` is absolute."""
    texts: dict[str, list[str]] = {}
    found: dict[Hashable, list[tuple[KnownFinding, Finding]]] = {}
    for finding in findings:
        site = finding.site
        if site.path not in texts:
            texts[site.path] = lines(site.path)
        code = "".join(texts[site.path][site.line - 1 : site.line]).strip()
        known = KnownFinding(relative(site.path, folder, here), finding.function, finding.rule, code, 1)
        found.setdefault(identity(known), []).append((known, finding))
    return [
        KnownFinding(one.path, one.function, one.rule, one.code, len(group), tuple(finding for _, finding in group))
        for group in found.values()
        for one, _ in group[:1]
    ]


def relative(path: str, folder: str, here: str | None = None) -> str:
    """A path, absolute or below ``here`` (by default the working directory), relative to a folder, with slashes."""
    return path_from(folder, os.path.abspath(os.path.join(here or "", path)))


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """``new`` findings are not allowed, ``known`` others are; ``gone`` that were allowed are not found any more.
    ``follows`` is what to allow from now on, of which ``unchecked`` entries were not looked at."""

    new: tuple[Finding, ...]
    known: int
    gone: int
    follows: tuple[KnownFinding, ...]
    unchecked: int = 0


def compare(
    allowed: Sequence[KnownFinding],
    found: Sequence[KnownFinding],
    was_checked: Callable[[KnownFinding], bool] = lambda one: True,
    stays: Callable[[KnownFinding], bool] = lambda one: False,
    *,
    add: bool = False,
) -> BaselineComparison:
    """Compares; what ``was_checked`` denies stays allowed, and what ``stays`` says does, found or not.  With ``add``,
    what is new is allowed from now on.  Code that only moved to another file or function is the same."""
    looked_at = [one for one in allowed if was_checked(one)]
    elsewhere: list[Callable[[KnownFinding], Hashable]] = [
        lambda one: (one.function, one.rule, one.code),
        lambda one: (one.path, one.rule, one.code),
    ]
    match = matched(looked_at, found, elsewhere)
    new = [finding for one in match.new for finding in one.findings]
    seen = set(looked_at)
    unchecked = [one for one in allowed if one not in seen]
    follows = list(unchecked)
    known = gone = 0
    for before, now in match.pairs:
        new += now.findings[before.count :]
        known += min(before.count, now.count)
        least = before.count if stays(before) else min(before.count, now.count)
        gone += max(0, before.count - max(least, now.count))
        follows.append(replace(now, count=max(least, now.count) if add else least))
    follows += match.new if add else []
    follows += filter(stays, match.gone)
    gone += sum(one.count for one in match.gone if not stays(one))
    order = {id(finding): number for number, finding in enumerate(f for one in found for f in one.findings)}
    new.sort(key=lambda finding: order[id(finding)])
    return BaselineComparison(tuple(new), known, gone, tuple(follows), len(unchecked))


VERSION = 1
_HEADER = """\
# The findings that `breakscan check --baseline` allows.  Commit this file.
# Written by breakscan: findings that are gone are removed; only --baseline-add adds some.
"""


class BaselineTarget(NamedTuple):
    """The target of a check: the version of torch (``2.13``), how code is compiled, and which code is."""

    torch: str
    mode: Mode
    regions: Regions


@dataclass(frozen=True, slots=True)
class FindingsBaseline:
    """A baseline: its targets, the paths of which it allows findings, and the findings that it allows.  Paths have
    slashes, and are relative to its folder."""

    targets: tuple[BaselineTarget, ...]
    paths: tuple[str, ...]
    findings: tuple[KnownFinding, ...]


def read_baseline(path: Path) -> FindingsBaseline | None:
    """The baseline in a file; None where there is no file.  Raises CommittedFileError."""
    data = read_committed(path, VERSION, "baseline")
    if data is None:
        return None
    targets, files = data.get("targets"), data.get("file", [])
    if not isinstance(targets, list) or not isinstance(files, list):
        raise not_ours(path, "baseline")
    table_values(path, "the top", data, {"paths": lambda one: isinstance(one, list) and all(map(is_text, one))})
    modes = [one.value for one in Mode]
    of_target = {"torch": is_text, "mode": modes.__contains__, "regions": REGIONS.__contains__}
    target_tables = [table_values(path, "targets", entry, of_target) for entry in targets]
    right = {"path": is_text, "findings": lambda one: isinstance(one, list)}
    tables = [table_values(path, "a [[file]]", entry, right) for entry in files]
    return FindingsBaseline(
        tuple(BaselineTarget(one["torch"], Mode(one["mode"]), one["regions"]) for one in target_tables),
        tuple(data["paths"]),
        tuple(_finding(path, table["path"], one) for table in tables for one in table["findings"]),
    )


def _finding(path: Path, name: str, entry: Any) -> KnownFinding:
    right = {
        "rule": is_text,
        "code": is_text,
        "function": lambda one: one is None or is_text(one),
        "count": lambda one: one is None or is_count(one),
    }
    code = entry.get("code") if isinstance(entry, dict) else None
    values = table_values(path, f"{name}: {code}", entry, right)
    return KnownFinding(name, values["function"], values["rule"], values["code"], values["count"] or 1)


def baseline_text(baseline: FindingsBaseline) -> str:
    """The content of a baseline: one line for each finding, so that changes merge."""
    targets = (
        f"{{ torch = {quoted(one.torch)}, mode = {quoted(one.mode.value)}, regions = {quoted(one.regions)} }}"
        for one in baseline.targets
    )
    paths = map(quoted, baseline.paths)
    head = f"version = {VERSION}\ntargets = [{', '.join(targets)}]\npaths = [{', '.join(paths)}]\n"
    parts = [_HEADER, head]
    ordered = sorted(baseline.findings, key=lambda one: (one.path, one.function or "", one.rule, one.code))
    for path, findings in groupby(ordered, key=lambda one: one.path):
        lines = "".join(f"  {_line(one)},\n" for one in findings)
        parts.append(f"\n[[file]]\npath = {quoted(path)}\nfindings = [\n{lines}]\n")
    return "".join(parts)


def _line(one: KnownFinding) -> str:
    function = [] if one.function is None else [f"function = {quoted(one.function)}"]
    count = [] if one.count == 1 else [f"count = {one.count}"]
    return f"{{ {', '.join([f'rule = {quoted(one.rule)}', *function, f'code = {quoted(one.code)}', *count])} }}"


@dataclass(frozen=True, slots=True)
class CheckedPaths:
    """The absolute paths that were named, and the files that were read below them: all of them if ``complete``."""

    paths: tuple[str, ...]
    files: frozenset[str]
    settings: FileSettings
    complete: bool
    _rules: dict[int, tuple[Collection[str], Collection[str]]] = field(default_factory=dict)
    """The ids that are on, and all ids, by settings."""

    @classmethod
    def of_run(
        cls, paths: Iterable[str], files: Iterable[Path], result: CheckResult, settings: FileSettings
    ) -> "CheckedPaths":
        """The scope of a check of some paths.  It read ``files``, except those that have errors in its result."""
        unread = {os.path.abspath(error.path) for error in result.errors}
        read = frozenset(map(str, files)) - unread
        left_out = any("exclude" in settings.of(Path(path)).options for path in read)
        return cls(tuple(map(os.path.abspath, paths)), read, settings, not unread and not left_out)

    def targets(self) -> tuple[BaselineTarget, ...]:
        """The targets that the files were checked for, without repetition."""
        all_settings = {id(one): one for one in map(self.settings.of, map(Path, sorted(self.files)))}
        targets = (BaselineTarget(resolve_target(one).torch, one.mode, one.regions) for one in all_settings.values())
        return tuple(dict.fromkeys(targets))

    def cover(self, baseline: FindingsBaseline, folder: str) -> bool:
        """True if all code was checked that a baseline in ``folder`` is of.  Else, code that was not checked can
        compile what is in files that were."""
        recorded = (_full(folder, path) for path in baseline.paths)
        return self.complete and all(_is_below(path, self.paths) for path in recorded if os.path.exists(path))

    def were_asked(self, known: KnownFinding, folder: str) -> bool:
        """True if the check would have found it in its file, or there is no such file or rule any more."""
        full = _full(folder, known.path)
        if not os.path.exists(full):
            return True
        if full not in self.files:
            return False
        own = self.settings.of(Path(full))
        if id(own) not in self._rules:
            library = own.library
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
