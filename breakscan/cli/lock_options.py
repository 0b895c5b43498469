"""The options about the lock: ``--lock``, ``--locked``, ``--lock-add``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from breakscan.cli.committed_file import CommittedFile, committed_file_options, read_file
from breakscan.explain.explanation import Explanation
from breakscan.explain.gates import lock_sentences, nothing_compiled, outdated_words
from breakscan.explain.lock_file import Judgement, Lock, judge, lock_of, lock_text, program_of, read_lock
from breakscan.model.words import counted
from breakscan.report.printable import visible

lock_options = committed_file_options(
    "lock", "breaks", "Exit with 1 on a break that this file does not allow; take out of it what is gone."
)


@dataclass(frozen=True, slots=True)
class Locking:
    """A lock file as it was before the program ran; ``found`` is None where there is none yet."""

    file: CommittedFile
    found: Lock | None
    program: str

    def status(self, explanation: Explanation, failed: bool) -> int:
        """The exit status that the lock asks for; says on standard error what is wrong and what was written.

        After a run that failed, the lock is left as it is.  Raises ClickException where it cannot be written.
        """
        file = self.file
        if nothing_compiled(explanation):
            return file.refuse(f"nothing was compiled: {file.path} is left as it is")
        if self.found is None:
            lock = lock_of(explanation, self.program, file.folder)
            said = f"was made, and allows {counted(len(lock.breaks), 'break')}"
            return 0 if failed else file.write(lock_text(lock), said)
        found = judge(self.found, explanation, file.folder, add=file.add)
        if not found.is_kept and not file.add:
            return file.refuse(*map(visible, lock_sentences(found, str(file.path))), self.advice(explanation))
        if failed or found.follows.breaks == self.found.breaks:
            return 0
        return file.change(lock_text(found.follows), self.change(found))

    def advice(self, explanation: Explanation) -> str:
        """What to do about breaks that the lock does not allow."""
        assert self.found is not None
        torch = ".".join(explanation.torch.split(".")[:2])
        other = f" (it was written for torch {self.found.torch}, this is {torch})" if torch != self.found.torch else ""
        return f"fix this, or allow it in {self.file.path} with --lock-add{other}"

    def change(self, found: Judgement) -> str:
        """In what the lock differs from what follows."""
        grown = len(found.new) + len(found.worse) if self.file.add else 0
        return ", ".join(filter(None, (f"{grown} added" if grown else "", outdated_words(found))))


def read_locking(path: Path | None, locked: bool, add: bool, argv: Sequence[str]) -> Locking | None:
    """The lock that the options ask for, read before the program runs; see :func:`.read_file`."""
    asked = read_file("lock", path, locked, add, read_lock)
    if asked is None:
        return None
    file, found = asked
    program = program_of(argv, file.folder)
    if found is not None and found.program != program:
        raise click.ClickException(
            f"{path} is the lock of {found.program}, not of {program}: give each program a lock of its own"
        )
    return Locking(file, found, program)
