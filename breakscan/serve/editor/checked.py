"""Checks the texts of open files, as they are in the editor."""

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from breakscan.check.pipeline.check import check_paths, no_collector
from breakscan.check.pipeline.checker import Checker
from breakscan.check.pipeline.rewrite_facts import Studies
from breakscan.fix.planner import WantedRewrites, place_of, repair_file
from breakscan.model.findings import Finding, SourceError
from breakscan.rulebook.config import NearestSettings
from breakscan.rulebook.library import Library
from breakscan.source.files import is_excluded, is_settings_file


@dataclass(frozen=True, slots=True)
class CheckedText:
    """The result for a text, which the compiler reaches from ``roots``; ``depends`` are the files that it rests on."""

    path: Path
    text: str
    findings: tuple[Finding, ...]
    errors: tuple[SourceError, ...]
    roots: tuple[Path, ...]
    depends: frozenset[str]


@dataclass(frozen=True, slots=True)
class RewrittenText:
    """A text after one rewrite at one finding.  ``differences`` is None where it is safe."""

    rewrite: str
    differences: str | None
    after: str


class TextChecker:
    """Checks one text after the other, and keeps its results on the files that they import.  All methods raise
    ConfigError and RuleError for a wrong configuration."""

    def __init__(self) -> None:
        self._settings = NearestSettings()
        self._checkers = Checker(self._settings)
        self._studies: tuple[Path, Studies] | None = None
        """Those of the last file.  Separate from checking: rewrites need more, and forget the results without it."""
        self._rewritten: dict[tuple[Path, str, Finding], list[RewrittenText]] = {}
        """Rewrites of the last text: editors ask again whenever the cursor moves."""

    def refresh(self, paths: Collection[Path]) -> frozenset[str] | None:
        """Note that files on disk may have changed, come or gone.  Return them; None if settings are among them."""
        self._rewritten.clear()
        self._release_studies()
        if not any(map(is_settings_file, paths)):
            self._checkers.refresh(paths)
            return frozenset(map(str, paths))
        self._checkers.release()
        self._settings = NearestSettings()
        self._checkers = Checker(self._settings)
        return None

    def check(self, path: Path, text: str, reached_from: Sequence[Path] = ()) -> CheckedText:
        """Checks a text in place of that of a file at an absolute path.  ``reached_from`` are other files that compile
        code of this one.  Excluded files have no findings."""
        if is_excluded(str(path), self._settings):
            return CheckedText(path, text, (), (), (), frozenset())
        others = tuple(root for root in reached_from if root != path and root.is_file())
        with no_collector():
            result = check_paths((), self._settings, stdin=(text, path), reached_from=others, checkers=self._checkers)
        errors = tuple(error for error in result.errors if os.path.abspath(error.path) == str(path))
        return CheckedText(path, text, result.findings, errors, (path, *others), result.depends)

    def library(self, path: Path) -> Library:
        """Return the rules that apply to a file."""
        return self._settings.of(path).library

    def rewritten(self, checked: CheckedText, finding: Finding) -> Sequence[RewrittenText]:
        """Return the text after each rewrite of the finding's rule that applies; safe ones first."""
        key = checked.path, checked.text, finding
        if key not in self._rewritten:
            self._rewritten = {known: made for known, made in self._rewritten.items() if known[:2] == key[:2]}
            self._rewritten[key] = sorted(self._rewrites(checked, finding), key=lambda one: one.differences is not None)
        return self._rewritten[key]

    def _rewrites(self, checked: CheckedText, finding: Finding) -> Iterator[RewrittenText]:
        rule = self.library(checked.path).get(finding.rule)
        if self._studies is None or self._studies[0] != checked.path:
            self._release_studies()
            self._studies = checked.path, Studies(self._settings, [checked.path])
        studies = self._studies[1]
        for rewrite in rule.rewrites if rule else ():
            wanted = WantedRewrites(places={place_of(finding): rewrite})
            repair = repair_file(checked.path, checked.roots, self._settings, wanted, studies, text=checked.text)
            for one in repair.applied[:1]:
                yield RewrittenText(one.rewrite, one.difference, repair.after)

    def _release_studies(self) -> None:
        if self._studies is not None:
            self._studies[1].release()
        self._studies = None
