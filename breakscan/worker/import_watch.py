"""Acts once behind the first execution of certain modules.  Imports nothing that Python has not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Action = Callable[[ModuleType], None]


class ImportWatch:
    """Finds nothing itself: it asks the finders behind it, and wraps what they find."""

    def __init__(self) -> None:
        self._actions: dict[str, list[Action]] = {}

    def behind(self, name: str, action: Action) -> None:
        """Calls ``action`` with the module as soon as it has been executed; at once where it has been."""
        if name in sys.modules:
            action(sys.modules[name])
            return
        self._actions.setdefault(name, []).append(action)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec that another finder has, with the actions behind its execution."""
        if name not in self._actions:
            return None
        spec: Any = None
        for finder in [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                break
        if spec is None or spec.loader is None:
            return spec  # type: ignore[no-any-return]
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del spec.loader.exec_module
            execute(module)
            for action in self._actions.pop(name, ()):
                action(module)

        spec.loader.exec_module = exec_module
        wrapped: ModuleSpec = spec
        return wrapped
