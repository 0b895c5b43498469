"""The baseline: the findings that a project allows, in a file that is committed and only shrinks by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from breakscan.check.baseline.known_findings import KnownFinding
from breakscan.model.findings import Mode
from breakscan.rulebook.config import REGIONS, Regions
from breakscan.source.toml_text import quoted
from breakscan.source.writing import damaged, not_ours, read_committed

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
