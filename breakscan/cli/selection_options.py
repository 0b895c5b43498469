"""The options of ``check`` and ``fix`` that say which files, rules and code count."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from breakscan.fix.registry import rewrite_ids
from breakscan.model.findings import Confidence
from breakscan.rulebook.config import REGIONS, WAYS, NearestSettings, Settings
from breakscan.rulebook.document import nearest


def words(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    """The words between the commas of an option that may be given several times; None where it was not."""
    found = tuple(word.strip() for value in values for word in value.split(",") if word.strip())
    if values and not found:
        raise click.BadParameter("needs at least one word", param=parameter)
    return found or None


OPTIONS = (
    click.option(
        "--select",
        metavar="LIST",
        multiple=True,
        callback=words,
        help="Only these rules: ids, starts of ids (BRK1), names, ALL.",
    ),
    click.option("--ignore", metavar="LIST", multiple=True, callback=words, help="Not these rules."),
    click.option(
        "--exclude",
        metavar="LIST",
        multiple=True,
        callback=words,
        help="Leave out files that match these .gitignore patterns.",
    ),
    click.option("--force-exclude", is_flag=True, help="Apply excludes to the given PATHS, too (for pre-commit)."),
    click.option("--target-torch", metavar="VERSION", help="The torch version to check for.  [the installed one]"),
    click.option("--target", type=click.Choice(WAYS), help="How the code is compiled.  [compile]"),
    click.option("--fullgraph/--no-fullgraph", default=None, help="Check for torch.compile(fullgraph=True)."),
    click.option("--regions", type=click.Choice(REGIONS), help="Which code counts as compiled.  [auto]"),
    click.option(
        "--confidence",
        type=click.Choice([c.value for c in Confidence]),
        help="Take findings that are at least this sure.  [conditional]",
    ),
    click.option("--config", type=click.Path(path_type=Path), help="Use this configuration file for all PATHS."),
    click.option("-j", "--jobs", type=click.IntRange(min=1), help="Processes to use.  [one per core]"),
    click.option("--cache-dir", type=click.Path(path_type=Path), metavar="PATH", help="Keep results in this folder."),
    click.option("--no-cache", is_flag=True, help="Check every file again, and keep no results."),
)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options to a command."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def require_rewrites(ids: Iterable[str]) -> None:
    """Raises BadParameter if there is no rewrite with one of these ids."""
    for one in ids:
        if one not in rewrite_ids():
            raise click.BadParameter(
                f"there is no rewrite {one!r}{nearest(one, rewrite_ids())}", param_hint="--rewrite"
            )


def settings_for(config: Path | None, options: dict[str, Any]) -> NearestSettings:
    """The settings of files, with options over them: the values of those of :data:`OPTIONS` that go into settings."""
    overrides = {
        "target_torch": options["target_torch"],
        "target": options["target"],
        "fullgraph": options["fullgraph"],
        "regions": options["regions"],
        "confidence": Confidence(options["confidence"]) if options["confidence"] else None,
        "no_cache": options["no_cache"] or None,
        **{name: options[name] for name in ("select", "ignore", "exclude", "cache_dir")},
    }
    return NearestSettings(config, **overrides)


def settings_at(where: Iterable[str], settings: NearestSettings) -> list[Settings]:
    """The settings for some paths, those of a folder for its files; without repetition."""
    folders = (path if os.path.isdir(path) else os.path.dirname(path) for path in map(os.path.abspath, where))
    return list({id(one): one for one in map(settings.in_folder, map(Path, folders))}.values())
