"""The option ``--fail-on`` of ``check``."""

from __future__ import annotations

from collections.abc import Callable

import click

from breakscan.cli.selection_options import words
from breakscan.model.findings import Finding, Severity
from breakscan.rulebook.config.keys import selector_problem
from breakscan.rulebook.library import Library
from breakscan.source.selectors import selects

_ORDER = (Severity.INFO, Severity.WARNING, Severity.ERROR)

fail_on_option = click.option(
    "--fail-on",
    metavar="LIST",
    multiple=True,
    callback=words,
    help="Exit with 1 only on these: rules (BRK101, BRK2, a name), or what is at least an error, a warning, an info.",
)


def failing(asked: tuple[str, ...] | None, library: Library) -> Callable[[Finding], bool]:
    """Whether a finding fails the run: all do where nothing is ``asked``.  Raises UsageError for a word that names
    nothing."""
    if asked is None:
        return lambda finding: True
    severities = {one.value: set(_ORDER[_ORDER.index(one) :]) for one in _ORDER}
    rules = [word for word in asked if word.lower() not in severities]
    for word in rules:
        if problem := selector_problem(word, library):
            raise click.UsageError(f"--fail-on: {problem}; severities are {', '.join(severities)}")
    named = set().union(*(severities[word.lower()] for word in asked if word not in rules))
    return lambda finding: finding.severity in named or any(selects(word, finding.rule, finding.name) for word in rules)
