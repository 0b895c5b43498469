"""``breakscan diff``."""

import json
from pathlib import Path
from typing import Any

import click

from breakscan.cli.options import argument, declared, format_option, output_option
from breakscan.cli.output import report_stream
from breakscan.cli.reporting import readable_files, source_root_option
from breakscan.explanation.from_recording import Relocation, relocated
from breakscan.report.diff import compare, is_report
from breakscan.report.formats import DIFF
from breakscan.rulebook.config import load_settings
from breakscan.source.paths import display_path


@click.command()
@declared
@click.pass_context
def diff(
    ctx: click.Context,
    /,
    before: Path = argument(type=click.Path(path_type=Path, exists=True)),
    after: Path = argument(type=click.Path(path_type=Path, exists=True)),
    format_: str = format_option(DIFF),
    relocation: Relocation = source_root_option,
    output: Path | None = output_option,
) -> None:
    """Show what has changed from one run to another.

    BEFORE and AFTER are reports of breakscan explain --format json, or folders that explain --save kept.  A break is
    the same if its file, function, reason and the text of its line are the same; the line number may change.

    Exits with 1 if there is a new break site, a worse one, more recompiles or a new eager function, and with 2 if a
    report cannot be read.
    """
    reports = read_report(before, relocation), read_report(after, relocation)
    try:
        comparison = compare(*reports)
    except (KeyError, TypeError, ValueError) as error:
        raise click.ClickException(f"{before} or {after} is damaged: {error!r}") from error
    with report_stream(output) as stream:
        DIFF.write(format_, comparison, stream)
    ctx.exit(1 if comparison.regressions else 0)


def read_report(path: Path, relocation: Relocation) -> Any:
    """Return the JSON report in a file, or that of a recording.  Raises ClickException with the remedy."""
    if path.is_dir():
        return _recorded(path, relocation)
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"{path} is not JSON: {error}") from error
    if not is_report(value):
        raise click.ClickException(f"{path} is not a report of breakscan explain --format json")
    return value


def _recorded(folder: Path, relocation: Relocation) -> Any:
    from breakscan.explanation.from_recording import explain_run
    from breakscan.recording.session import read_run
    from breakscan.report.explain.json import explain_object

    run = relocated(read_run(folder), relocation)
    library = load_settings(Path.cwd()).library
    files = readable_files(relocation)
    return explain_object(explain_run(run, rules=library, show=lambda path: display_path(path, run.cwd), files=files))
