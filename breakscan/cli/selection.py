"""The options of ``check`` and ``fix`` that select files, rules, code and confidence."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from breakscan.cli.options import CHECKED, PERFORMANCE, REPORTED, flag, list_option, option
from breakscan.fix.rewrites import rewrite_ids
from breakscan.model.findings import Confidence
from breakscan.report.printable import visible
from breakscan.rulebook.config import REGIONS, WAYS, FileSettings, NearestSettings, Settings
from breakscan.rulebook.document import nearest
from breakscan.source.files import Discovery
from breakscan.source.paths import display_path

quiet_option = flag("-q --quiet", "Print findings only.", REPORTED)
recording_option = option(
    "--recording",
    "Use the values that breakscan explain --save FOLDER recorded.  May be repeated.",
    CHECKED,
    metavar="FOLDER",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)


@dataclass(frozen=True, slots=True)
class Selection:
    select: tuple[str, ...] | None = list_option(
        "--select", "Check only these rules: ids, starts of ids (BRK1), names, or ALL.", CHECKED
    )
    ignore: tuple[str, ...] | None = list_option("--ignore", "Do not check these rules.", CHECKED)
    exclude: tuple[str, ...] | None = list_option(
        "--exclude", "Exclude files that match these .gitignore patterns.", CHECKED
    )
    force_exclude: bool = flag("--force-exclude", "Apply excludes also to files in PATHS (for pre-commit).", CHECKED)
    target_torch: str | None = option(
        "--target-torch",
        "The torch version to check for; two (2.13,2.15) list what changes between them.  [the installed one]",
        CHECKED,
        metavar="VERSION",
    )
    target: str | None = option("--target", "How the code is compiled.  [compile]", CHECKED, type=click.Choice(WAYS))
    fullgraph: bool | None = option(
        "--fullgraph/--no-fullgraph", "Check for torch.compile(fullgraph=True).", CHECKED, default=None
    )
    regions: str | None = option(
        "--regions",
        "The code that counts as compiled: what a file compiles, or if that is nothing, every Module.forward "
        "(auto); only what it compiles (roots); every Module.forward (modules); every function that handles tensors "
        "(all).  [auto]",
        CHECKED,
        type=click.Choice(REGIONS),
    )
    confidence: str | None = option(
        "--confidence",
        "The least confidence of a finding to report.  [conditional]",
        CHECKED,
        type=click.Choice([c.value for c in Confidence]),
    )
    config: Path | None = option(
        "--config", "Use this configuration file for all PATHS.", CHECKED, type=click.Path(path_type=Path)
    )
    jobs: int | None = option(
        "-j --jobs", "Number of processes.  [one per core]", PERFORMANCE, type=click.IntRange(min=1)
    )
    cache_dir: Path | None = option(
        "--cache-dir", "Cache results in this folder.", PERFORMANCE, type=click.Path(path_type=Path), metavar="PATH"
    )
    no_cache: bool = flag("--no-cache", "Do not read or write the cache.", PERFORMANCE)

    def settings(self) -> NearestSettings:
        """Return the settings of files, overridden by these options."""
        names = "select ignore exclude target_torch target fullgraph regions confidence cache_dir"
        values = {name: getattr(self, name) for name in names.split()}
        return NearestSettings(self.config, **values, no_cache=self.no_cache or None)


def settings_at(where: Iterable[str], settings: NearestSettings) -> list[Settings]:
    """Return the settings that apply to some paths (of a folder, to the files in it), each once."""
    folders = (path if os.path.isdir(path) else os.path.dirname(path) for path in map(os.path.abspath, where))
    return list({id(one): one for one in map(settings.in_folder, map(Path, folders))}.values())


def require_rewrites(ids: Iterable[str]) -> None:
    """Raises BadParameter if there is no rewrite with one of these ids."""
    for one in ids:
        if one not in rewrite_ids():
            raise click.BadParameter(
                f"there is no rewrite {one!r}{nearest(one, rewrite_ids())}", param_hint="--rewrite"
            )


def warn_of_no_files(discovery: Discovery, paths: Iterable[str], selection: Selection) -> None:
    """Prints a warning where there is nothing to check; with ``--force-exclude``, that is as it should be."""
    if not discovery.files and not discovery.errors and not selection.force_exclude:
        click.echo(f"warning: no Python files or notebooks in {', '.join(paths)}", err=True)


def with_recordings(settings: FileSettings, recordings: Sequence[Path], files: Sequence[Path]) -> FileSettings:
    """Return the settings with the recorded values of the checked files; warns of what cannot be used."""
    if not recordings:
        return settings
    from breakscan.explanation.function_values import changed_since, observations_of
    from breakscan.recording.session import read_run

    runs = [read_run(folder) for folder in recordings]
    observations = observations_of(process for run in runs for part in run.parts for process in part.processes)
    if not observations.files:
        click.echo("warning: the recording holds no values of functions: record the program again", err=True)
    for path in changed_since(observations, files):
        shown = visible(display_path(path, Path.cwd()))
        click.echo(f"warning: {shown} has changed since it was recorded: nothing is taken from the recording", err=True)
    return settings.changed(observations=observations)
