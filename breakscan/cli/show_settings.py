"""``check --show-settings``: what a run would go by, and where that comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from breakscan.analysis.pipeline.cache import ResultCache
from breakscan.config import Settings, Target
from breakscan.source.paths import display_path


def settings_lines(settings: Settings, target: Target, enabled: Sequence[str], cwd: str) -> Iterator[str]:
    """The settings as lines in the form of a configuration file."""
    yield f"# from {display_path(settings.config_file, cwd) if settings.config_file else 'no configuration file'}"
    if settings.options:
        yield f"# from options: {', '.join(sorted(o.replace('_', '-') for o in settings.options))}"
    judged = "" if target.ledger == target.torch else f", judged by the verdicts of {target.ledger}"
    yield f"target-torch = {json.dumps(target.torch)}  # {target.source}{judged}"
    yield f"target = {json.dumps(settings.target)}"
    yield f"fullgraph = {json.dumps(settings.fullgraph)}"
    yield f"regions = {json.dumps(settings.regions)}"
    yield f"confidence = {json.dumps(settings.confidence.value)}"
    yield f"select = {json.dumps(settings.select)}"
    yield f"ignore = {json.dumps(settings.ignore)}"
    yield f"exclude = {json.dumps(settings.exclude)}"
    yield f"rules = {json.dumps([display_path(folder, cwd) for folder in settings.rule_folders])}"
    yield _cache_line(settings, cwd)
    if settings.per_file_ignores:
        yield "[per-file-ignores]"
        for pattern, selectors in settings.per_file_ignores:
            yield f"{json.dumps(pattern)} = {json.dumps(selectors)}"
    yield f"# {len(enabled)} rules: {' '.join(enabled)}"


def _cache_line(settings: Settings, cwd: str) -> str:
    folder = settings.cache_folder
    if folder is None:
        return "# no cache"
    line = f"cache-dir = {json.dumps(display_path(folder, cwd))}"
    return line if ResultCache(folder, "").writable else f"{line}  # not used: not writable, or it holds other things"
