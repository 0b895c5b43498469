"""The baseline of ``check``: its options, read before a check, compared with what it found, and written after it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from breakscan.check.baseline import (
    BaselineComparison,
    BaselineTarget,
    CheckedPaths,
    FindingsBaseline,
    baseline_text,
    checked_lines,
    compare,
    known_findings,
    outermost,
    read_baseline,
)
from breakscan.cli.committed_file import CommittedFile, read_file
from breakscan.cli.options import option
from breakscan.model.findings import Finding
from breakscan.model.words import counted
from breakscan.report.findings import MODE_WORDS
from breakscan.report.printable import visible
from breakscan.rulebook.config import FileSettings
from breakscan.source.paths import display_path


@dataclass(frozen=True, slots=True)
class Baselining:
    """A baseline as it was before the check; ``found`` is None if there is none yet.  ``owns`` is True for the absolute
    paths of files that it applies to."""

    file: CommittedFile
    found: FindingsBaseline | None
    owns: Callable[[Path], bool]

    def compare(
        self, findings: Sequence[Finding], checked: CheckedPaths, lines: Callable[[str], list[str]] = checked_lines
    ) -> ComparedBaseline:
        """Return the findings that are not allowed; ``lines`` reads a file.  A baseline that does not exist yet allows
        everything in its files.

        Raises ClickException for a baseline that is for another target.
        """
        own = [one for one in findings if self.owns(Path(os.path.abspath(one.site.path)))]
        part = self._compared(own, checked, lines)
        allowed = set(map(id, own)).difference(map(id, part.new))
        new = tuple(one for one in findings if id(one) not in allowed)
        return ComparedBaseline(new, part.known, self, part, checked)

    def _compared(
        self, findings: Sequence[Finding], checked: CheckedPaths, lines: Callable[[str], list[str]]
    ) -> BaselineComparison:
        folder = self.file.folder
        now = known_findings(findings, folder, lines=lines)
        if self.found is None:
            return BaselineComparison((), len(findings), 0, tuple(now))
        others = [target for target in checked.targets(self.owns) if target not in self.found.targets]
        if others and not self.file.add:
            raise click.ClickException(
                f"{self.file.path} is for {_targets_words(self.found.targets)}, and this run checks for "
                f"{_targets_words(others)}: set it in the configuration (target-torch, target, regions), so that "
                "everyone checks for the same, or write it again with --baseline-add"
            )
        whole = checked.cover(self.found, folder)
        return compare(
            self.found.findings,
            now,
            lambda one: checked.were_asked(one, folder),
            lambda one: not whole and os.path.exists(os.path.join(folder, one.path)),
            add=self.file.add,
        )

    def status(
        self, found: BaselineComparison, checked: CheckedPaths, unchecked: int, fails: Callable[[Finding], bool]
    ) -> int:
        """Update the baseline, and return the exit status.

        If there are new findings, the baseline stays as it is, and the status is 1 if one of them ``fails``.  If some
        paths could not be checked, no new baseline is made.  Raises ClickException if it cannot be written.
        """
        before = self.found
        if before is None and unchecked:
            return self.file.refuse(f"{self.file.path} was not made: {counted(unchecked, 'path')} not checked")
        if before is None:
            follows = FindingsBaseline(
                checked.targets(self.owns), outermost(checked.paths, self.file.folder), found.follows
            )
            allowed = counted(sum(one.count for one in follows.findings), "finding")
            return self.file.write(baseline_text(follows), f"was made, and allows {allowed}")
        if found.new and not self.file.add:
            if not any(map(fails, found.new)):
                return 0
            return self.file.refuse(f"fix this, or allow it in {self.file.path} with --baseline-add")
        follows = FindingsBaseline(self._targets(before, found, checked), self._paths(before, checked), found.follows)
        text = baseline_text(follows)
        if text == baseline_text(before):
            return 0
        new = f"{counted(len(found.new), 'finding')} added" if self.file.add and found.new else ""
        gone = f"{counted(found.gone, 'finding')} gone" if found.gone else ""
        return self.file.change(text, ", ".join(filter(None, (new, gone))) or "lines edited")

    def _targets(
        self, before: FindingsBaseline, found: BaselineComparison, checked: CheckedPaths
    ) -> tuple[BaselineTarget, ...]:
        """Return the targets of the next baseline; entries that remain may be for the targets before."""
        of_whole = self.file.add and not found.unchecked and checked.cover(before, self.file.folder)
        return tuple(dict.fromkeys((*(() if of_whole else before.targets), *checked.targets(self.owns))))

    def _paths(self, before: FindingsBaseline, checked: CheckedPaths) -> tuple[str, ...]:
        if not self.file.add:
            return before.paths
        folder = self.file.folder
        recorded = (os.path.normpath(os.path.join(folder, path)) for path in before.paths)
        return outermost((*recorded, *checked.paths), folder)


@dataclass(frozen=True, slots=True)
class ComparedBaseline:
    """The ``new`` findings, which the baseline does not allow, and the number of ``known`` ones.  What is in files of
    other configurations is new, too."""

    new: tuple[Finding, ...]
    known: int
    baseline: Baselining
    part: BaselineComparison
    checked: CheckedPaths

    def status(self, unchecked: int, fails: Callable[[Finding], bool]) -> int:
        """See :meth:`Baselining.status`."""
        own = set(map(id, self.part.new))
        others = any(fails(one) for one in self.new if id(one) not in own)
        return max(int(others), self.baseline.status(self.part, self.checked, unchecked, fails))


@dataclass(frozen=True, slots=True)
class BaselineOptions:
    """The options, as they were given."""

    baseline: Path | None = option(
        "--baseline",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Report only findings that this file does not allow, and remove those that are gone from it.",
    )
    locked: bool = option(
        "--locked", is_flag=True, help="Exit with 1 if the baseline would change, and do not change it."
    )
    baseline_add: bool = option("--baseline-add", is_flag=True, help="Add new findings to the baseline.")
    no_baseline: bool = option(
        "--no-baseline", is_flag=True, help="Report also what the baseline of the configuration allows."
    )

    def read(self, files: Iterable[Path], settings: FileSettings, *, off: bool = False) -> Baselining | None:
        """Return the baseline of some files: ``--baseline``, else the one that their configuration names, unless it is
        ``off``.

        Raises UsageError for options that cannot be combined, ClickException for a file that cannot be used.
        """
        off = off or self.no_baseline
        if self.baseline is not None and off:
            raise click.UsageError("--baseline and --no-baseline cannot be combined")
        named: dict[Path, Path | None] = {}
        for own in () if off or self.baseline is not None else map(settings.of, files):
            if own.baseline is not None:
                named.setdefault(own.baseline, own.config_file)
        shown = [Path(display_path(one, Path.cwd())) for one in named]
        if len(named) > 1:
            raise click.ClickException(
                f"these files have several baselines, {' and '.join(map(str, shown))}: check them one baseline at a "
                "time, or name one with --baseline"
            )
        path = self.baseline or next(iter(shown), None)
        asked = read_file("baseline", path, self.locked, self.baseline_add, read_baseline)
        if asked is None:
            return None
        if not named:
            return Baselining(*asked, lambda _: True)
        ((baseline, config),) = named.items()
        if asked[1] is None:
            # Made here, it would allow everything wherever somebody forgot to commit it.
            raise click.ClickException(
                f"there is no {path}, which {display_path(config or '', Path.cwd())} names: make it with breakscan "
                f"check --baseline {path}, and commit it"
            )
        return Baselining(*asked, lambda file: settings.of(file).baseline == baseline)


def _targets_words(targets: Iterable[BaselineTarget]) -> str:
    """``torch 2.13, default mode with --regions all``."""
    return " and ".join(
        f"torch {visible(one.torch)}, {MODE_WORDS[one.mode]}"
        + ("" if one.regions == "auto" else f" with --regions {one.regions}")
        for one in targets
    )
