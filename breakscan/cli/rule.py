"""``breakscan rule``."""

from __future__ import annotations

from pathlib import Path

import click

from breakscan.cli.options import format_option
from breakscan.cli.output import report_stream
from breakscan.cli.selection import warn_of_callees
from breakscan.report.formats import RULE, RULES
from breakscan.report.rules import RuleListReport, RuleReport
from breakscan.rulebook.config import load_settings, resolve_target
from breakscan.rulebook.library import load_library


def _complete(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    words = [word for rule in load_library() for word in (rule.id, rule.name)]
    return [word for word in words if word.lower().startswith(typed.lower())]


@click.command()
@click.argument("rule", metavar="RULE", shell_complete=_complete)
@format_option(RULE)
def rule(rule: str, format_: str) -> None:
    """Explain RULE, an id such as BRK101 or a name such as branch-on-tensor.

    Shows why the compiler cannot do it, what to write instead, and the verdict of each torch version.  The start of an
    id, such as BRK1, lists the rules of a family.
    """
    from breakscan.rulebook.ledger import load_ledger, measured_versions

    settings = load_settings(Path.cwd())
    library = load_library(settings.rule_folders)
    warn_of_callees(library)
    try:
        named = library.select(rule)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if len(named) > 1:
        target = resolve_target(settings)
        with report_stream(None) as stream:
            listed = RuleListReport(named, load_ledger(target.ledger), target.torch)
            RULES.write("json" if format_ == "json" else "table", listed, stream)
        return
    ledgers = [load_ledger(version) for version in reversed(measured_versions())]
    with report_stream(None) as stream:
        RULE.write(format_, RuleReport(named[0], ledgers), stream)
