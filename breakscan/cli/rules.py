"""``breakscan rules``, and the group that ``rules replay`` belongs to."""

from __future__ import annotations

from pathlib import Path

import click

from breakscan.cli.output import report_stream
from breakscan.cli.own_rules import warn_of_callees
from breakscan.cli.replay import replay
from breakscan.cli.report_options import format_option
from breakscan.model.findings import Mode, Verdict
from breakscan.report.formats import RULES
from breakscan.report.rules import RuleListReport
from breakscan.rulebook.config import ConfigError, load_settings, resolve_target
from breakscan.rulebook.document import FAMILIES, Rule
from breakscan.rulebook.ledger import Ledger, load_ledger
from breakscan.rulebook.library import load_library


@click.group(invoke_without_command=True)
@click.option(
    "--family",
    type=click.IntRange(min(FAMILIES), max(FAMILIES)),
    help="Only this family: 1 for BRK1xx, …; 0 for your own.",
)
@click.option("--torch", metavar="VERSION", help="Only rules that this torch version does not compile.")
@format_option(RULES)
@click.pass_context
def rules(ctx: click.Context, /, family: int | None, torch: str | None, format_: str) -> None:
    """List the rules, with what the target torch version does with their examples.

    Without --torch that is the version in the configuration, else the installed one.
    """
    if ctx.invoked_subcommand is not None:
        if family is not None or torch:
            raise click.UsageError("--family and --torch filter the list, and go with no command")
        return
    try:
        settings = load_settings(Path.cwd(), target_torch=torch)
    except ConfigError as error:
        if error.path is not None:
            raise
        raise click.BadParameter(error.reason, param_hint="--torch") from error
    target = resolve_target(settings)
    ledger = load_ledger(target.ledger)
    library = load_library(settings.rule_folders)
    warn_of_callees(library)
    listed = [rule for rule in library if family in (None, rule.family)]
    compiled = [rule for rule in listed if torch and _compiles(rule, ledger)]
    listed = [rule for rule in listed if rule not in compiled]
    with report_stream(None) as stream:
        RULES.write(format_, RuleListReport(listed, ledger, target.torch, compiled), stream)


def _compiles(rule: Rule, ledger: Ledger) -> bool:
    """Whether the version compiles every example of the rule that breaks on some other version."""
    verdicts = [
        ruling.verdict
        for label, example in ledger.examples.get(rule.id, {}).items()
        if label.startswith("breaks/")
        for (mode, _), ruling in example.rulings.items()
        if mode is Mode.DEFAULT
    ]
    return bool(verdicts) and all(verdict is Verdict.COMPILES for verdict in verdicts)


rules.add_command(replay)
