"""The option ``--diff`` of ``check``: what is new since another commit."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from breakscan.check.baseline import BaselineComparison, compare, known_findings
from breakscan.check.git_tree import GitError, GitTree, MovedSettings, tree_before
from breakscan.check.pipeline.check import check_paths
from breakscan.check.pipeline.checker import Checker
from breakscan.check.pipeline.results import FileResult
from breakscan.model.findings import CheckResult
from breakscan.rulebook.config import FileSettings
from breakscan.source.files import is_excluded


def compare_with_commit(
    ref: str, paths: Sequence[str], files: Sequence[Path], result: CheckResult, settings: FileSettings, jobs: int | None
) -> BaselineComparison:
    """Compare the findings of ``check`` in ``files`` below ``paths`` with those at the other commit.  Both are checked
    with the present settings.  A cached result of now is used for both if all files that it depends on are unchanged.
    Raises ClickException if git fails."""
    here = Path.cwd()
    present = Checker(settings)
    start = Path(os.path.abspath(paths[0]))
    try:
        with tree_before(ref, start if start.is_dir() else start.parent) as tree:
            now = [_in_tree(tree, str(file)) for file in files]
            gone = _gone(tree, [_in_tree(tree, path) for path in paths], settings)
            at = {tree.copy / name: file for name, file in zip(now, files, strict=True) if name in tree.files}

            def earlier(path: Path) -> FileResult | None:
                known = present.known(at[path]) if path in at and at[path].is_relative_to(here) else None
                if known is None or not all(map(tree.is_unchanged, known.depends)):
                    return None
                sites = (one.site.path for one in (*known.findings, *known.suppressed))
                return None if any(map(os.path.isabs, sites)) else known

            before = sorted({*at, *(tree.copy / name for name in gone)})
            # In the same place of the copy, what is below it has the same paths in the findings of both.
            with _working_directory(_place_in_copy(tree, here)):
                moved = MovedSettings(settings, tree.root, tree.copy)
                checked = check_paths(before, moved, jobs=jobs, earlier=earlier)
                allowed = known_findings(checked.findings, str(tree.copy))
            found = known_findings(result.findings, str(tree.root), os.path.realpath(here))
            return compare(allowed, found)
    except GitError as error:
        raise click.ClickException(f"--diff {ref}: {error}") from error


@contextmanager
def _working_directory(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _place_in_copy(tree: GitTree, folder: Path) -> Path:
    """Return the folder in the copy for a folder of the working tree; any other folder as it is."""
    real = Path(os.path.realpath(folder))
    return tree.copy / real.relative_to(tree.root) if real.is_relative_to(tree.root) else folder


def _in_tree(tree: GitTree, path: str) -> str:
    """A path relative to the top of the working tree."""
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(tree.root):
        raise GitError(f"{path} is outside of the repository {tree.root}: check it without --diff")
    return real.relative_to(tree.root).as_posix()


def _gone(tree: GitTree, paths: Sequence[str], settings: FileSettings) -> Iterator[str]:
    """Yield the files of the commit below some paths that no longer exist: their code may have moved."""
    for name in tree.files:
        is_below = any(path == "." or name.startswith(f"{path}/") for path in paths)
        full = tree.root / name
        if is_below and not full.exists() and not is_excluded(str(full), settings):
            yield name
