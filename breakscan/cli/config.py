"""``breakscan config``: the settings that apply to a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from breakscan.check.pipeline.cache import ResultCache
from breakscan.cli.options import output_option
from breakscan.cli.output import report_stream
from breakscan.cli.selection import settings_at
from breakscan.model.findings import Confidence
from breakscan.rulebook.config import NearestSettings, Settings, enabled_rules, resolve_target
from breakscan.rulebook.config.config_file import KEYS
from breakscan.rulebook.library import load_library
from breakscan.source.paths import PathPattern, display_path


@click.command()
@click.argument("path", default=".", type=click.Path(exists=True))
@click.option("--config", type=click.Path(path_type=Path), help="Use this configuration file.")
@output_option
def config(path: str, config: Path | None, output: Path | None) -> None:
    """Show the settings that apply to PATH, and the file that each comes from.

    PATH is a file, or a folder for the files in it; the default is the working directory.  Settings come from the
    nearest breakscan.toml, or pyproject.toml with a table [tool.breakscan], and from the files that it extends.
    """
    with report_stream(output) as stream:
        (settings,) = settings_at([path], NearestSettings(config))
        stream.writelines(f"{line}\n" for line in settings_lines(settings, os.getcwd()))


def settings_lines(settings: Settings, cwd: str) -> Iterator[str]:
    """The settings as lines in the form of a ``breakscan.toml``, each with the files that set it."""
    yield f"# from {display_path(settings.config_file, cwd) if settings.config_file else 'no configuration file'}"
    yield _target_line(settings, cwd)
    for name, key in KEYS.items():
        if name in ("per_file_ignores", "cache_dir", "target_torch"):
            continue
        if getattr(settings, name) is None:
            continue
        value = json.dumps(_plain(getattr(settings, name), cwd))
        yield f"{key.name} = {value}{_comment(_origins(settings, name, cwd))}"
    yield _cache_line(settings, cwd)
    if settings.per_file_ignores:
        yield f"[per-file-ignores]{_comment(_origins(settings, 'per_file_ignores', cwd))}"
        for pattern, selectors in settings.per_file_ignores:
            yield f"{json.dumps(pattern.text)} = {json.dumps(selectors)}"
    enabled = sorted(enabled_rules(settings, load_library(settings.rule_folders)))
    yield f"# {len(enabled)} rules: {' '.join(enabled)}"


def _origins(settings: Settings, name: str, cwd: str) -> list[str]:
    """Return the files that a setting comes from, the last one last; none for a default."""
    return [display_path(file, cwd) for one, file in settings.origins if one == name]


def _comment(origins: list[str]) -> str:
    return f"  # {', '.join(origins)}" if origins else ""


def _plain(value: object, cwd: str) -> Any:
    if isinstance(value, tuple):
        return [_plain(one, cwd) for one in value]
    if isinstance(value, PathPattern):
        return value.text
    if isinstance(value, Path):
        return display_path(value, cwd)
    return value.value if isinstance(value, Confidence) else value


def _target_line(settings: Settings, cwd: str) -> str:
    target = resolve_target(settings)
    judged = [] if target.ledger == target.torch else [f"judged by the verdicts of {target.ledger}"]
    origins = _origins(settings, "target_torch", cwd) or [target.source]
    return f"target-torch = {json.dumps(target.torch)}{_comment([*origins, *judged])}"


def _cache_line(settings: Settings, cwd: str) -> str:
    folder = settings.cache_folder
    if folder is None:
        return "# no cache"
    unused = [] if ResultCache(folder, "").writable else ["not used: not writable, or it holds other files"]
    comment = _comment([*_origins(settings, "cache_dir", cwd), *unused])
    return f"cache-dir = {json.dumps(display_path(folder, cwd))}{comment}"
