"""``breakscan explain``."""

import os
import sys
from pathlib import Path

import click

from breakscan.cli.exit_status import FAILED, UNWRITTEN, OutputError, show_failure
from breakscan.cli.gates import GateOptions, LockOptions, gate_status
from breakscan.cli.options import (
    FILE_PATH,
    FOLDER_PATH,
    SectionedCommand,
    argument,
    declared,
    flag,
    format_option,
    group,
    option,
    output_to,
)
from breakscan.cli.output import STDOUT, is_read_on_terminal, refuse_source, report_stream, require_writable
from breakscan.cli.programs import ARGUMENTS, RequestOptions, add_unmet, refuse_notebook, require_torch
from breakscan.cli.reporting import check_option, explain_report, require_room, show_option
from breakscan.explanation.explanation import Explanation
from breakscan.recording.launch import LaunchError, end_like, outliving_termination, run_recorded
from breakscan.recording.session import (
    MOST_SECONDS,
    Session,
    SessionError,
    can_keep,
    keep_recent,
    read_run,
    start_session,
    wait_for_ranks,
)
from breakscan.report.explain import ExplainReport
from breakscan.report.formats import EXPLAIN, FOR_LOGS
from breakscan.rulebook.config import load_settings
from breakscan.rulebook.library import Library
from breakscan.source.paths import display_path
from breakscan.source.source_files import SourceFiles

STDIN = "-"
CACHES = "Caches"  # a section of the help


@click.command(cls=SectionedCommand, context_settings={"allow_interspersed_args": False})
@declared
def explain(
    as_module: bool = flag("-m", "PROGRAM is the name of a module, as for python -m."),
    as_code: bool = flag("-c", "PROGRAM is code, as for python -c."),
    format_: str = format_option(EXPLAIN),
    output: Path | None = output_to("standard error"),
    save: Path | None = option(
        "--save",
        "Keep the recording in this new folder.  [for some days, for breakscan report --last]",
        type=FOLDER_PATH,
        metavar="FOLDER",
    ),
    check: bool = check_option,
    asked: RequestOptions = group(RequestOptions),
    tables: tuple[str, ...] = show_option,
    caches: bool = flag(
        "--caches",
        "Run PROGRAM twice with one fresh folder of compiler caches, and show what the second run finds in it.",
        CACHES,
    ),
    warm_up: Path | None = option(
        "--warm-up",
        "--caches, and write what was compiled to this file, for other machines to load, once a third run has.",
        CACHES,
        type=FILE_PATH,
        callback=refuse_source,
        metavar="FILE",
    ),
    gate: GateOptions = group(GateOptions),
    lock: LockOptions = group(LockOptions),
    program: str = argument(),
    arguments: tuple[str, ...] = argument(**ARGUMENTS),
) -> None:
    """Run PROGRAM with its ARGUMENTS, and show where torch.compile broke the graph, recompiled or fell back to eager.

    The program runs as under python, with its own input and output.  Options of breakscan come before PROGRAM.

    Exits with the status of the program.  If that is 0, exits with 1 if a gate or the lock is not met.  Exits with 2 if
    the program could not be run.
    """
    if format_ not in FOR_LOGS and output is None:
        raise click.UsageError(
            f"--format {format_} needs --output FILE, or --output - for standard output, which your program writes to "
            "as well"
        )
    require_room(tables, check, format_)
    if as_module and as_code:
        raise click.UsageError("the program is a module (-m) or code (-c), not both")
    how = ["-m"] if as_module else ["-c"] if as_code else []
    if not how and program != STDIN and not os.path.exists(program):
        raise click.UsageError(f"there is no file {program!r}; a module takes -m, and code -c")
    if not how:
        refuse_notebook(program)
    require_torch("explain", [*how, program])
    library = load_settings(Path.cwd()).library
    for written in filter(None, (output, warm_up)):
        require_writable(written)

    shown = "the program" if program == STDIN or as_code else program
    argv = [*how, program, *arguments]
    requests = asked.read(argv)
    gates = gate.read(library)
    locking = lock.read(argv)
    if caches or warm_up is not None:
        if gates or locking or save or tables or check:
            raise click.UsageError("--caches and --warm-up take no --save, --show, --check, gate or lock")
        from breakscan.cli.caches import explain_caches

        explain_caches(
            shown, argv, requests, warm_up, format_, output, lambda run: _explained(run, library, SourceFiles.trusted())
        )
        return
    session = start_session(argv, save)
    requests.write(session.folder)
    if sys.stderr.isatty():
        click.echo(click.style(f"breakscan: recording; the report follows when {shown} has ended", dim=True), err=True)
    with outliving_termination() as asked_to_end:
        try:
            outcome = run_recorded(argv, session.folder)
        except LaunchError as error:
            session.discard()
            raise click.ClickException(str(error)) from error
        status = 0
        try:
            session.end(outcome)
            if session.reports:
                wait_for_ranks(session, _say_whom_it_waits_for, asked_to_end)
                files = SourceFiles.trusted()
                explanation = _explained(session, library, files)
                explanation, unmet = add_unmet(explanation, requests, session.folder, say=output is not None)
                again = "breakscan report --last" if not session.kept and can_keep() else ""
                is_read = is_read_on_terminal(sys.stderr, output)
                made = explain_report(explanation, files, format_, tables, check, is_read=is_read, again=again)
                _write(made, format_, output)
                _keep_sources(session, files)
                if not session.kept:
                    keep_recent(session.root)
                if save is not None:
                    click.echo(f"breakscan: the recording is in {save}, for breakscan report {save}", err=True)
                status = unmet or gate_status(gates, explanation)
                if locking:
                    status = locking.status(explanation, failed=outcome.status != 0) or status
        except click.ClickException as error:
            error.show()
            status = UNWRITTEN if isinstance(error, OutputError) else FAILED
        except SessionError as error:
            click.ClickException(f"there is nothing to report: {error}").show()
            status = FAILED
        except Exception as error:
            # The exit status stays the program's where it failed: what went wrong is ours.
            failure = show_failure(error)
            status = failure if gates or locking else 0
            click.echo(f"The recording of the run is in {session.root}", err=True)
        end_like(outcome.status or status)


def _explained(session: Session, library: Library, files: SourceFiles) -> Explanation:
    """Explain what this machine has recorded of the run."""
    from breakscan.explanation.from_recording import explain_run

    run = read_run(session.root, session.rank.local_ranks if session.rank else None)
    return explain_run(run, rules=library, show=lambda path: display_path(path, run.cwd), files=files)


def _say_whom_it_waits_for(ranks: list[int]) -> None:
    from breakscan.explanation.explanation import ranks_in_words

    click.echo(f"breakscan: waiting for {ranks_in_words(ranks)} to end, at most {MOST_SECONDS:.0f} s", err=True)


def _write(report: ExplainReport, format_: str, output: Path | None) -> None:
    if output is None:
        EXPLAIN.write(format_, report, sys.stderr)
        return
    with report_stream(output) as stream:
        EXPLAIN.write(format_, report, stream)
    if output != STDOUT:
        click.echo(f"breakscan: the report is in {output}", err=True)


def _keep_sources(session: Session, files: SourceFiles) -> None:
    try:
        session.keep_sources(files.read)
    except OSError as error:
        click.echo(f"breakscan: cannot keep the sources with the recording: {error.strerror}", err=True)
