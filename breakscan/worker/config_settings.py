"""Settings of the compiler, as ``--config`` is given them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

ROOMS = ("dynamo", "inductor")
"""The compiler's configurations, as keys of settings name them."""


class SettingError(ValueError):
    """A setting is not of the form that is wanted.  Says what is."""


def settings_of(words: Sequence[str]) -> dict[str, object]:
    """Settings ``key=value`` by their whole names (``dynamo.capture_scalar_outputs``).  Raises SettingError."""
    return dict(map(_setting, words))


def _setting(word: str) -> tuple[str, object]:
    key, equals, text = word.partition("=")
    key = key.strip().removeprefix("torch.").removeprefix("_")
    room, _, name = key.partition(".")
    name = name.removeprefix("config.") if room in ROOMS else name
    if room not in ROOMS:
        room, name = "dynamo", key
    if not equals or not all(part.isidentifier() for part in name.split(".")):
        raise SettingError(
            f"{word!r} is not of the form key=value, such as capture_scalar_outputs=True or inductor.max_autotune=True"
        )
    try:
        return f"{room}.{name}", ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return f"{room}.{name}", text.strip()
