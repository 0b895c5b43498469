"""Settings of the compiler, put into torch's configurations after they have been imported."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from types import ModuleType

from breakscan.prove.worker.config_settings import CONFIGURATIONS
from breakscan.record.bootstrap.import_watch import ImportWatch


class CompilerSettings:
    """``settings`` by key (``dynamo.capture_scalar_outputs``).  ``unknown`` are the keys that this torch lacks."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        self.unknown: list[str] = []
        self._settings = settings

    def install(self, watch: ImportWatch) -> None:
        """Applies the settings as soon as a configuration is imported."""
        for name, module in CONFIGURATIONS.items():
            watch.after(module, functools.partial(self._apply, name))

    def lost(self) -> list[str]:
        """The keys of settings that have another value by now: the program sets them itself."""
        lost = []
        for key, value in self._settings.items():
            name, _, path = key.partition(".")
            found: object = sys.modules.get(CONFIGURATIONS[name])
            for part in path.split("."):
                found = getattr(found, part, None)
            if key not in self.unknown and found != value:
                lost.append(key)
        return lost

    def _apply(self, name: str, config: ModuleType) -> None:
        for key, value in self._settings.items():
            where, _, path = key.partition(".")
            if where != name:
                continue
            owner: object = config
            *heads, last = path.split(".")
            for head in heads:
                owner = getattr(owner, head)
            if hasattr(owner, last):
                setattr(owner, last, value)
            else:
                self.unknown.append(key)
