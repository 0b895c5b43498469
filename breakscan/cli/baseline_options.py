"""The options about the baseline of ``check``: ``--baseline``, ``--locked``, ``--baseline-add``."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import click

from breakscan.baseline.baseline_file import FindingsBaseline, baseline_text, read_baseline
from breakscan.baseline.comparison import BaselineComparison, compare
from breakscan.baseline.known_findings import KnownFinding, known_findings
from breakscan.cli.committed_file import CommittedFile, committed_file_options, read_file
from breakscan.config import FileSettings, enabled_rules, library_of
from breakscan.findings import CheckResult, Mode
from breakscan.reports.check.baseline_words import change_words, made_words, other_target_sentence

baseline_options = committed_file_options(
    "baseline", "findings", "Report only what this file does not allow; take out of it what is gone."
)


@dataclass(frozen=True, slots=True)
class Baselining:
    """A baseline as it was before the check; ``found`` is None where there is none yet."""

    file: CommittedFile
    found: FindingsBaseline | None

    def compare(self, result: CheckResult, was_checked: Callable[[KnownFinding], bool]) -> BaselineComparison:
        """What of a result is not allowed.  A baseline that does not exist yet allows everything.

        Raises ClickException for a baseline that is for another target.
        """
        found = known_findings(result.findings, self.file.folder)
        if self.found is None:
            return BaselineComparison((), len(result.findings), 0, tuple(found))
        others = [target for target in _targets(result) if target not in self.found.targets]
        if others and not self.file.add:
            raise click.ClickException(other_target_sentence(str(self.file.path), self.found, others))
        return compare(self.found.findings, found, was_checked, add=self.file.add)

    def status(self, found: BaselineComparison, result: CheckResult) -> int:
        """The exit status that the baseline asks for; writes it, and says on standard error what was written.

        Where something is new, the baseline is left as it is.  Raises ClickException where it cannot be written.
        """
        follows = FindingsBaseline(self._targets(found, result), found.follows)
        text = baseline_text(follows)
        if self.found is None:
            return self.file.write(text, made_words(follows))
        if found.new and not self.file.add:
            return self.file.refuse(f"fix this, or allow it in {self.file.path} with --baseline-add")
        if text == baseline_text(self.found):
            return 0
        return self.file.change(text, change_words(found, self.file.add))

    def _targets(self, found: BaselineComparison, result: CheckResult) -> tuple[tuple[str, Mode], ...]:
        """What the baseline that follows is for: what remains of it as it was may be for what it was for before."""
        asked = _targets(result)
        before = self.found.targets if self.found and (not self.file.add or found.unchecked) else ()
        return tuple(dict.fromkeys((*before, *asked)))


def _targets(result: CheckResult) -> list[tuple[str, Mode]]:
    return list(dict.fromkeys((target.torch, target.mode) for target in result.targets))


def read_baselining(path: Path | None, locked: bool, add: bool) -> Baselining | None:
    """The baseline that the options ask for, read before anything is checked; see :func:`.read_file`."""
    asked = read_file("baseline", path, locked, add, read_baseline)
    return Baselining(*asked) if asked else None


def was_checked(folder: str, files: Collection[str], settings: FileSettings) -> Callable[[KnownFinding], bool]:
    """Whether a check would have found what a baseline in ``folder`` allows, if it is still there.  ``files`` are the
    absolute paths that were checked.  What is in no file, and of no rule, is gone."""
    rules: dict[int, tuple[Collection[str], Collection[str]]] = {}

    def asked(one: KnownFinding) -> bool:
        full = os.path.normpath(os.path.join(folder, one.path))
        if not os.path.exists(full):
            return True
        if full not in files:
            return False
        own = settings.of(Path(full))
        if id(own) not in rules:
            library = library_of([own])
            rules[id(own)] = enabled_rules(own, library), {rule.id for rule in library}
        enabled, known = rules[id(own)]
        return one.rule in enabled or one.rule not in known

    return asked
