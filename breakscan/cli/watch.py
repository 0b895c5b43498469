"""``check --watch``: checks again whenever a file changes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click

from breakscan.rulebook.config import Settings
from breakscan.source.files import SKIPPED_FOLDERS, is_settings_file
from breakscan.source.python_text import is_notebook

FORMATS = ("full", "concise")
DEBOUNCE = 300
"""Milliseconds in which changes are gathered: editors write a file in several steps."""
INTERRUPTED = 130
"""The status where Ctrl-C came before the end of the first check."""
LOOK = 200
"""Milliseconds after which it goes on where nothing has changed."""


def require_watchable(format_: str, no_part: Iterable[str]) -> None:
    """Raises UsageError for options that make no sense here, of which ``no_part`` are given.

    Raises ClickException where the library is not installed.
    """
    for option in no_part:
        raise click.UsageError(f"--watch cannot be combined with {option}")
    if format_ not in FORMATS:
        raise click.UsageError(f"--watch shows findings on a screen: use --format {' or '.join(FORMATS)}")
    try:
        import watchfiles  # noqa: F401
    except ImportError as error:
        raise click.ClickException(
            "--watch needs watchfiles: install breakscan with its extra 'watch', as in 'breakscan[watch]'"
        ) from error


def watch(arguments: Sequence[str], paths: Iterable[str], named: Iterable[Settings], only_read: bool) -> int:
    """Runs ``breakscan`` with these arguments, and again after each change, until Ctrl-C.

    Returns the status of the last check.  Each is a process: whatever has changed counts, and nothing that goes wrong
    ends the watch.

    ``only_read`` says that there is a baseline, which code that is being edited must not change.
    """
    import watchfiles

    command = [sys.executable, "-m", "breakscan", *one_check(arguments, only_read)]
    folders = watched_folders(paths, named)
    status = None
    changed = watchfiles.watch(
        *folders, watch_filter=_counts(folders), debounce=DEBOUNCE, rust_timeout=LOOK, yield_on_timeout=True
    )
    try:
        # The first check comes after the first look: whatever changes from then on is seen.
        for changes in changed:
            if changes or status is None:
                status = _checked(command)
                click.echo("breakscan: checks again when a file changes; Ctrl-C ends", err=True)
    except KeyboardInterrupt:
        pass
    return INTERRUPTED if status is None else status


def one_check(arguments: Sequence[str], only_read: bool) -> list[str]:
    """The arguments of one of the checks."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [one for one in arguments[:end] if one != "--watch"]
    locked = ["--locked"] if only_read and "--locked" not in options else []
    return [*options, *locked, *arguments[end:]]


def watched_folders(paths: Iterable[str], named: Iterable[Settings]) -> list[Path]:
    """The folders that are named, those of files that are, and those of configurations, where imported files lie."""
    given = (Path(os.path.abspath(path)) for path in paths)
    found = {path if path.is_dir() else path.parent for path in given}
    found |= {settings.root for settings in named if settings.config_file is not None}
    return sorted(folder for folder in found if not any(other in folder.parents for other in found))


def _counts(folders: Sequence[Path]) -> Callable[[object, str], bool]:
    """Whether a change of a file can change findings."""

    def counts(_: object, name: str) -> bool:
        path = Path(name)
        if not (path.suffix == ".py" or is_notebook(path) or is_settings_file(path)):
            return False
        inner = next((path.relative_to(folder) for folder in folders if folder in path.parents), path)
        return SKIPPED_FOLDERS.isdisjoint(inner.parts[:-1])

    return counts


def _checked(command: Sequence[str]) -> int:
    """The status of one check, whose report goes to the screen."""
    if sys.stdout.isatty():
        click.clear()
    return subprocess.run(command, check=False).returncode
