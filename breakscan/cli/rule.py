"""``breakscan rule``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from breakscan.cli.output import report_stream
from breakscan.config import load_settings
from breakscan.rulebook.library import load_library


@click.command()
@click.argument("rule", metavar="RULE")
@click.option(
    "--format", "format_", type=click.Choice(("text", "json")), default="text", help="How to show it.  [text]"
)
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
        if format_ == "json":
            from breakscan.reports.rules.json import rule_object

            stream.write(json.dumps(rule_object(named[0], ledgers), indent=2) + "\n")
        else:
            from breakscan.reports.rules.page import write_rule

            write_rule(named[0], ledgers, stream)
