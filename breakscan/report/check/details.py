"""What ``check --verbose`` says: under which settings files were checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from breakscan.model.words import counted
from breakscan.rulebook.config import Settings, Target
from breakscan.source.paths import display_path


def detail_lines(groups: Sequence[tuple[Settings, Target, int]], kept: int, cwd: str) -> Iterator[str]:
    """A line for each of some settings, with what is checked for under them and how many files; then how many results
    were ``kept`` from earlier runs."""
    for settings, target, files in groups:
        config = display_path(settings.config_file, cwd) if settings.config_file else "no configuration file"
        judged = "" if target.ledger == target.torch else f", judged by the verdicts of {target.ledger}"
        folder = settings.cache_folder
        cache = "no cache" if folder is None else f"cache in {display_path(folder, cwd)}"
        torch = f"torch {target.torch} ({_SOURCES.get(target.source, target.source)}{judged})"
        yield f"{counted(files, 'file')} under {config}: {torch}, {cache}"
    yield f"{kept} of {counted(sum(files for _, _, files in groups), 'result')} kept from earlier runs"


_SOURCES = {"config": "configured", "option": "--target-torch"}
