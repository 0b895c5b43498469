"""How much is said besides the report: ``--quiet`` and ``--verbose``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from breakscan.report.check import detail_lines
from breakscan.report.printable import visible
from breakscan.rulebook.config import FileSettings, Settings, resolve_target

quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print what was found, and nothing else.")
verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="Say on standard error which settings and kept results were used."
)


def say_details(files: Iterable[Path], settings: FileSettings, kept: int) -> None:
    """Says on standard error under which settings files were checked, and how many results were ``kept``."""
    by_settings: dict[int, tuple[Settings, int]] = {}
    for file in files:
        one = settings.of(file)
        by_settings[id(one)] = one, by_settings.get(id(one), (one, 0))[1] + 1
    groups = [(one, resolve_target(one), count) for one, count in by_settings.values()]
    for line in detail_lines(groups, kept, os.getcwd()):
        click.echo(visible(f"breakscan: {line}"), err=True)
