"""``breakscan report``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from breakscan.cli.check_option import check_option, explain_report, require_room
from breakscan.cli.gate_options import gate_options, gate_status, read_gates
from breakscan.cli.output import report_stream
from breakscan.cli.report_options import format_option, output_path, stream_option
from breakscan.cli.show_option import require_terminal, show_option
from breakscan.config import load_settings
from breakscan.reports.formats import EXPLAIN
from breakscan.rulebook.library import Library, load_library
from breakscan.runtime.explain.explanation import Explanation
from breakscan.runtime.explain.relocation import Relocation, relocated, shown_path

_MANIFESTS = ("run.json", "rank-*/run.json", "restart-*/rank-*/run.json")


def _source_roots(_: click.Context, __: click.Parameter, values: Iterable[str]) -> Relocation:
    roots: dict[str, str] = {}
    for value in values:
        old, equals, new = value.partition("=")
        if not old or not equals or not new:
            raise click.BadParameter(f"{value!r} is not of the form OLD=NEW")
        roots[old] = os.path.abspath(new)
    return Relocation(roots)


@click.command()
@format_option(EXPLAIN)
@stream_option("standard output")
@click.option(
    "--source-root",
    "relocation",
    metavar="OLD=NEW",
    multiple=True,
    callback=_source_roots,
    help="The files that were below OLD when the program ran are below NEW here.",
)
@check_option
@show_option
@gate_options
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
def report(
    format_: str,
    output: str | None,
    relocation: Relocation,
    check: bool,
    tables: tuple[str, ...],
    max_breaks: int | None,
    max_recompiles: int | None,
    fail_on: tuple[str, ...],
    paths: tuple[Path, ...],
) -> int:
    """Report a run that is over, or goes on elsewhere: nothing is run, and torch is not needed.

    A PATH is a folder that breakscan explain --save kept, a log that torch wrote because TORCH_TRACE was set, or a
    folder of such logs; the logs of several ranks make one report.  The exit status is 1 where a gate is not met, 2
    where there is nothing to report.
    """
    require_room(check, format_)
    require_terminal(tables, format_)
    library = load_library(load_settings(Path.cwd()).rule_folders)
    gates = read_gates(library, max_breaks, max_recompiles, fail_on)
    explanation = _explained(paths, library, relocation)
    made = explain_report(explanation, format_, check, tables)
    with report_stream(output_path(output)) as stream:
        EXPLAIN.write(format_, made, stream)
    return gate_status(gates, explanation)


def _explained(paths: Sequence[Path], library: Library, relocation: Relocation) -> Explanation:
    from breakscan.runtime.explain.from_recording import explain_run
    from breakscan.runtime.explain.from_trace_logs import TraceError, explain_logs
    from breakscan.runtime.session import SessionError, read_run

    try:
        if not any(_is_recording(path) for path in paths):
            return explain_logs(paths, library, relocation, Path.cwd())
        if len(paths) > 1:
            raise click.UsageError("one recording makes one report: breakscan diff compares two")
        run = relocated(read_run(paths[0]), relocation)
        return explain_run(run, rules=library, show=lambda path: shown_path(path, os.getcwd()))
    except (SessionError, TraceError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"cannot read {error.filename}: {error.strerror}") from error


def _is_recording(path: Path) -> bool:
    return any(next(path.glob(pattern), None) for pattern in _MANIFESTS)
