"""How a finding is known again when lines above it change, on another machine and in another working directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from breakscan.model.findings import Finding
from breakscan.source.code_match import identity
from breakscan.source.module import SourceProblem, read_source
from breakscan.source.python_text import python_text


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
