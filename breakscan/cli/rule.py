"""``breakscan rule``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from breakscan.cli.options import format_option
from breakscan.cli.output import report_stream
from breakscan.cli.selection import warn_of_callees
from breakscan.report.formats import RULE, RULES
from breakscan.report.printable import visible
from breakscan.report.rules import RuleListReport, RuleReport
from breakscan.rulebook.config import Settings, load_settings, resolve_target
from breakscan.rulebook.document import Rule
from breakscan.rulebook.library import load_library
from breakscan.source.files import discover

_SHOWN = 8


def _complete(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    words = [word for rule in load_library() for word in (rule.id, rule.name)]
    return [word for word in words if word.lower().startswith(typed.lower())]


@click.command()
@click.argument("rule", metavar="RULE", shell_complete=_complete)
@click.option(
    "--check",
    "paths",
    metavar="PATH",
    multiple=True,
    help="Try RULE on its examples and on the files below PATH, and report why it finds nothing.",
)
@format_option(RULE)
@click.pass_context
def rule(ctx: click.Context, /, rule: str, paths: tuple[str, ...], format_: str) -> None:
    """Explain RULE, an id such as BRK101 or a name such as branch-on-tensor.

    Shows why the compiler cannot do it, what to write instead, and the verdict of each torch version.  The start of an
    id, such as BRK1, lists the rules of a family.

    With --check, exits with 0 if RULE finds something in the files and agrees with its examples, with 1 if not, and
    with 2 if a file cannot be checked.
    """
    from breakscan.rulebook.ledger import load_ledger, measured_versions

    settings = load_settings(Path.cwd())
    library = load_library(settings.rule_folders)
    warn_of_callees(library)
    try:
        named = library.select(rule)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if len(named) > 1 and paths:
        raise click.UsageError(f"--check tries one rule, and {rule!r} names {len(named)}: {_ids(named)}")
    if len(named) > 1:
        target = resolve_target(settings)
        with report_stream(None) as stream:
            listed = RuleListReport(named, load_ledger(target.ledger), target.torch)
            RULES.write("json" if format_ == "json" else "table", listed, stream)
        return
    if paths:
        ctx.exit(_try(named[0], paths, settings))
    ledgers = [load_ledger(version) for version in reversed(measured_versions())]
    with report_stream(None) as stream:
        RULE.write(format_, RuleReport(named[0], ledgers), stream)


def _ids(rules: Sequence[Rule]) -> str:
    shown = ", ".join(one.id for one in rules[:_SHOWN])
    return shown if len(rules) <= _SHOWN else f"{shown}, …"


def _try(rule: Rule, paths: Sequence[str], settings: Settings) -> int:
    from breakscan.check.pipeline.rule_trial import try_rule
    from breakscan.report.rules import write_trial

    discovery = discover(paths, settings)
    for error in discovery.errors:
        click.echo(visible(f"Error: {error.path}: {error.message}"), err=True)
    trial = try_rule(rule, discovery.files, settings)
    with report_stream(None) as stream:
        write_trial(trial, stream)
    if discovery.errors or trial.result.errors:
        return 2
    return 0 if trial.result.findings and not trial.missed and not trial.mistaken else 1
