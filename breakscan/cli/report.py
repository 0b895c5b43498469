"""``breakscan report``."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from breakscan.cli.gates import GateOptions, gate_status
from breakscan.cli.options import argument, declared, flag, format_option, group, option, output_option
from breakscan.cli.output import is_read_on_terminal, report_stream
from breakscan.cli.reporting import (
    check_option,
    explain_report,
    readable_files,
    require_room,
    show_option,
    source_root_option,
)
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.from_recording import Relocation, relocated
from breakscan.report.formats import EXPLAIN
from breakscan.rulebook.config import load_settings
from breakscan.rulebook.library import Library
from breakscan.source.paths import shown_path
from breakscan.source.source_files import SourceFiles

_MANIFESTS = ("run.json", "rank-*/run.json", "restart-*/rank-*/run.json")


@click.command()
@declared
def report(
    format_: str = format_option(EXPLAIN),
    output: Path | None = output_option,
    relocation: Relocation = source_root_option,
    check: bool = check_option,
    tables: tuple[str, ...] = show_option,
    gate: GateOptions = group(GateOptions),
    issue: str | None = option(
        "--issue",
        "Write the text of one problem for an issue tracker instead: SITE is train.py:41, or an id of a rule or "
        "of PyTorch.",
        metavar="SITE",
    ),
    last: bool = flag("--last", "Report the last run of breakscan explain that was not saved."),
    paths: tuple[Path, ...] = argument(nargs=-1, type=click.Path(path_type=Path, exists=True)),
) -> int:
    """Report a run from a saved recording, or from logs of torch.

    A PATH is a folder that breakscan explain --save kept, a log that torch wrote with TORCH_TRACE set, or a folder of
    such logs; logs of several ranks make one report.  Source files are read only below the working directory and
    --source-root.  torch is not needed, and nothing is run.

    Exits with 1 if a gate is not met, and with 2 if there is nothing to report.
    """
    if last == bool(paths):
        raise click.UsageError("name a recording or a log of torch's, or --last: one of them")
    require_room(tables, check, format_)
    library = load_settings(Path.cwd()).library
    gates = gate.read(library)
    files = readable_files(relocation)
    if last:
        from breakscan.recording.session import last_run

        paths = (last_run(),)
    explanation = _explained(paths, library, relocation, files)
    if issue is not None:
        from breakscan.report.explain.issue import issue_text

        try:
            text = issue_text(explanation, issue)
        except ValueError as error:
            raise click.ClickException(str(error)) from error
        with report_stream(output) as stream:
            stream.write(text)
        return 0
    is_read = is_read_on_terminal(sys.stdout, output)
    made = explain_report(explanation, files, format_, tables, check, is_read=is_read)
    with report_stream(output) as stream:
        EXPLAIN.write(format_, made, stream)
    return gate_status(gates, explanation)


def _explained(paths: Sequence[Path], library: Library, relocation: Relocation, files: SourceFiles) -> Explanation:
    from breakscan.explanation.from_recording import explain_logs, explain_run
    from breakscan.recording.session import read_run

    try:
        if not any(next(path.glob(pattern), None) for path in paths for pattern in _MANIFESTS):
            return explain_logs(paths, library, relocation, Path.cwd(), files)
        if len(paths) > 1:
            raise click.UsageError("one recording makes one report: breakscan diff compares two")
        run = relocated(read_run(paths[0]), relocation)
        return explain_run(run, rules=library, show=lambda path: shown_path(path, os.getcwd()), files=files)
    except OSError as error:
        raise click.ClickException(f"cannot read {error.filename}: {error.strerror}") from error
