"""The option ``--diff`` of ``check``: what is new since another commit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from breakscan.baseline.comparison import BaselineComparison, compare
from breakscan.baseline.git_tree import GitError, GitTree, tree_before
from breakscan.baseline.known_findings import known_findings
from breakscan.baseline.moved_settings import MovedSettings
from breakscan.config import FileSettings
from breakscan.findings import CheckResult
from breakscan.source.files import is_excluded

diff_option = click.option(
    "--diff", metavar="REF", help="Report only what is new since the commit at which this branch left REF."
)


def compare_with_commit(
    ref: str,
    paths: Sequence[str],
    files: Sequence[Path],
    result: CheckResult,
    settings: FileSettings,
    jobs: int | None,
) -> BaselineComparison:
    """What ``check`` finds now in ``files``, those of ``paths``, beside what it finds in them before.

    Both are checked under the present settings.  Raises ClickException where git cannot tell.
    """
    from breakscan.analysis.pipeline.check import check_paths

    start = Path(os.path.abspath(paths[0]))
    try:
        with tree_before(ref, start if start.is_dir() else start.parent) as tree:
            now = [_in_tree(tree, str(file)) for file in files]
            gone = _gone(tree, [_in_tree(tree, path) for path in paths], settings)
            before = sorted(tree.copy / name for name in {*now, *gone} & tree.files)
            checked = check_paths(before, MovedSettings(settings, tree.root, tree.copy), jobs=jobs)
            allowed = known_findings(checked.findings, str(tree.copy))
            found = known_findings(result.findings, str(tree.root), os.path.realpath(os.getcwd()))
            return compare(allowed, found)
    except GitError as error:
        raise click.ClickException(f"--diff {ref}: {error}") from error


def _in_tree(tree: GitTree, path: str) -> str:
    """A path relative to the top of the working tree."""
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(tree.root):
        raise GitError(f"{path} is outside of the repository {tree.root}: check it without --diff")
    return real.relative_to(tree.root).as_posix()


def _gone(tree: GitTree, paths: Sequence[str], settings: FileSettings) -> Iterator[str]:
    """The files of the commit below some paths that are no more: their code may have moved."""
    for name in tree.files:
        is_below = any(path == "." or name.startswith(f"{path}/") for path in paths)
        full = tree.root / name
        if is_below and not full.exists() and not is_excluded(str(full), settings):
            yield name
