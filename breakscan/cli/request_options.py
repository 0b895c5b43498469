"""The options that change a run of ``explain``: ``--keep-going`` and ``--compile``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from breakscan.explain.explanation import Explanation
from breakscan.explain.notices import unmet_requests
from breakscan.record.compile_option import RequestError, compile_request
from breakscan.record.requests_file import BACKEND, Requests

F = TypeVar("F", bound=Callable[..., Any])

UNMET = 2
"""The exit status where ``--compile`` names what is not there, and the program itself ended well."""

compile_option = click.option(
    "--compile",
    "compile_",
    multiple=True,
    metavar="MODULE:NAME",
    help="Compile this function, class (its forward) or module once it is defined; :NAME is the script's.",
)


def request_options(command: F) -> F:
    """Adds the options to a command."""
    for option in (
        click.option(
            "--compile-backend",
            default=BACKEND,
            metavar="NAME",
            help="The backend of --compile; eager runs its graphs as they are.  [inductor]",
        ),
        compile_option,
        click.option(
            "--keep-going", is_flag=True, help="Ignore fullgraph=True, and show all breaks, not only the first."
        ),
    ):
        command = option(command)
    return command


def asked_for(argv: Sequence[str], keep_going: bool, compile_: Sequence[str], backend: str) -> Requests:
    """The options as they were given, for a program run as ``python ARGV``."""
    try:
        return Requests(keep_going, tuple(compile_request(text, argv) for text in compile_), backend)
    except RequestError as error:
        raise click.UsageError(f"--compile: {error}") from error


def add_unmet(explanation: Explanation, requests: Requests, folder: Path, say: bool) -> tuple[Explanation, int]:
    """Adds a notice for each ``--compile`` that compiled nothing, and returns the exit status for that.

    With ``say``, the notices are also printed on standard error.
    """
    from breakscan.explain.notice import notice_words
    from breakscan.record.recording import read_recording

    if not requests.compile:
        return explanation, 0
    records = (record for process in read_recording(folder) for record in process)
    unmet = list(unmet_requests((request.text for request in requests.compile), records))
    for notice in unmet if say else ():
        click.echo(f"breakscan: {notice_words(notice)}", err=True)
    # If the compiler was loaded, the recording holds these notices already.
    notices = tuple(dict.fromkeys([*explanation.notices, *unmet]))
    return replace(explanation, notices=notices), UNMET if unmet else 0
