"""``breakscan bench``."""

import sys
from pathlib import Path

import click

from breakscan.cli.exit_status import INTERRUPTED
from breakscan.cli.measuring import MeasuringOptions, measured_report, say
from breakscan.cli.options import declared, format_option, group, list_option, option, output_option
from breakscan.prove.bench import WantedVariants
from breakscan.prove.bench import bench as measure
from breakscan.report.formats import BENCH


@click.command(context_settings={"allow_interspersed_args": False})
@declared
def bench(
    backends: tuple[str, ...] | None = list_option(
        "--backends",
        "Only these backends, and what the program itself asks for.  [eager, aot_eager, inductor, cudagraphs, others]",
    ),
    modes: tuple[str, ...] | None = list_option("--modes", "Only these modes of inductor.  [all]"),
    autotune: bool = option(
        "--autotune/--no-autotune", "Try the max-autotune modes, which take minutes.  [on]", default=True
    ),
    dynamic: bool = option("--dynamic/--no-dynamic", "Try dynamic=True.  [on]", default=True),
    measured: MeasuringOptions = group(MeasuringOptions),
    format_: str = format_option(BENCH),
    output: Path | None = output_option,
) -> None:
    """Run PROGRAM with its ARGUMENTS eager and compiled in many ways, and show which is fastest and when it pays off.

    Backends, modes and dynamic shapes; each in a process of its own, from empty caches, up to the program's first calls
    of what it compiles: what it writes is not shown. Ctrl-C, or a SIGTERM, reports what is measured until then. Options
    of breakscan come before PROGRAM.

    Exits with 0 if the program was measured, 2 if it could not be, and 130 if it was interrupted.
    """
    wanted = WantedVariants(backends, modes, autotune, dynamic)
    user_program = measured.user_program("bench")
    found = measured_report(lambda: measure(user_program, wanted, say), BENCH, format_, output)
    if found.interrupted:
        sys.exit(INTERRUPTED)
