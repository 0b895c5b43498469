"""``breakscan config``: the settings that apply to a file."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from breakscan.check.pipeline.cache import ResultCache
from breakscan.cli.options import argument, declared, option, output_option
from breakscan.cli.output import report_stream
from breakscan.cli.selection import settings_at
from breakscan.model.findings import Confidence
from breakscan.rulebook.config import KEYS, NearestSettings, Settings, enabled_rules, resolve_target
from breakscan.source.paths import PathPattern, display_path


@click.command()
@declared
def config(
    path: str = argument(default=".", type=click.Path(exists=True)),
    config: Path | None = option("--config", "Use this configuration file.", type=click.Path(path_type=Path)),
    output: Path | None = output_option,
) -> None:
    """Show the settings that apply to PATH, and the configuration file that they come from.

    PATH is a file, or a folder for the files in it; the default is the working directory.  Settings come from the
    nearest breakscan.toml, or pyproject.toml with a table [tool.breakscan].
    """
    with report_stream(output) as stream:
        (settings,) = settings_at([path], NearestSettings(config))
        stream.writelines(f"{line}\n" for line in settings_lines(settings, os.getcwd()))


def settings_lines(settings: Settings, cwd: str) -> Iterator[str]:
    """The settings as lines in the form of a ``breakscan.toml``."""
    yield f"# from {display_path(settings.config_file, cwd) if settings.config_file else 'no configuration file'}"
    target, cache = resolve_target(settings), settings.cache_folder
    judged = "" if target.ledger == target.torch else f", judged by the verdicts of {target.ledger}"
    unused = "" if cache and ResultCache(cache, "").writable else "  # not used: not writable, or it holds other files"
    values = {name: getattr(settings, name) for name in KEYS} | {"target_torch": target.torch, "cache_dir": cache}
    notes = {"target_torch": f"  # {target.source}{judged}", "cache_dir": unused}
    for name, key in KEYS.items():
        if values[name] is not None and name != "per_file_ignores":
            yield f"{key.name} = {json.dumps(_plain(values[name], cwd))}{notes.get(name, '')}"
    if settings.per_file_ignores:
        yield "[per-file-ignores]"
        for pattern, selectors in settings.per_file_ignores:
            yield f"{json.dumps(pattern.text)} = {json.dumps(selectors)}"
    enabled = sorted(enabled_rules(settings, settings.library))
    yield f"# {len(enabled)} rules: {' '.join(enabled)}"


def _plain(value: object, cwd: str) -> Any:
    if isinstance(value, tuple):
        return [_plain(one, cwd) for one in value]
    if isinstance(value, PathPattern):
        return value.text
    if isinstance(value, Path):
        return display_path(value, cwd)
    return value.value if isinstance(value, Confidence) else value
