"""Checks files closely, as the rewrites need it: their findings, and what is known of their expressions."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from breakscan.check.interpreter.value_log import Notes, facts_of
from breakscan.check.pipeline.checker import Checker, Shown
from breakscan.check.pipeline.results import FileResult, Merged
from breakscan.model.facts import FileFacts
from breakscan.model.findings import Finding, SourceError
from breakscan.rulebook.config import FileSettings
from breakscan.source.module import SourceModule, SourceProblem
from breakscan.source.paths import display_path

MOST_KEPT = 64
"""The number of roots whose results are cached: the next files are mostly reached from the same ones."""


@dataclass(frozen=True, slots=True)
class Study:
    """The findings, in the order of their sites, and facts of one file.  ``errors`` are those of any root."""

    module: SourceModule
    findings: tuple[Finding, ...]
    facts: FileFacts
    errors: tuple[SourceError, ...]


class Studies:
    """Studies the files at ``paths``, which are absolute, one after the other.  What several of them import, or are
    reached from, is read once.  ``checkers`` may have checked the files already: their trees are used, and they decide
    whether observations are taken for true."""

    def __init__(self, settings: FileSettings, paths: Iterable[Path], checkers: Checker | None = None) -> None:
        self._checkers = checkers or Checker(settings)
        self._checkers.forget()
        self._shown = Shown(settings)
        self._paths = frozenset(paths)
        self._kept: OrderedDict[Path, tuple[FileResult, Notes]] = OrderedDict()

    def study(self, path: Path, text: str, roots: Sequence[Path]) -> Study:
        """Studies a text that goes by an absolute path, as it is reached from the files ``roots``. Raises SourceProblem
        where the text cannot be parsed."""
        project = self._checkers.of(path).project
        project.start(path)
        reached_from = dict.fromkeys((*roots, path))
        try:
            is_on_disk = project.load(path).module.text == text
        except SourceProblem:  # the text comes from elsewhere
            is_on_disk = False
        if is_on_disk:
            return self._study(path, [self._checked(root) for root in reached_from])
        with self._checkers.changed(path, text, reached_from):
            return self._study(path, [self._check(root) for root in reached_from])

    def release(self) -> None:
        """Frees all trees: nothing is studied any more."""
        self._kept.clear()
        self._checkers.release()

    def _study(self, path: Path, checked: Sequence[tuple[FileResult, Notes]]) -> Study:
        merged = Merged()
        display = display_path(path, Path.cwd())
        for result, _ in checked:
            for finding in result.findings:
                if finding.site.path == display and self._shown.shows(finding):
                    merged.add(finding)
        module = self._checkers.of(path).project.load(path).module
        ordered = sorted(merged.findings(), key=lambda f: (f.site.line, f.site.column, f.rule))
        facts = facts_of(module, [notes for _, notes in checked])
        errors = tuple(error for result, _ in checked for error in result.errors)
        return Study(module, tuple(ordered), facts, errors)

    def _checked(self, root: Path) -> tuple[FileResult, Notes]:
        known = self._kept.pop(root, None) or self._check(root)
        self._kept[root] = known
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return known

    def _check(self, root: Path) -> tuple[FileResult, Notes]:
        checker = self._checkers.of(root)
        notes = Notes(self._paths)
        return checker.check_file(root, notes=notes), notes
