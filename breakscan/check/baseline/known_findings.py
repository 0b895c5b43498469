"""How a finding is identified when lines above it change, and what ``check`` finds next to what is allowed."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from breakscan.model.findings import Finding
from breakscan.source.code_match import identity, matched
from breakscan.source.module import SourceProblem, read_source
from breakscan.source.python_text import python_text

# How a finding is identified when lines above it change, on another machine and in another working directory.


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """All findings of one rule on lines of one text in a function, ``count`` of them.  ``path`` has slashes, and is
    relative to the folder of the file that the finding is kept in.  ``findings`` are those of the present code, in
    the order of their lines."""

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
    """The lines that the findings of a file count: of a notebook, those of its code cells.  None where the file is not
    what was checked any more."""
    try:
        return python_text(read_source(Path(path), path), path, path).split("\n")
    except SourceProblem:
        return []


def known_findings(
    findings: Iterable[Finding],
    folder: str,
    here: str | None = None,
    lines: Callable[[str], list[str]] = checked_lines,
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
    """A path relative to a folder, with slashes.  The path is absolute, or relative to ``here``, by default the working
    directory."""
    full = os.path.abspath(os.path.join(here or "", path))
    try:
        return os.path.relpath(full, folder).replace(os.sep, "/")
    except ValueError:  # on another drive
        return full.replace(os.sep, "/")


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
    what is new is allowed from now on.

    Code that moved to another file, or whose function got another name, is the same if nothing else changed: there
    is no more of it than before.
    """
    looked_at = [one for one in allowed if was_checked(one)]
    match = matched(looked_at, found, [_without_path, _without_function])
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
    return BaselineComparison(
        tuple(sorted(new, key=lambda finding: order[id(finding)])), known, gone, tuple(follows), len(unchecked)
    )


def _without_path(one: KnownFinding) -> Hashable:
    return one.function, one.rule, one.code


def _without_function(one: KnownFinding) -> Hashable:
    return one.path, one.rule, one.code
