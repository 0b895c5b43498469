"""``breakscan bench``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from breakscan.arms.arm import CALLS, ArmError, Program
from breakscan.arms.captured import NothingToMeasure
from breakscan.arms.settings import SettingError, settings_of
from breakscan.bench.bench import bench as measured
from breakscan.bench.plan import UnknownName, Wanted
from breakscan.cli.failures import INTERRUPTED
from breakscan.cli.output import report_stream
from breakscan.cli.request_options import asked_for
from breakscan.cli.selection_options import words
from breakscan.reports.bench_formats import FORMATS, write_bench
from breakscan.runtime.requests_file import BACKEND


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("-m", "as_module", is_flag=True, help="PROGRAM is the name of a module, as for python -m.")
@click.option(
    "--backends",
    metavar="LIST",
    multiple=True,
    callback=words,
    help="Only these backends, and what the program itself asks for.  [eager, aot_eager, inductor, cudagraphs, others]",
)
@click.option("--modes", metavar="LIST", multiple=True, callback=words, help="Only these modes of inductor.  [all]")
@click.option(
    "--autotune/--no-autotune",
    default=True,
    help="Whether to try the max-autotune modes, which take minutes.  [they are]",
)
@click.option("--dynamic/--no-dynamic", default=True, help="Whether to try dynamic=True and dynamic=False.  [they are]")
@click.option(
    "--config",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Try this setting of the compiler as well: capture_scalar_outputs=True, or inductor.max_autotune=True.",
)
@click.option("--calls", type=click.IntRange(min=1), default=CALLS, help=f"Calls that are captured.  [{CALLS}]")
@click.option(
    "--compile",
    "compile_",
    multiple=True,
    metavar="MODULE:NAME",
    help="Compile this function, class (its forward) or module once it is defined; :NAME is the script's.",
)
@click.option("--format", "format_", type=click.Choice(FORMATS), default="terminal", help="How to report.  [terminal]")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the report to this file.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(
    as_module: bool,
    backends: tuple[str, ...] | None,
    modes: tuple[str, ...] | None,
    autotune: bool,
    dynamic: bool,
    settings: tuple[str, ...],
    calls: int,
    compile_: tuple[str, ...],
    format_: str,
    output: Path | None,
    program: str,
    arguments: tuple[str, ...],
) -> None:
    """Run PROGRAM with its ARGUMENTS eager and compiled in many ways, and say which is fastest and when it pays.

    Backends, modes, dynamic shapes, and the settings that remove the program's graph breaks; each in a process of its
    own, from empty caches, up to the program's first calls of what it compiles: what it writes is not shown. Ctrl-C
    reports what is measured until then. Options of breakscan stand before PROGRAM.

    Exits with 0 where the program was measured, 2 where it could not be, 130 where Ctrl-C ended it.
    """
    if not as_module and not os.path.exists(program):
        raise click.UsageError(f"there is no file {program!r}; a module takes -m")
    argv = (*(["-m"] if as_module else []), program, *arguments)
    try:
        wanted = Wanted(backends, modes, autotune, dynamic, tuple(settings_of([word]) for word in settings))
    except SettingError as error:
        raise click.BadParameter(str(error), param_hint="--config") from error
    requests = asked_for(argv, False, compile_, BACKEND)
    try:
        found = measured(Program(argv, requests, calls), wanted, _say)
    except (ArmError, NothingToMeasure, UnknownName) as error:
        _say("")
        raise _Failure(str(error)) from error
    _say("")
    with report_stream(output) as stream:
        write_bench(format_, found, stream)
    if found.interrupted:
        sys.exit(INTERRUPTED)


def _say(what: str) -> None:
    """On a terminal, in place of what was said before."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)
    elif what:
        print(f"breakscan: {what}", file=sys.stderr, flush=True)


class _Failure(click.ClickException):
    exit_code = 2
