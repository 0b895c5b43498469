"""The program that a command runs: its arguments, its torch, and ``--compile``."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breakscan.cli.options import flag, option
from breakscan.model.torch_versions import SUPPORTED, is_too_old
from breakscan.recording.bootstrap.eager_compile import BACKEND
from breakscan.recording.launch import RequestError, Requests, compile_request
from breakscan.rulebook.config import installed_torch
from breakscan.source.python_text import is_notebook

if TYPE_CHECKING:
    from breakscan.explanation.explanation import Explanation

UNMET = 2  # the exit status if ``--compile`` names something that does not exist, and the program itself succeeded
COMPILE: Any = {
    "multiple": True,
    "metavar": "MODULE:NAME",
    "help": "Compile this function, class (its forward) or module once it is defined; :NAME is in the script.",
}
ARGUMENTS: Any = {"nargs": -1, "type": click.UNPROCESSED}  # those of PROGRAM


def refuse_notebook(program: str) -> None:
    """Raises UsageError, with the remedy, for a file that Python cannot run and Jupyter can."""
    if is_notebook(program):
        raise click.UsageError(
            f"{program} is a notebook, which Python cannot run: in it, %%breakscan shows what a cell does (see "
            f"%load_ext breakscan.notebook), or make it a program with 'jupyter nbconvert --to script {program}'"
        )


def require_torch(command: str, arguments: Sequence[str]) -> None:
    """Raises ClickException, with the remedy, if this Python has no torch or one that is too old.  ``arguments`` are
    those of ``breakscan COMMAND`` that the message repeats."""
    installed = installed_torch()
    if installed is None:
        line = f"python -m breakscan {command} {shlex.join(arguments)}".rstrip()
        raise click.ClickException(
            f"torch is not installed for {sys.executable}. Install it there (pip install 'torch>={SUPPORTED[0]}'), or "
            f"run breakscan with the Python that your program uses: {line}"
        )
    if is_too_old(installed):
        raise click.ClickException(
            f"torch {installed} is too old for breakscan {command}: install torch {SUPPORTED[0]} or later "
            f"(pip install 'torch>={SUPPORTED[0]}')"
        )


@dataclass(frozen=True, slots=True)
class RequestOptions:
    keep_going: bool = flag("--keep-going", "Ignore fullgraph=True, and show all breaks instead of the first.")
    profile: bool = flag("--profile", "Run a few steady steps under torch.profiler, and show where their time goes.")
    compile_: tuple[str, ...] = option("--compile", **COMPILE)
    backend: str = option(
        "--compile-backend",
        "The backend for --compile; eager runs graphs as they are.  [inductor]",
        default=BACKEND,
        metavar="NAME",
    )

    def read(self, argv: Sequence[str]) -> Requests:
        """The options for a program run as ``python ARGV``."""
        return replace(requests_for(argv, self.keep_going, self.compile_, self.backend), profile=self.profile)


def requests_for(argv: Sequence[str], keep_going: bool, compile_: Sequence[str], backend: str) -> Requests:
    """The options as they were given, for a program run as ``python ARGV``."""
    try:
        return Requests(keep_going, False, tuple(compile_request(text, argv) for text in compile_), backend)
    except RequestError as error:
        raise click.UsageError(f"--compile: {error}") from error


def add_unmet(explanation: "Explanation", requests: Requests, folder: Path, say: bool) -> tuple["Explanation", int]:
    """Adds a notice for each ``--compile`` that compiled nothing, and returns the exit status for that.  With ``say``,
    the notices are also printed on standard error."""
    from breakscan.explanation.notices import unmet_requests
    from breakscan.recording.recording import read_recording

    if not requests.compile:
        return explanation, 0
    records = (record for process in read_recording(folder) for record in process)
    unmet = list(unmet_requests((request.text for request in requests.compile), records))
    for notice in unmet if say else ():
        click.echo(f"breakscan: {notice.text}", err=True)
    # If the compiler was loaded, the recording holds these notices already.
    notices = tuple(dict.fromkeys([*explanation.notices, *unmet]))
    return replace(explanation, notices=notices), UNMET if unmet else 0
