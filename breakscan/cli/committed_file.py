"""A committed file of what is allowed, lock or baseline, with the options ``--NAME``, ``--locked``, ``--NAME-add``"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from breakscan.source.writing import CommittedFileError, write_committed

T = TypeVar("T")
NOT_MET = 1  # the exit status if there is something that a gate or such a file does not allow


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """The file, and whether it may be written, and grow."""

    path: Path
    locked: bool
    add: bool

    @property
    def folder(self) -> str:
        return os.path.dirname(os.path.abspath(self.path))

    def change(self, text: str, words: str) -> int:
        """Rewrite a file that is out of date, or refuse to; return the exit status.  ``words`` name the change."""
        if self.locked:
            return self.refuse(f"{self.path} is out of date ({words}): run without --locked, and commit it")
        return self.write(text, f"was rewritten ({words}): commit it")

    def write(self, text: str, said: str) -> int:
        """Write the file, and return the exit status.  Raises ClickException if it cannot be written."""
        try:
            write_committed(self.path, text)
        except CommittedFileError as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"breakscan: {self.path} {said}", err=True)
        return 0

    def refuse(self, *sentences: str) -> int:
        """Print what is not allowed, and return the exit status."""
        for sentence in sentences:
            click.echo(f"breakscan: {sentence}", err=True)
        return NOT_MET


def read_file(
    name: str, path: Path | None, locked: bool, add: bool, read: Callable[[Path], T | None]
) -> tuple[CommittedFile, T | None] | None:
    """Return the file that the options name, with its content: None if it does not exist yet.  Raises UsageError for
    options that cannot be combined, ClickException for a file that cannot be used."""
    if path is None:
        if locked or add:
            raise click.UsageError(f"{'--locked' if locked else f'--{name}-add'} goes with --{name} FILE")
        return None
    if locked and add:
        raise click.UsageError(f"--{name}-add writes the {name}, which --locked forbids")
    try:
        found = read(path)
    except CommittedFileError as error:
        raise click.ClickException(str(error)) from error
    if found is None and locked:
        raise click.ClickException(f"there is no {path}: run once without --locked, and commit it")
    return CommittedFile(path, locked, add), found
