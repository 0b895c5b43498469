"""Which findings are shown: the settings of the file that holds a finding decide, whichever file it is reached from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from breakscan.check.pipeline.merge import CONFIDENCE_ORDER
from breakscan.model.findings import Confidence, Finding
from breakscan.rulebook.config import FileSettings, Settings, enabled_rules
from breakscan.rulebook.library import load_library
from breakscan.source.per_file_ignores import PerFileIgnores


@dataclass(frozen=True, slots=True)
class _Wanted:
    rules: frozenset[str]
    confidences: frozenset[Confidence]
    per_file: PerFileIgnores


class Shown:
    """The findings that are shown, by the settings of files."""

    def __init__(self, settings: FileSettings) -> None:
        self._settings = settings
        self._cwd = Path.cwd()
        self._wanted: dict[int, _Wanted] = {}
        self._files: dict[str, tuple[frozenset[str], frozenset[Confidence]]] = {}
        """The rules and confidences that are shown in a file, by the path that findings have."""

    def shows(self, finding: Finding) -> bool:
        """Whether settings select the rule and the confidence of a finding; comments are another matter."""
        path = finding.site.path
        known = self._files.get(path)
        if known is None:
            known = self._files[path] = self._in_file(self._cwd / path)
        return finding.rule in known[0] and finding.confidence in known[1]

    def _in_file(self, path: Path) -> tuple[frozenset[str], frozenset[Confidence]]:
        settings = self._settings.of(path)
        wanted = self._wanted.get(id(settings))
        if wanted is None:
            wanted = self._wanted[id(settings)] = _wanted(settings)
        library = load_library(settings.rule_folders)
        rules = (library.get(rule) for rule in wanted.rules)
        off = {rule.id for rule in rules if rule and wanted.per_file.covers(path, rule.id, rule.name)}
        return wanted.rules - off, wanted.confidences


def _wanted(settings: Settings) -> _Wanted:
    rules = enabled_rules(settings, load_library(settings.rule_folders))
    confidences = frozenset(CONFIDENCE_ORDER[: CONFIDENCE_ORDER.index(settings.confidence) + 1])
    return _Wanted(rules, confidences, PerFileIgnores(settings))
