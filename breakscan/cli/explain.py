"""``breakscan explain``."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import click

from breakscan.cli.failures import show_failure
from breakscan.cli.output import report_stream
from breakscan.config import installed_torch, load_settings
from breakscan.reports.explain_formats import FOR_PEOPLE, FORMATS, write_report
from breakscan.rulebook.ledger import version_key
from breakscan.rulebook.library import Library, load_library
from breakscan.runtime.launch import LaunchError, Outcome, end_like, run_recorded
from breakscan.runtime.notices import OLDEST
from breakscan.source.paths import display_path

STDIN = STDOUT = "-"


@click.command(
    short_help="Run a program and show where torch.compile did break, why, and its cost.",
    context_settings={"allow_interspersed_args": False},
)
@click.option("-m", "as_module", is_flag=True, help="PROGRAM is the name of a module, as for python -m.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="terminal", help="How to report.  [terminal]")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=str, dir_okay=False),
    help="Write the report to this file (- is standard output).  [standard error]",
)
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def explain(as_module: bool, format_: str, output: str | None, program: str, arguments: tuple[str, ...]) -> None:
    """Run PROGRAM with its ARGUMENTS, and show where torch.compile broke, recompiled or gave up.

    The program runs as under python, with its own input, output and exit status, which is also the exit status
    of this command; 2 where the program could not be run.  Options of breakscan stand before PROGRAM.
    """
    if format_ not in FOR_PEOPLE and output is None:
        raise click.UsageError(
            f"--format {format_} needs --output FILE, or --output - for standard output, which your program writes to "
            "as well"
        )
    if not as_module and program != STDIN and not os.path.exists(program):
        raise click.UsageError(f"there is no file {program!r}; a module takes -m")
    _require_torch(as_module, program)
    library = load_library(load_settings(Path.cwd()).rule_folders)
    report_path = None if output in (None, STDOUT) else Path(str(output))
    if report_path:
        _require_writable(report_path)

    argv = ["-m", program, *arguments] if as_module else [program, *arguments]
    folder = Path(tempfile.mkdtemp(prefix="breakscan-"))
    try:
        outcome = run_recorded(argv, folder)
    except LaunchError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise click.ClickException(str(error)) from error
    try:
        _report(folder, argv, outcome, library, format_, output)
        shutil.rmtree(folder, ignore_errors=True)
    except Exception as error:
        # The exit status stays the program's: what went wrong is ours.
        show_failure(error)
        click.echo(f"The recording of the run is in {folder}", err=True)
    end_like(outcome.status)


def _require_torch(as_module: bool, program: str) -> None:
    installed = installed_torch()
    shown = f"python -m breakscan explain {'-m ' if as_module else ''}{program}"
    if installed is None:
        raise click.ClickException(
            f"torch is not installed for {sys.executable}. Install it there (pip install 'breakscan[torch]'), or run "
            f"breakscan with the Python that your program uses: {shown}"
        )
    if version_key(installed) < OLDEST:
        oldest = f"{OLDEST[0]}.{OLDEST[1]}"
        raise click.ClickException(
            f"torch {installed} is too old for breakscan explain: install torch {oldest} or later "
            f"(pip install 'torch>={oldest}')"
        )


def _require_writable(path: Path) -> None:
    """Known before the program runs: it may take hours."""
    try:
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error


def _report(
    folder: Path, argv: list[str], outcome: Outcome, library: Library, format_: str, output: str | None
) -> None:
    from breakscan.runtime.digest import explain as explain_recording
    from breakscan.runtime.recording import TORCH_IMPORTED, read_recording

    cwd = os.getcwd()
    explanation = explain_recording(
        read_recording(folder),
        argv=argv,
        outcome=outcome,
        rules=library,
        show=lambda path: display_path(path, cwd),
        torch_imported=(folder / TORCH_IMPORTED).exists(),
    )
    if output is None:
        write_report(format_, explanation, sys.stderr)
        return
    with report_stream(None if output == STDOUT else Path(output)) as stream:
        write_report(format_, explanation, stream)
    if output != STDOUT:
        click.echo(f"breakscan: the report is in {output}", err=True)
