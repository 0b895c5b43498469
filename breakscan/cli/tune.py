"""``breakscan tune``."""

from pathlib import Path

import click

from breakscan.cli.exit_status import INTERRUPTED
from breakscan.cli.measuring import MeasuringOptions, apply_option, apply_unseen_option, measured_report, say
from breakscan.cli.options import declared, format_option, group, option, output_option
from breakscan.prove.proof import Goal
from breakscan.prove.tune import TuneQuestion
from breakscan.prove.tune import tune as find_best
from breakscan.report.formats import TUNE
from breakscan.rulebook.config import NearestSettings

SECONDS = 300.0


@click.command(context_settings={"allow_interspersed_args": False})
@declared
def tune(
    seconds: float = option(
        "--time",
        f"How long to look for a faster program.  [{SECONDS:g}]",
        type=click.FloatRange(min=0, min_open=True),
        default=SECONDS,
        metavar="SECONDS",
    ),
    goal: str = option(
        "--goal",
        "What to make small: the time of a step, the time spent compiling, or memory.  [step]",
        type=click.Choice([goal.value for goal in Goal]),
        default=Goal.STEP.value,
    ),
    apply: bool = apply_option("the patch"),
    apply_unseen: bool = apply_unseen_option("a patch that is not shown to be equal"),
    measured: MeasuringOptions = group(MeasuringOptions),
    format_: str = format_option(TUNE),
    output: Path | None = output_option,
) -> None:
    """Run PROGRAM with its ARGUMENTS in many ways, and show the fastest equal one as a patch.

    It tries what the problems of the run suggest: edits, settings, shapes, other regions to compile, other modes, and
    not compiling at all; and then those that gain together. The best program is proved as by breakscan verify. Your
    files are left alone. Each run goes up to the same step: what the program writes is not shown. Ctrl-C, or a SIGTERM,
    reports what is known until then. Options of breakscan come before PROGRAM.

    Exits with 0 if a better program was found or there is none, 2 if the program could not be measured, and 130 if it
    was interrupted.
    """
    settings = NearestSettings(target="compile", no_cache=True)
    question = TuneQuestion(Goal(goal), seconds, apply or apply_unseen, apply_unseen, settings)
    user_program = measured.user_program("tune")
    tuning = measured_report(lambda: find_best(user_program, question, say), TUNE, format_, output)
    if tuning.interrupted:
        click.get_current_context().exit(INTERRUPTED)
