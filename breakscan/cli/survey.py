"""``breakscan survey``: many programs and models, one table."""

import sys
from contextlib import closing, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from breakscan.cli.options import FILE_PATH, argument, declared, format_option, option, output_option
from breakscan.cli.output import report_stream
from breakscan.report.formats import SURVEY, SURVEY_DIFF
from breakscan.report.printable import visible
from breakscan.survey.manifest import StageStatus

if TYPE_CHECKING:
    from breakscan.survey.store import Surveyed
    from breakscan.survey.survey import LocalEngine, Progressed, RayEngine

STATUSES = tuple(one.value for one in StageStatus if one is not StageStatus.OK)


@click.group()
def survey() -> None:
    """Run breakscan over many programs and models, and report them in one table."""


@survey.command(short_help="Run the programs and models of a manifest.")
@declared
@click.pass_context
def run(
    ctx: click.Context,
    /,
    manifest: Path = argument(type=click.Path(path_type=Path, dir_okay=False)),
    store_path: Path = option(
        "--store", "The file of results.  [survey.db]", type=FILE_PATH, default=Path("survey.db")
    ),
    jobs: int | None = option(
        "-j --jobs", "Units to run at the same time.  [one per core]", type=click.IntRange(min=1)
    ),
    gpus: str | None = option(
        "--gpus", "Numbers of the GPUs for units on cuda; each runs one unit at a time.  [0]", metavar="LIST"
    ),
    engine: str = option("--engine", "Where units run.  [local]", type=click.Choice(["local", "ray"]), default="local"),
    address: str | None = option("--address", "The Ray cluster, such as auto or HOST:PORT.  [one of this machine]"),
    again: tuple[str, ...] = option(
        "--again", "Run units that ended so again.  May be repeated.", multiple=True, type=click.Choice(STATUSES)
    ),
    format_: str = format_option(SURVEY),
    output: Path | None = output_option,
) -> None:
    """Run the programs and models of MANIFEST that have no result in the store yet.

    Each unit runs in its own processes, with the limits of the manifest; a crash, a timeout or a missing package is a
    result.  The same command continues a survey that was interrupted.  Exits with 130 if interrupted.
    """
    from breakscan.survey.manifest import planned, read_manifest
    from breakscan.survey.overview import overview
    from breakscan.survey.store import Store
    from breakscan.survey.survey import run_survey

    if address is not None and engine != "ray":
        raise click.UsageError("--address goes with --engine ray")
    if engine == "ray" and (jobs is not None or gpus is not None):
        raise click.UsageError("Ray decides how many units run, and on which GPUs: leave out --jobs and --gpus")
    asked = read_manifest(manifest)
    units = planned(asked)
    with Store(store_path) as store:
        # What an engine prints of itself does not belong into the report.
        with redirect_stdout(sys.stderr), closing(_engine(engine, jobs, gpus, address)) as running:
            try:
                number = run_survey(asked, units, store, running, again=again, on_result=_say)
            except KeyboardInterrupt:
                click.echo(f"breakscan: stopped: the same command goes on from {store_path}", err=True)
                ctx.exit(130)
        with report_stream(output) as stream:
            SURVEY.write(format_, overview(store.surveyed(number)), stream)


@survey.command()
@declared
def report(
    store: Path = argument(type=click.Path(path_type=Path, dir_okay=False)),
    format_: str = format_option(SURVEY),
    output: Path | None = output_option,
) -> None:
    """Report the last survey in STORE, also while it runs."""
    from breakscan.survey.overview import overview
    from breakscan.survey.store import Store, store_faults

    with Store(store, must_exist=True) as opened, store_faults(store):
        found = overview(opened.surveyed(opened.latest()))
    with report_stream(output) as stream:
        SURVEY.write(format_, found, stream)


@survey.command(short_help="Show what has changed from one survey to another.")
@declared
@click.pass_context
def diff(
    ctx: click.Context,
    /,
    before: str = argument(metavar="BEFORE"),
    after: str = argument(metavar="AFTER"),
    format_: str = format_option(SURVEY_DIFF),
    output: Path | None = output_option,
) -> None:
    """Show what has changed from the last survey in BEFORE to that in AFTER.

    Both are stores, or STORE@VERSION for the units of a store that ran with a version of torch.  Exits with 1 if a unit
    no longer runs, breaks at more places, runs more functions eager or recompiles more often.
    """
    from breakscan.survey.overview import compared
    from breakscan.survey.store import store_faults

    with store_faults(f"{before} or {after}"):
        found = compared(_units_of(before), _units_of(after))
    with report_stream(output) as stream:
        SURVEY_DIFF.write(format_, found, stream)
    ctx.exit(1 if any(change.is_regression for change in found.changes) else 0)


def _engine(name: str, jobs: int | None, gpus: str | None, address: str | None) -> "LocalEngine | RayEngine":
    if name == "ray":
        from breakscan.survey.survey import RayEngine

        return RayEngine(address)
    from breakscan.source.files import usable_cores
    from breakscan.survey.survey import LocalEngine

    return LocalEngine(jobs or usable_cores(), _numbers(gpus))


def _units_of(place: str) -> "list[Surveyed]":
    from breakscan.survey.store import Store

    path, _, torch = place.partition("@")
    with Store(Path(path), must_exist=True) as store:
        units = list(store.surveyed(store.latest()))
    return [one for one in units if not torch or (one.environment.torch or "").startswith(torch)]


def _numbers(text: str | None) -> list[int]:
    words = (text or "0").split(",")
    if not all(word.strip().isdigit() for word in words):
        raise click.UsageError("--gpus needs numbers: 0,1")
    return [int(word) for word in words]


def _say(progressed: "Progressed") -> None:
    one, result = progressed.planned, progressed.result
    where = ", ".join((*one.unit.conditions, f"torch {one.environment.torch}"))
    counts = f"{progressed.done} of {progressed.total}"
    said = f"[{counts}] {one.unit.name} ({where}): {result.stage} {result.status}, {result.seconds:.1f} s"
    click.echo(visible(said), err=True)
