"""``breakscan fix``."""

import sys
from dataclasses import replace
from pathlib import Path

import click

from breakscan.cli.options import (
    SectionedCommand,
    argument,
    declared,
    flag,
    format_option,
    group,
    list_option,
    output_option,
)
from breakscan.cli.output import ProgressBar, report_stream
from breakscan.cli.selection import (
    Selection,
    quiet_option,
    recording_option,
    require_rewrites,
    warn_of_no_files,
    with_recordings,
)
from breakscan.report.formats import FIX
from breakscan.report.sources import NotebookCells
from breakscan.rulebook.config import FileSettings, library_of
from breakscan.source.files import discover


@click.command(cls=SectionedCommand, short_help="Rewrite what breaks the graph, as a diff or in the files.")
@declared
@click.pass_context
def fix(
    ctx: click.Context,
    /,
    paths: tuple[str, ...] = argument(nargs=-1, type=click.Path(path_type=str)),
    write: bool = flag("--write", "Write the safe edits.  [only print the diff of all]"),
    unsafe: bool = flag("--unsafe", "Also write the edits that assume something or change more than speed."),
    ids: tuple[str, ...] | None = list_option("--rewrite", "Only these rewrites, by their ids."),
    recordings: tuple[Path, ...] = recording_option,
    format_: str = format_option(FIX),
    output: Path | None = output_option,
    selection: Selection = group(Selection),
    quiet: bool = quiet_option,
) -> None:
    """Rewrite what breaks the graph, recompiles or falls back to eager in the Python files and notebooks below PATHS.

    Prints the diff of all edits on standard output, and on standard error what each assumes or changes, or why there is
    none.  --write writes the safe ones, --write --unsafe all.  Nothing is imported or run.

    Exits with 0 if --write would change nothing; 1 if it would, or a file is not valid Python; and 2 if part of the
    work could not be done.
    """
    from breakscan.check.pipeline.check import check_paths, no_collector
    from breakscan.check.pipeline.checker import Checker
    from breakscan.fix.planner import WantedRewrites
    from breakscan.fix.repair import repair_found, write_repairs
    from breakscan.report.fix import FixReport, write_notes

    require_rewrites(ids or ())
    wanted = WantedRewrites(frozenset(ids) if ids else None, useful=not ids)
    paths = paths or (".",)
    settings: FileSettings = selection.settings()
    discovery = discover(paths, settings, force_exclude=selection.force_exclude)
    warn_of_no_files(discovery, paths, selection)
    settings = with_recordings(settings, recordings, discovery.files)
    checkers, jobs = Checker(settings), selection.jobs
    with no_collector(), ProgressBar("Checking", quiet=quiet) as bar:
        found = check_paths(discovery.files, settings, on_progress=bar, jobs=jobs, checkers=checkers, on_purpose=True)
    found = replace(found, errors=(*discovery.errors, *found.errors))
    with no_collector(), ProgressBar("Rewriting", quiet=quiet) as bar:
        repair = repair_found(found, settings, wanted, jobs=jobs, checkers=checkers, on_progress=bar)
    unwritten = write_repairs(repair.files, unsafe) if write else ()
    cells = NotebookCells.of(
        [path.display for path in repair.files] + [error.path for error in repair.errors],
        {file.display: file.data for file in repair.files},
    )
    library = library_of(settings.of(file.path) for file in repair.files)
    report = FixReport(repair, library, unsafe, write, unwritten, cells)
    with report_stream(output) as stream:
        FIX.write(format_, report, stream)
        if format_ == "diff":
            stream.flush()
            write_notes(report, sys.stderr, quiet=quiet)
    changes = any(file.text(unsafe) != file.before for file in repair.files)
    if unwritten or any(not error.syntax for error in repair.errors):
        ctx.exit(2)
    ctx.exit(1 if repair.errors or (changes and not write) else 0)
