"""The options about the baseline of ``check``: ``--baseline``, ``--no-baseline``, ``--locked``, ``--baseline-add``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from breakscan.check.baseline.baseline_file import read_baseline
from breakscan.cli.baselining import Baselines, Baselining
from breakscan.cli.committed_file import committed_file_options, read_file
from breakscan.report.check import no_baseline_sentence
from breakscan.rulebook.config import FileSettings
from breakscan.source.paths import display_path

_FILE = committed_file_options(
    "baseline", "findings", "Report only what this file does not allow; take out of it what is gone."
)
_NONE = click.option("--no-baseline", is_flag=True, help="Report what the baseline of the configuration allows, too.")


def baseline_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options to a command."""
    return _FILE(_NONE(command))


def read_baselines(
    path: Path | None, off: bool, locked: bool, add: bool, files: Iterable[Path], settings: FileSettings
) -> Baselines | None:
    """The baselines that count for some files: the one of the option ``path`` for all, or those of their settings, if
    they are not ``off``.

    Raises UsageError where the options do not go together, ClickException for a file that cannot be used.
    """
    if path is not None:
        if off:
            raise click.UsageError("--baseline and --no-baseline cannot be combined")
        asked = read_file("baseline", path, locked, add, read_baseline)
        assert asked is not None
        return Baselines((Baselining(*asked, lambda _: True),))
    named: dict[Path, Path | None] = {}
    for file in files:
        own = settings.of(file)
        if own.baseline is not None and not off:
            named.setdefault(own.baseline, own.config_file)
    if not named:
        read_file("baseline", None, locked, add, read_baseline)
        return None
    return Baselines(
        tuple(_of_configuration(baseline, config, locked, add, settings) for baseline, config in named.items())
    )


def _of_configuration(
    baseline: Path, config: Path | None, locked: bool, add: bool, settings: FileSettings
) -> Baselining:
    shown = Path(display_path(baseline, Path.cwd()))
    asked = read_file("baseline", shown, locked, add, read_baseline)
    assert asked is not None
    if asked[1] is None:
        # Made here, it would allow everything wherever somebody forgot to commit it.
        raise click.ClickException(no_baseline_sentence(str(shown), display_path(config or "", Path.cwd())))
    return Baselining(*asked, lambda file: settings.of(file).baseline == baseline)
