"""Modules that a process has imported before the program runs, and that it hides until the program imports them."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

NOT_READ = ("ACCELERATE_", "TOKENIZERS_", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Variables that no native library reads while it is loaded."""


@dataclass(slots=True)
class _Stage:
    """``modules`` by name, in the order in which their imports ended. ``children`` are those that are attributes of
    modules of an earlier stage: parent, name and module.  ``read`` are the variables that Python code read while they
    were imported; None if native libraries, which may read any, were loaded, too."""

    modules: dict[str, ModuleType]
    children: list[tuple[ModuleType, str, ModuleType]]
    read: set[str] | None


class PreloadedModules:
    """The modules that this process has imported in advance, in stages: a program that imports any module of a stage
    gets all of it, and those before it.

    ``hide`` removes them from ``sys.modules``. The program's own import brings a stage back, without executing it
    again, if the environment variables that it read are those with which it was imported.
    """

    def __init__(self) -> None:
        self._stages: list[_Stage] = []
        self._environment: dict[str, str] = {}
        self._restart: Callable[[], object] = lambda: None
        self._restored: Callable[[ModuleType], object] = lambda _: None

    def load(self, name: str, native: bool = False) -> None:
        """Imports a module, and what it imports, as the next stage: ``native`` libraries too. Raises what the import
        raises."""
        before = set(sys.modules)
        with _variables_read() as read:
            importlib.import_module(name)
        loaded = {name: sys.modules[name] for name in sys.modules if name not in before}
        self._stages.append(_stage(loaded, None if native else read))

    @property
    def files(self) -> frozenset[str]:
        """The real paths of the files of the modules."""
        found = (getattr(module, "__file__", None) for stage in self._stages for module in stage.modules.values())
        return frozenset(os.path.realpath(path) for path in found if path)

    def hide(self, restart: Callable[[], object], restored: Callable[[ModuleType], object]) -> None:
        """Hides the modules. ``restored`` is called with each that is brought back, and ``restart`` if the program has
        changed variables that they read, so that they have to be imported again in a new process.
        """
        if not self._stages:
            return
        self._environment = dict(os.environ)
        self._restart, self._restored = restart, restored
        for stage in self._stages:
            for name in stage.modules:
                del sys.modules[name]
            for parent, name, _ in stage.children:
                delattr(parent, name)
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of a hidden module, whose loader brings it back."""
        is_hidden = any(name in stage.modules for stage in self._stages)
        return ModuleSpec(name, _Loader(self.bring_back)) if is_hidden else None

    def bring_back(self, name: str) -> ModuleType:
        """Brings the stages back, up to the one that has the module. Returns the module."""
        self.check_environment()
        while True:
            stage = self._stages.pop(0)
            self._restore(stage)
            if name in stage.modules:
                return stage.modules[name]

    def check_environment(self) -> None:
        """Calls ``restart`` if modules that are still hidden read a variable that has changed."""
        changed = {name for name, _ in self._environment.items() ^ os.environ.items() if not name.startswith(NOT_READ)}
        if any(changed if stage.read is None else changed & stage.read for stage in self._stages):
            self._restart()

    def _restore(self, stage: _Stage) -> None:
        if not self._stages:
            sys.meta_path.remove(self)
        sys.modules.update(stage.modules)
        for parent, name, module in stage.children:
            setattr(parent, name, module)
        for module in stage.modules.values():
            self._restored(module)


class _Loader(Loader):
    """Gives a module to the import system that needs not be executed."""

    def __init__(self, bring_back: Callable[[str], ModuleType]) -> None:
        self._bring_back = bring_back
        self._own_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Returns the module."""
        module = self._bring_back(spec.name)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module its own spec back."""
        module.__spec__ = self._own_spec


@contextlib.contextmanager
def _variables_read() -> Iterator[set[str]]:
    """Yields the names of the environment variables that Python code reads in the block."""
    environment: Any = type(os.environ)
    get, read = environment.__getitem__, set()

    def noted(variables: object, name: str) -> object:
        read.add(name)
        return get(variables, name)

    environment.__getitem__ = noted
    try:
        yield read
    finally:
        environment.__getitem__ = get


def _stage(modules: Mapping[str, ModuleType], read: set[str] | None) -> _Stage:
    # Modules of the standard library are the same for all programs.
    own = {name: module for name, module in modules.items() if name.partition(".")[0] not in sys.stdlib_module_names}
    children = []
    for name, module in own.items():
        above, _, last = name.rpartition(".")
        parent = sys.modules.get(above)
        if above not in own and parent is not None and vars(parent).get(last) is module:
            children.append((parent, last, module))
    return _Stage(own, children, read)
