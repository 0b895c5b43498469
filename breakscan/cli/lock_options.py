"""The options about the lock: ``--lock``, ``--locked``, ``--lock-add``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from breakscan.cli.gate_options import NOT_MET
from breakscan.reports.explain.gate_words import lock_sentences, outdated_words
from breakscan.reports.shared.wording import counted
from breakscan.runtime.explain.explanation import Explanation
from breakscan.runtime.gates.gates import nothing_compiled
from breakscan.runtime.gates.lock_file import (
    Judgement,
    Lock,
    LockError,
    judge,
    lock_of,
    program_of,
    read_lock,
    write_lock,
)


def lock_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options ``lock``, ``locked`` and ``lock_add`` to a command."""
    for option in (
        click.option("--lock-add", is_flag=True, help="Add breaks to the lock that it does not allow yet."),
        click.option("--locked", is_flag=True, help="Exit with 1 where the lock would change, and leave it."),
        click.option(
            "--lock",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Exit with 1 on a break that this file does not allow; take out of it what is gone.",
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Locking:
    """A lock file as it was before the program ran; ``found`` is None where there is none yet."""

    path: Path
    found: Lock | None
    program: str
    locked: bool
    add: bool

    @property
    def folder(self) -> str:
        return os.path.dirname(os.path.abspath(self.path))

    def status(self, explanation: Explanation, failed: bool) -> int:
        """The exit status that the lock asks for; says on standard error what is wrong and what was written.

        After a run that failed, the lock is left as it is.  Raises ClickException where it cannot be written.
        """
        if nothing_compiled(explanation):
            return self.refuse(f"nothing was compiled: {self.path} is left as it is")
        if self.found is None:
            lock = lock_of(explanation, self.program, self.folder)
            return 0 if failed else self.write(lock, f"was made, and allows {counted(len(lock.breaks), 'break')}")
        found = judge(self.found, explanation, self.folder, add=self.add)
        if not found.is_kept and not self.add:
            return self.refuse(*lock_sentences(found, str(self.path)), self.advice(explanation))
        if failed or found.follows.breaks == self.found.breaks:
            return 0
        if self.locked:
            return self.refuse(
                f"{self.path} is out of date ({outdated_words(found)}): run without --locked, and commit it"
            )
        return self.write(found.follows, self.change(found))

    def advice(self, explanation: Explanation) -> str:
        """What to do about breaks that the lock does not allow."""
        assert self.found is not None
        torch = ".".join(explanation.torch.split(".")[:2])
        other = f" (it was written for torch {self.found.torch}, this is {torch})" if torch != self.found.torch else ""
        return f"fix this, or allow it in {self.path} with --lock-add{other}"

    def change(self, found: Judgement) -> str:
        grown = len(found.new) + len(found.worse) if self.add else 0
        parts = [f"{grown} added" if grown else "", outdated_words(found)]
        return f"was rewritten ({', '.join(filter(None, parts))}): commit it"

    def write(self, lock: Lock, said: str) -> int:
        try:
            write_lock(self.path, lock)
        except LockError as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"breakscan: {self.path} {said}", err=True)
        return 0

    def refuse(self, *sentences: str) -> int:
        for sentence in sentences:
            click.echo(f"breakscan: {sentence}", err=True)
        return NOT_MET


def read_locking(path: Path | None, locked: bool, add: bool, argv: Sequence[str]) -> Locking | None:
    """The lock that the options ask for, read before the program runs.  Raises UsageError where they do not go
    together, ClickException for a file that cannot be used."""
    if path is None:
        if locked or add:
            raise click.UsageError(f"{'--locked' if locked else '--lock-add'} goes with --lock FILE")
        return None
    if locked and add:
        raise click.UsageError("--lock-add writes the lock, which --locked forbids")
    try:
        found = read_lock(path)
    except LockError as error:
        raise click.ClickException(str(error)) from error
    if found is None and locked:
        raise click.ClickException(f"there is no {path}: run once without --locked, and commit it")
    program = program_of(argv, os.path.dirname(os.path.abspath(path)))
    if found is not None and found.program != program:
        raise click.ClickException(
            f"{path} is the lock of {found.program}, not of {program}: give each program a lock of its own"
        )
    return Locking(path, found, program, locked, add)
