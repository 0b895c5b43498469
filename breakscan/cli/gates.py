"""The options of the gates of a run, such as ``--max-breaks``, and of its lock."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from breakscan.cli.committed_file import NOT_MET, CommittedFile, read_file
from breakscan.cli.options import FILE_PATH, flag, list_option, option
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.gates import (
    Gates,
    Lock,
    judge,
    lock_of,
    nothing_compiled,
    program_of,
    read_lock,
    selectors,
    unmet,
)
from breakscan.model.words import counted
from breakscan.report.printable import visible
from breakscan.rulebook.library import Library

GATES = "Gates"  # a section of the help


def _at_most(name: str, when: str) -> Any:
    return option(name, f"Exit with 1 {when}.", GATES, type=click.IntRange(min=0), metavar="N")


@dataclass(frozen=True, slots=True)
class GateOptions:
    max_breaks: int | None = _at_most("--max-breaks", "if more than N sites break the graph, not counting torch's own")
    max_recompiles: int | None = _at_most("--max-recompiles", "if there are more than N recompiles")
    max_eager_calls: int | None = _at_most("--max-eager-calls", "if more than N calls of compiled code run eager")
    no_compile_after: int | None = _at_most(
        "--no-compile-after", "if anything is compiled after step N, a call of what is called most"
    )
    fail_on: tuple[str, ...] | None = list_option(
        "--fail-on",
        "Exit with 1 for any of these: rules (BRK101, BRK2, a name), PyTorch's ids (GB0170), or ALL.",
        GATES,
    )

    def read(self, library: Library) -> Gates:
        """The gates that the options ask for.  Raises UsageError for a word that names nothing."""
        try:
            named = selectors(self.fail_on or (), library)
            return Gates(self.max_breaks, self.max_recompiles, self.max_eager_calls, self.no_compile_after, named)
        except ValueError as error:
            raise click.UsageError(f"--fail-on: {error}") from error


def gate_status(gates: Gates, explanation: Explanation) -> int:
    """Return the exit status of the gates; prints those that are not met: none, where nothing was compiled."""
    if not gates:
        return 0
    if nothing_compiled(explanation):
        click.echo("breakscan: nothing was compiled, so the gates are not met", err=True)
        return NOT_MET
    found = unmet(gates, explanation)
    for gate in found:
        click.echo(f"breakscan: {visible(gate)}", err=True)
    return NOT_MET if found else 0


@dataclass(frozen=True, slots=True)
class LockOptions:
    lock: Path | None = option(
        "--lock",
        "Exit with 1 for a break that this file does not allow, and remove those that are gone from it.",
        GATES,
        type=FILE_PATH,
        metavar="FILE",
    )
    locked: bool = flag("--locked", "Exit with 1 if the lock would change, and do not change it.", GATES)
    lock_add: bool = flag("--lock-add", "Add new breaks to the lock.", GATES)

    def read(self, argv: Sequence[str]) -> "Locking | None":
        """The lock that the options ask for, read before the program runs; see :func:`.read_file`."""
        asked = read_file("lock", self.lock, self.locked, self.lock_add, read_lock)
        if asked is None:
            return None
        file, found = asked
        program = program_of(argv, file.folder)
        if found is not None and found.program != program:
            raise click.ClickException(
                f"{self.lock} is the lock of {found.program}, not of {program}: give each program a lock of its own"
            )
        return Locking(file, found, program)


@dataclass(frozen=True, slots=True)
class Locking:
    """A lock file as it was before the program ran; ``found`` is None where there is none yet."""

    file: CommittedFile
    found: Lock | None
    program: str

    def status(self, explanation: Explanation, failed: bool) -> int:
        """Update the lock, and return the exit status; prints what is wrong and what was written.  After a run that
        failed, the lock stays as it is.  Raises ClickException if it cannot be written."""
        file = self.file
        if nothing_compiled(explanation):
            return file.refuse(f"nothing was compiled: {file.path} is left as it is")
        if self.found is None:
            lock = lock_of(explanation, self.program, file.folder)
            said = f"was made, and allows {counted(len(lock.breaks), 'break')}"
            return 0 if failed else file.write(lock.text, said)
        found = judge(self.found, explanation, file.folder, add=file.add)
        if not found.is_kept and not file.add:
            return file.refuse(*map(visible, found.sentences(str(file.path))), self.advice(explanation))
        if failed or found.follows.breaks == self.found.breaks:
            return 0
        grown = len(found.new) + len(found.worse) if file.add else 0
        words = (f"{grown} added" if grown else "", found.outdated)
        return file.change(found.follows.text, ", ".join(filter(None, words)))

    def advice(self, explanation: Explanation) -> str:
        """Return the advice for breaks that the lock does not allow."""
        assert self.found is not None
        torch = ".".join(explanation.torch.split(".")[:2])
        other = f" (it was written for torch {self.found.torch}, this is {torch})" if torch != self.found.torch else ""
        return f"fix this, or allow it in {self.file.path} with --lock-add{other}"
