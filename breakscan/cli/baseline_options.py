"""The options about the baseline of ``check``: ``--baseline``, ``--locked``, ``--baseline-add``."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from breakscan.baseline.baseline_file import (
    BaselineError,
    FindingsBaseline,
    baseline_text,
    read_baseline,
    write_baseline,
)
from breakscan.baseline.comparison import BaselineComparison, compare
from breakscan.baseline.known_findings import KnownFinding, known_findings
from breakscan.config import FileSettings, enabled_rules, library_of
from breakscan.findings import CheckResult, Mode
from breakscan.reports.check.baseline_words import change_words, made_words, other_target_sentence


def baseline_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options ``baseline``, ``locked`` and ``baseline_add`` to a command."""
    for option in (
        click.option("--baseline-add", is_flag=True, help="Add findings to the baseline that it does not allow yet."),
        click.option("--locked", is_flag=True, help="Exit with 1 where the baseline would change, and leave it."),
        click.option(
            "--baseline",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Report only what this file does not allow; take out of it what is gone.",
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Baselining:
    """A baseline as it was before the check; ``found`` is None where there is none yet."""

    path: Path
    found: FindingsBaseline | None
    locked: bool
    add: bool

    @property
    def folder(self) -> str:
        return os.path.dirname(os.path.abspath(self.path))

    def compare(self, result: CheckResult, was_checked: Callable[[KnownFinding], bool]) -> BaselineComparison:
        """What of a result is not allowed.  A baseline that does not exist yet allows everything.

        Raises ClickException for a baseline that is for another target.
        """
        found = known_findings(result.findings, self.folder)
        if self.found is None:
            return BaselineComparison((), len(result.findings), 0, tuple(found))
        others = [target for target in _targets(result) if target not in self.found.targets]
        if others and not self.add:
            raise click.ClickException(other_target_sentence(str(self.path), self.found, others))
        return compare(self.found.findings, found, was_checked, add=self.add)

    def status(self, found: BaselineComparison, result: CheckResult) -> int:
        """The exit status that the baseline asks for; writes it, and says on standard error what was written.

        Where something is new, the baseline is left as it is.  Raises ClickException where it cannot be written.
        """
        follows = FindingsBaseline(self._targets(found, result), found.follows)
        if self.found is None:
            return self._write(follows, made_words(follows))
        if found.new and not self.add:
            click.echo(f"breakscan: fix this, or allow it in {self.path} with --baseline-add", err=True)
            return 1
        if baseline_text(follows) == baseline_text(self.found):
            return 0
        if self.locked:
            words = change_words(found, added=False)
            click.echo(
                f"breakscan: {self.path} is out of date ({words}): run without --locked, and commit it", err=True
            )
            return 1
        return self._write(follows, f"was rewritten ({change_words(found, self.add)}): commit it")

    def _targets(self, found: BaselineComparison, result: CheckResult) -> tuple[tuple[str, Mode], ...]:
        """What the baseline that follows is for: what remains of it as it was may be for what it was for before."""
        asked = _targets(result)
        before = self.found.targets if self.found and (not self.add or found.unchecked) else ()
        return tuple(dict.fromkeys((*before, *asked)))

    def _write(self, baseline: FindingsBaseline, said: str) -> int:
        try:
            write_baseline(self.path, baseline)
        except BaselineError as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"breakscan: {self.path} {said}", err=True)
        return 0


def _targets(result: CheckResult) -> list[tuple[str, Mode]]:
    return list(dict.fromkeys((target.torch, target.mode) for target in result.targets))


def read_baselining(path: Path | None, locked: bool, add: bool) -> Baselining | None:
    """The baseline that the options ask for, read before anything is checked.  Raises UsageError where they do not go
    together, ClickException for a file that cannot be used."""
    if path is None:
        if locked or add:
            raise click.UsageError(f"{'--locked' if locked else '--baseline-add'} goes with --baseline FILE")
        return None
    if locked and add:
        raise click.UsageError("--baseline-add writes the baseline, which --locked forbids")
    try:
        found = read_baseline(path)
    except BaselineError as error:
        raise click.ClickException(str(error)) from error
    if found is None and locked:
        raise click.ClickException(f"there is no {path}: run once without --locked, and commit it")
    return Baselining(path, found, locked, add)


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
