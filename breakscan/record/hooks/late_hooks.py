"""Hooks into parts of torch that a program may never load: they wait until it has.

Importing Inductor takes longer than many programs run, so a hook must not be what loads it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

Hook = AbstractContextManager[Any]


class LateHooks:
    """Hooks by name, each with the module that it waits for."""

    def __init__(self, hooks: Mapping[str, tuple[str, Hook]]) -> None:
        self._waiting = dict(hooks)

    def due(self, executed: str | None = None) -> Iterator[tuple[str, Hook]]:
        """Each hook once, as soon as its module is there; cheap to ask again and again.  ``executed`` names a module
        that is there although its import has not ended."""
        if not self._waiting:
            return
        ready = [name for name, (module, _) in self._waiting.items() if module == executed or _is_loaded(module)]
        for name in ready:
            # Two threads may ask at once.
            waiting = self._waiting.pop(name, None)
            if waiting is not None:
                yield name, waiting[1]


def _is_loaded(module: str) -> bool:
    """Not while it is still being imported: its functions are not all there then."""
    found = sys.modules.get(module)
    return found is not None and not getattr(getattr(found, "__spec__", None), "_initializing", False)
