"""The baseline of ``check``: its options, read before a check, compared with what it found, and written after it."""

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
from breakscan.cli.options import FILE_PATH, KNOWN, flag, option
from breakscan.model.findings import Finding
from breakscan.model.words import counted
from breakscan.report.findings import MODE_WORDS
from breakscan.report.printable import visible
from breakscan.rulebook.config import FileSettings
from breakscan.source.paths import display_path


@dataclass(frozen=True, slots=True)
class Baselining:
    """A baseline as it was before the check; ``found`` is None if there is none yet."""

    file: CommittedFile
    found: FindingsBaseline | None

    def compare(
        self, findings: Sequence[Finding], checked: CheckedPaths, lines: Callable[[str], list[str]] = checked_lines
    ) -> BaselineComparison:
        """Compare with what is allowed; ``lines`` reads a file.  A baseline that does not exist yet allows everything.
        Raises ClickException for a baseline that is for another target."""
        folder = self.file.folder
        now = known_findings(findings, folder, lines=lines)
        if self.found is None:
            return BaselineComparison((), len(findings), 0, tuple(now))
        others = [target for target in checked.targets() if target not in self.found.targets]
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
        """Update the baseline, and return the exit status.  If there are new findings, the baseline stays as it is, and
        the status is 1 if one of them ``fails``.  If some paths could not be checked, no new baseline is made.  Raises
        ClickException if it cannot be written."""
        file, before = self.file, self.found
        if before is None and unchecked:
            return file.refuse(f"{file.path} was not made: {counted(unchecked, 'path')} not checked")
        if before is None:
            follows = FindingsBaseline(checked.targets(), outermost(checked.paths, file.folder), found.follows)
            allowed = counted(sum(one.count for one in follows.findings), "finding")
            return file.write(baseline_text(follows), f"was made, and allows {allowed}")
        if found.new and not file.add:
            if not any(map(fails, found.new)):
                return 0
            return file.refuse(f"fix this, or allow it in {file.path} with --baseline-add")
        # Entries that were not looked at are for the targets before.
        of_whole = file.add and not found.unchecked and checked.cover(before, file.folder)
        targets = dict.fromkeys((*(() if of_whole else before.targets), *checked.targets()))
        recorded = (os.path.normpath(os.path.join(file.folder, path)) for path in before.paths)
        paths = outermost((*recorded, *checked.paths), file.folder) if file.add else before.paths
        text = baseline_text(FindingsBaseline(tuple(targets), paths, found.follows))
        if text == baseline_text(before):
            return 0
        new = f"{counted(len(found.new), 'finding')} added" if file.add and found.new else ""
        gone = f"{counted(found.gone, 'finding')} gone" if found.gone else ""
        return file.change(text, ", ".join(filter(None, (new, gone))) or "lines edited")


@dataclass(frozen=True, slots=True)
class BaselineOptions:
    baseline: Path | None = option(
        "--baseline",
        "Report only findings that this file does not allow, and remove those that are gone from it.",
        KNOWN,
        type=FILE_PATH,
        metavar="FILE",
    )
    locked: bool = flag("--locked", "Exit with 1 if the baseline would change, and do not change it.", KNOWN)
    baseline_add: bool = flag("--baseline-add", "Add new findings to the baseline.", KNOWN)
    no_baseline: bool = flag("--no-baseline", "Report also what the baseline of the configuration allows.", KNOWN)

    def read(self, files: Iterable[Path], settings: FileSettings, *, off: bool = False) -> Baselining | None:
        """Return the baseline of some files: ``--baseline``, else the one that their configuration names, unless it is
        ``off``.  Raises UsageError for options that exclude each other, ClickException for a file of no use."""
        off = off or self.no_baseline
        if self.baseline is not None and off:
            raise click.UsageError("--baseline and --no-baseline cannot be combined")
        named = {} if off or self.baseline is not None else {one: settings.of(one) for one in files}
        kept = {own.baseline: own.config_file for own in named.values()}
        if len(kept) > 1:
            raise click.ClickException(
                "not all of these files have the same baseline in their configurations: check them one baseline at a "
                "time, name one with --baseline, or none with --no-baseline"
            )
        (from_config, config), *_ = kept.items() or ((None, None),)
        path = self.baseline or (from_config and Path(display_path(from_config, Path.cwd())))
        asked = read_file("baseline", path, self.locked, self.baseline_add, read_baseline)
        if asked is not None and from_config is not None and asked[1] is None:
            # Made here, it would allow everything wherever somebody forgot to commit it.
            raise click.ClickException(
                f"there is no {path}, which {display_path(config or '', Path.cwd())} names: make it with breakscan "
                f"check --baseline {path}, and commit it"
            )
        return None if asked is None else Baselining(*asked)


def _targets_words(targets: Iterable[BaselineTarget]) -> str:
    """``torch 2.13, default mode with --regions all``."""
    return " and ".join(
        f"torch {visible(one.torch)}, {MODE_WORDS[one.mode]}"
        + ("" if one.regions == "auto" else f" with --regions {one.regions}")
        for one in targets
    )
