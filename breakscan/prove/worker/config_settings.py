"""Settings of the compiler, as ``--config`` is given them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

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
