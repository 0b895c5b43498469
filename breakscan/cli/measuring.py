"""The options and the progress that ``verify``, ``bench`` and ``tune`` share."""

import errno
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from breakscan.cli.options import argument, flag, option
from breakscan.cli.output import report_stream
from breakscan.cli.programs import ARGUMENTS, COMPILE, refuse_notebook, requests_for, require_torch
from breakscan.prove.observation import NothingToMeasure
from breakscan.prove.worker import CALLS, UserProgram, WorkerError
from breakscan.recording.bootstrap.eager_compile import BACKEND
from breakscan.report.formats import Formats, Report
from breakscan.report.printable import visible


@dataclass(frozen=True, slots=True)
class MeasuringOptions:
    """The options of ``verify``, ``bench`` and ``tune`` about the program, and PROGRAM with its ARGUMENTS."""

    as_module: bool = flag("-m", "PROGRAM is the name of a module, as for python -m.")
    calls: int = option("--calls", f"Number of calls to capture.  [{CALLS}]", type=click.IntRange(min=1), default=CALLS)
    compile_: tuple[str, ...] = option("--compile", **COMPILE)
    program: str = argument()
    arguments: tuple[str, ...] = argument(**ARGUMENTS)

    def user_program(self, command: str, backend: str = BACKEND) -> UserProgram:
        """The program that the options name.  Raises UsageError, and ClickException without a suitable torch."""
        if not self.as_module and not os.path.exists(self.program):
            raise click.UsageError(f"there is no file {self.program!r}; a module takes -m")
        if not self.as_module:
            refuse_notebook(self.program)
        named = (*(["-m"] if self.as_module else []), self.program)
        require_torch(command, named)
        argv = (*named, *self.arguments)
        return UserProgram(argv, requests_for(argv, False, self.compile_, backend), self.calls)


def apply_option(which: str) -> Any:
    """``--apply``, of ``which``."""
    return flag("--apply", f"Write {which} into your files.")


def apply_unseen_option(unseen: str) -> Any:
    """``--apply-unseen``, which writes ``unseen`` as well."""
    help_ = f"Like --apply, and also write {unseen}: with code that no call ran, or with other results in varied calls."
    return flag("--apply-unseen", help_)


def measured_report(measure: Callable[[], Report], formats: Formats[Report], name: str, output: Path | None) -> Report:
    """Measures a program, and writes the report in the format of this name.  Raises ClickException."""
    try:
        report = measure()
    except (WorkerError, NothingToMeasure) as error:
        say("")
        raise click.ClickException(str(error)) from error
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise click.ClickException("no space left for temporary files: name another folder in TMPDIR") from error
    say("")
    with report_stream(output) as stream:
        formats.write(name, report, stream)
    return report


def say(what: str) -> None:
    """Prints the progress on standard error. On a terminal, it replaces the previous message."""
    what = visible(what)
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)
    elif what:
        print(f"breakscan: {what}", file=sys.stderr, flush=True)
