"""Settings of the compiler: as ``--config`` is given them, and put into torch's configurations after their import."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

from breakscan.recording.bootstrap.import_watch import ImportWatch

CONFIGURATIONS = {"dynamo": "torch._dynamo.config", "inductor": "torch._inductor.config"}
"""The modules of the compiler's configurations, by the first part of the key of a setting."""


class SettingError(ValueError):
    """A setting is not of the form that is wanted.  Says what is."""


def settings_of(words: Sequence[str]) -> dict[str, object]:
    """Settings ``key=value`` by their whole names (``dynamo.capture_scalar_outputs``).  Raises SettingError."""
    return dict(map(_setting, words))


def _setting(word: str) -> tuple[str, object]:
    key, equals, text = word.partition("=")
    key = key.strip().removeprefix("torch.").removeprefix("_")
    room, _, name = key.partition(".")
    name = name.removeprefix("config.") if room in CONFIGURATIONS else name
    if room not in CONFIGURATIONS:
        room, name = "dynamo", key
    if not equals or not all(part.isidentifier() for part in name.split(".")):
        raise SettingError(
            f"{word!r} is not of the form key=value, such as capture_scalar_outputs=True or inductor.max_autotune=True"
        )
    try:
        return f"{room}.{name}", ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return f"{room}.{name}", text.strip()


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
