"""The options by which a run passes or fails: ``--max-breaks``, ``--max-recompiles``,
``--max-eager-calls``, ``--fail-on``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from breakscan.cli.committed_file import NOT_MET
from breakscan.explain.explanation import Explanation
from breakscan.explain.gates import Gates, nothing_compiled, selectors, unmet, unmet_sentence
from breakscan.rulebook.library import Library


def gate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options ``max_breaks``, ``max_recompiles``, ``max_eager_calls`` and ``fail_on`` to a command."""
    for option in (
        click.option(
            "--fail-on",
            metavar="LIST",
            multiple=True,
            help="Exit with 1 on any of these: rules (BRK101, BRK2, a name), PyTorch's ids (GB0170), ALL.",
        ),
        click.option(
            "--max-eager-calls",
            type=click.IntRange(min=0),
            metavar="N",
            help="Exit with 1 where more than N calls of something compiled ran eager.",
        ),
        click.option(
            "--max-recompiles",
            type=click.IntRange(min=0),
            metavar="N",
            help="Exit with 1 where more than N recompiles happened.",
        ),
        click.option(
            "--max-breaks",
            type=click.IntRange(min=0),
            metavar="N",
            help="Exit with 1 where more than N sites break the graph, torch's own aside.",
        ),
    ):
        command = option(command)
    return command


def read_gates(
    library: Library,
    max_breaks: int | None,
    max_recompiles: int | None,
    max_eager_calls: int | None,
    fail_on: Iterable[str],
) -> Gates:
    """The gates that the options ask for.  Raises UsageError for a word that names nothing."""
    words = [word.strip() for value in fail_on for word in value.split(",") if word.strip()]
    try:
        return Gates(max_breaks, max_recompiles, max_eager_calls, selectors(words, library))
    except ValueError as error:
        raise click.UsageError(f"--fail-on: {error}") from error


def gate_status(gates: Gates, explanation: Explanation) -> int:
    """The exit status that the gates ask for; says on standard error what is not met.

    A run in which nothing was compiled meets no gate: it says nothing of the program.
    """
    if not gates:
        return 0
    if nothing_compiled(explanation):
        click.echo("breakscan: nothing was compiled, so the gates are not met", err=True)
        return NOT_MET
    from breakscan.report.printable import visible

    found = unmet(gates, explanation)
    for gate in found:
        click.echo(f"breakscan: {visible(unmet_sentence(gate))}", err=True)
    return NOT_MET if found else 0
