"""The option ``--recording`` of ``check`` and ``fix``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from breakscan.report.printable import visible
from breakscan.rulebook.config import FileSettings
from breakscan.source.paths import display_path

F = TypeVar("F", bound=Callable[..., Any])


def recording_option(command: F) -> F:
    """Adds the option, as ``recordings``."""
    return click.option(
        "--recording",
        "recordings",
        metavar="FOLDER",
        multiple=True,
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="Take the values that breakscan explain --save FOLDER saw for granted; may be given several times.",
    )(command)


def with_recordings(settings: FileSettings, recordings: Sequence[Path], files: Sequence[Path]) -> FileSettings:
    """The settings with what recordings say of the files that are checked; says which of it is left out."""
    if not recordings:
        return settings
    from breakscan.explain.function_values import changed_since, observations_of
    from breakscan.record.session import SessionError, read_run

    try:
        runs = [read_run(folder) for folder in recordings]
    except SessionError as error:
        raise click.ClickException(visible(str(error))) from error
    observations = observations_of(process for run in runs for part in run.parts for process in part.processes)
    if not observations.files:
        click.echo("warning: the recording holds no values of functions: record the program again", err=True)
    for path in changed_since(observations, files):
        shown = visible(display_path(path, Path.cwd()))
        click.echo(f"warning: {shown} has changed since it was recorded: nothing is taken from the recording", err=True)
    return settings.changed(observations=observations)
