"""Which of the files that a run compiled or exported a configuration excludes."""

from __future__ import annotations

import os
from pathlib import Path

from breakscan.rulebook.config import FileSettings
from breakscan.source.paths import PatternLayers


def excludes(path: str, settings: FileSettings) -> bool:
    """Whether the configuration of a file excludes it.  Installed packages count here, since they were compiled."""
    absolute = os.path.abspath(path)
    return bool(PatternLayers(settings.of(Path(absolute)).exclude).decide(absolute))
