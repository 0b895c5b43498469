"""``breakscan check``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from breakscan.check.baseline.baseline_file import CheckedPaths
from breakscan.check.baseline.known_findings import BaselineComparison, checked_lines
from breakscan.cli.baseline_options import baseline_options, read_baselines
from breakscan.cli.baselining import ComparedBaselines
from breakscan.cli.diff_option import compare_with_commit, diff_option
from breakscan.cli.fail_on_option import fail_on_option, failing
from breakscan.cli.output import report_stream
from breakscan.cli.own_rules import warn_of_callees
from breakscan.cli.progress import ProgressBar
from breakscan.cli.recording_option import recording_option, with_recordings
from breakscan.cli.report_options import format_option, output_option
from breakscan.cli.selection_options import selection_options, settings_at, settings_for
from breakscan.cli.standard_input import read_stdin, stdin_name
from breakscan.cli.verbosity_options import quiet_option, say_details, verbose_option
from breakscan.model.findings import CheckResult, SourceError
from breakscan.model.words import counted
from breakscan.report.check import CheckReport
from breakscan.report.formats import CHECK
from breakscan.report.printable import visible
from breakscan.report.sources import cells_in
from breakscan.rulebook.config import FileSettings, check_targets, library_of
from breakscan.source.files import Discovery, discover, is_excluded
from breakscan.source.module import SourceProblem
from breakscan.source.paths import display_path
from breakscan.source.python_text import python_text
from breakscan.source.suppressions import UnusedSuppression, unused_suppressions


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=str))
@format_option(CHECK)
@output_option
@recording_option
@baseline_options
@diff_option
@selection_options
@click.option("--stdin-filename", metavar="NAME", help="The name of the file that comes in on standard input (-).")
@click.option("--statistics", is_flag=True, help="Count the findings of each rule instead of listing them.")
@click.option(
    "--add-ignore",
    metavar="REASON",
    help="Write a comment that suppresses it, with this reason, at all that would be reported.",
)
@click.option(
    "--warn-unused-ignores",
    is_flag=True,
    help="Report comments that suppress nothing.  PATHS must be all of the project.",
)
@click.option(
    "--remove-unused-ignores", is_flag=True, help="Take comments that suppress nothing out of the files, instead."
)
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@fail_on_option
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if something was found.")
@quiet_option
@verbose_option
@click.option("--show-settings", is_flag=True, help="Print the settings that PATHS would be checked with, and stop.")
@click.pass_context
def check(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    format_: str,
    output: Path | None,
    config: Path | None,
    force_exclude: bool,
    stdin_filename: str | None,
    jobs: int | None,
    statistics: bool,
    watch: bool,
    fail_on: tuple[str, ...] | None,
    exit_zero: bool,
    quiet: bool,
    verbose: bool,
    show_settings: bool,
    recordings: tuple[Path, ...],
    baseline: Path | None,
    no_baseline: bool,
    locked: bool,
    baseline_add: bool,
    diff: str | None,
    add_ignore: str | None,
    warn_unused_ignores: bool,
    remove_unused_ignores: bool,
    **options: Any,
) -> None:
    """Show where torch.compile will break the graph, recompile or fall back to eager in the Python files and notebooks
    below PATHS.

    Nothing is imported or run.  PATHS are files, folders, or - for standard input; without any, the working
    directory is checked.  Exits with 0 where nothing was found, or nothing that the baseline does not allow, 1 where
    something was (with --fail-on: what it names) or a file is no valid Python, and 2 where some of the
    work could not be done.
    """
    stdin = stdin_name(paths, stdin_filename)
    from_stdin = stdin is not None
    if statistics and format_ not in ("full", "concise", "json"):
        raise click.UsageError(f"--statistics cannot be combined with --format {format_}")
    if from_stdin and recordings:
        raise click.UsageError("--recording is about files, and cannot be combined with standard input")
    if from_stdin and diff is not None:
        raise click.UsageError("--diff is about files, and cannot be combined with standard input")
    if from_stdin and (warn_unused_ignores or remove_unused_ignores):
        option = "--warn-unused-ignores" if warn_unused_ignores else "--remove-unused-ignores"
        raise click.UsageError(f"{option} is about all files of a project, not about standard input")
    if add_ignore is not None and remove_unused_ignores:
        raise click.UsageError(
            "--add-ignore and --remove-unused-ignores both change the files: use one after the other"
        )
    if from_stdin and add_ignore is not None:
        raise click.UsageError("--add-ignore changes files, and cannot be combined with standard input")
    if (add_ignore is not None and not add_ignore.isprintable()) or add_ignore == "":
        raise click.UsageError("--add-ignore needs a reason, in one line")
    if baseline is not None and diff is not None:
        raise click.UsageError("--diff and --baseline both say what is known: use one of them")
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose cannot be combined")
    if exit_zero and fail_on is not None:
        raise click.UsageError("--exit-zero and --fail-on cannot be combined")
    if from_stdin and watch:
        raise click.UsageError("--watch is about files, and cannot be combined with standard input")
    if watch:
        from breakscan.cli.watch import require_watchable

        excluded = {
            "--output": output is not None,
            "--add-ignore": add_ignore is not None,
            "--baseline-add": baseline_add,
            "--show-settings": show_settings,
        }
        require_watchable(format_, (option for option, is_given in excluded.items() if is_given))
    paths = paths or (".",)

    started = time.perf_counter()
    where = [stdin] if stdin is not None else list(paths)
    settings = settings_for(config, options)
    named = settings_at(where, settings)
    if show_settings:
        from breakscan.cli.show_settings import settings_lines

        with report_stream(output) as stream:
            for one in named:
                stream.writelines(f"{line}\n" for line in settings_lines(one, os.getcwd()))
        return

    if watch:
        from breakscan.cli.watch import watch as watch_files

        has_baseline = baseline is not None or (not no_baseline and any(one.baseline is not None for one in named))
        ctx.exit(watch_files(sys.argv[1:], paths, named, has_baseline and diff is None))

    fails = failing(fail_on, library_of(named))
    nothing = CheckResult((), (), 0, 0, check_targets(named))
    texts: dict[str, str] = {}
    contents: dict[str, bytes] = {}
    discovery = Discovery((), ()) if from_stdin else discover(where, settings, force_exclude=force_exclude)
    files = [Path(os.path.abspath(where[0]))] if from_stdin else discovery.files
    # With --diff, the other commit says what is known.
    baselines = read_baselines(baseline, no_baseline or diff is not None, locked, baseline_add, files, settings)
    if from_stdin:
        result = _check_stdin(where[0], settings, nothing, texts, contents, force_exclude)
    else:
        result = _check_files(where, discovery, settings, nothing, force_exclude, jobs, recordings, quiet)
    beside: ComparedBaselines | BaselineComparison | None = None
    if baselines is not None:
        checked = CheckedPaths.of_run(where, files, result, settings)
        lines = {name: text.split("\n") for name, text in texts.items()}.__getitem__ if from_stdin else checked_lines
        beside = baselines.compare(result.findings, checked, lines)
    elif diff is not None:
        beside = compare_with_commit(diff, where, files, result, settings, jobs)
    if beside is not None:
        result = replace(result, findings=beside.new)
    unused: Sequence[UnusedSuppression] = ()
    if warn_unused_ignores or remove_unused_ignores:
        unused = unused_suppressions(files, result.covered)
    if remove_unused_ignores:
        ctx.exit(_remove_ignores(result, unused))
    result = replace(result, warnings=(*result.warnings, *(said for one in unused for said in one.warnings())))
    if add_ignore is not None:
        ctx.exit(_add_ignores(result, add_ignore))
    library = library_of(settings.of(Path(os.path.abspath(one.site.path))) for one in result.findings)
    cells = cells_in(result, contents)
    result = cells.result(result)
    for warning in result.warnings:
        click.echo(visible(f"warning: {warning.path}:{warning.line}:{warning.column}: {warning.message}"), err=True)
    warn_of_callees(library_of(named))
    if verbose:
        say_details(files, settings, result.kept)
    known = beside.known if beside else 0
    report = CheckReport(result, time.perf_counter() - started, library, texts, cells, known, quiet)
    with report_stream(output) as stream:
        if statistics:
            from breakscan.report.check import write_statistics, write_statistics_json

            (write_statistics_json if format_ == "json" else write_statistics)(report, stream)
        else:
            CHECK.write(format_, report, stream)
    unchecked = sum(not error.syntax for error in result.errors)
    failed = any(map(fails, result.findings))
    if isinstance(beside, ComparedBaselines) and not from_stdin:
        # Findings that --baseline-add allows from now on are no failure.
        failed = beside.status(unchecked, fails) != 0
    status = 1 if failed or result.errors or unused else 0
    ctx.exit(2 if unchecked else 0 if exit_zero else status)


def _add_ignores(result: CheckResult, reason: str) -> int:
    """Suppresses all findings; returns the exit status."""
    from breakscan.cli.ignore_comments import add_ignores

    done, problems = add_ignores(result.findings, reason)
    return _changed(f"{counted(done, 'finding')} suppressed", [*result.errors, *problems])


def _remove_ignores(result: CheckResult, unused: Sequence[UnusedSuppression]) -> int:
    """Takes comments out; returns the exit status."""
    from breakscan.cli.ignore_comments import remove_ignores

    if result.errors:
        return _changed("no comment removed, since not all files could be checked", result.errors)
    done, problems = remove_ignores(unused)
    return _changed(f"{counted(done, 'comment')} removed or shortened", problems)


def _changed(said: str, errors: Sequence[SourceError]) -> int:
    for error in errors:
        click.echo(visible(f"{error.path}:{error.line}:{error.column}: {error.message}"), err=True)
    click.echo(f"breakscan: {said}", err=True)
    return 2 if errors else 0


def _check_files(
    paths: Sequence[str],
    discovery: Discovery,
    settings: FileSettings,
    nothing: CheckResult,
    force_exclude: bool,
    jobs: int | None,
    recordings: Sequence[Path],
    quiet: bool,
) -> CheckResult:
    result = nothing
    if discovery.files:
        from breakscan.check.pipeline.check import check_paths

        settings = with_recordings(settings, recordings, discovery.files)
        with ProgressBar("Checking", quiet=quiet) as progress:
            result = check_paths(discovery.files, settings, on_progress=progress, jobs=jobs)
    elif not discovery.errors and not force_exclude:
        click.echo(f"warning: no Python files or notebooks in {', '.join(paths)}", err=True)
    errors = sorted((*discovery.errors, *result.errors), key=lambda error: (error.path, error.line, error.column))
    return replace(result, errors=tuple(errors))


def _check_stdin(
    name: str,
    settings: FileSettings,
    nothing: CheckResult,
    texts: dict[str, str],
    contents: dict[str, bytes],
    force_exclude: bool,
) -> CheckResult:
    if force_exclude and is_excluded(os.path.abspath(name), settings):
        return nothing
    path, content = read_stdin(name)
    display = display_path(path, os.getcwd())
    try:
        contents[display] = content
        texts[display] = python_text(contents[display], path, display)
    except SourceProblem as problem:
        return replace(nothing, errors=(problem.error,), files=1)
    from breakscan.check.pipeline.check import check_paths

    return check_paths((), settings, stdin=(texts[display], path))
