"""``breakscan rule``."""

from __future__ import annotations

from pathlib import Path

import click

from breakscan.cli.output import report_stream
from breakscan.cli.report_options import format_option
from breakscan.config import load_settings
from breakscan.reports.formats import RULE
from breakscan.reports.rules.report import RuleReport
from breakscan.rulebook.library import load_library


@click.command()
@click.argument("rule", metavar="RULE")
@format_option(RULE)
def rule(rule: str, format_: str) -> None:
    """Explain RULE, an id such as BRK101 or a name such as branch-on-tensor.

    Says why the compiler cannot do it, what to write instead, and what each measured torch version does.
    """
    from breakscan.rulebook.ledger import load_ledger, measured_versions

    library = load_library(load_settings(Path.cwd()).rule_folders)
    try:
        named = library.select(rule)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if len(named) > 1:
        raise click.UsageError(f"{rule!r} names {len(named)} rules: {', '.join(r.id for r in named)}")
    ledgers = [load_ledger(version) for version in reversed(measured_versions())]
    with report_stream(None) as stream:
        RULE.write(format_, RuleReport(named[0], ledgers), stream)
