"""What can be called in torch and NumPy, as far as it was listed: ``tools/list_names.py``."""

from __future__ import annotations

import builtins
import json
from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent / "data/names/callables.json"


@cache
def callables() -> dict[str, frozenset[str]]:
    """By namespace, what any supported version has there; the builtins under the empty name."""
    listed = json.loads(_FILE.read_text(encoding="utf-8"))
    own = {"": frozenset(name for name, value in vars(builtins).items() if callable(value))}
    return {name: frozenset(text.split()) for name, text in listed.items()} | own
