"""``breakscan bench``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from breakscan.cli.exit_status import INTERRUPTED
from breakscan.cli.measuring import MeasuringOptions, measured_report, say
from breakscan.cli.options import declared, format_option, group, option, output_option, words
from breakscan.prove.bench import WantedVariants
from breakscan.prove.bench import bench as measure
from breakscan.report.formats import BENCH
from breakscan.report.measurements import progress_words


@click.command(context_settings={"allow_interspersed_args": False})
@declared
def bench(
    backends: tuple[str, ...] | None = option(
        "--backends",
        metavar="LIST",
        multiple=True,
        callback=words,
        help="Only these backends, and what the program itself asks for.  [eager, aot_eager, inductor, cudagraphs, "
        "others]",
    ),
    modes: tuple[str, ...] | None = option(
        "--modes", metavar="LIST", multiple=True, callback=words, help="Only these modes of inductor.  [all]"
    ),
    autotune: bool = option(
        "--autotune/--no-autotune",
        default=True,
        help="Whether to try the max-autotune modes, which take minutes.  [they are]",
    ),
    dynamic: bool = option("--dynamic/--no-dynamic", default=True, help="Whether to try dynamic=True.  [it is]"),
    measured: MeasuringOptions = group(MeasuringOptions),
    format_: str = format_option(BENCH),
    output: Path | None = output_option,
) -> None:
    """Run PROGRAM with its ARGUMENTS eager and compiled in many ways, and say which is fastest and when it pays.

    Backends, modes and dynamic shapes; each in a process of its own, from empty caches, up to the program's first calls
    of what it compiles: what it writes is not shown. Ctrl-C, or a SIGTERM, reports what is measured until then. Options
    of breakscan come before PROGRAM.

    Exits with 0 where the program was measured, 2 where it could not be, 130 where it was interrupted.
    """
    wanted = WantedVariants(backends, modes, autotune, dynamic)
    user_program = measured.user_program("bench")
    found = measured_report(
        lambda: measure(user_program, wanted, lambda progress: say(progress_words(progress))), BENCH, format_, output
    )
    if found.interrupted:
        sys.exit(INTERRUPTED)
