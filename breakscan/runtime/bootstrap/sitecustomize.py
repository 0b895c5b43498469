"""Runs first in the user's program, and makes the recorder start once torch's compiler is loaded.

Imports nothing that Python has not imported by now, so that the program finds the modules that it would find
without us: torch is not imported early, and a file of the user's named like one of the standard library still
comes first.  The environment and the import path are put back as they were.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    Actions = dict[str, Callable[[ModuleType], None]]

_FOLDER = os.environ.pop("BREAKSCAN_RECORDING", None)
_KEPT_PATH = os.environ.pop("BREAKSCAN_PYTHONPATH", None)
"""``PYTHONPATH`` as it was, where it was set."""
_IMPORTLIB = "<frozen importlib._bootstrap_external>"
_HERE = os.path.dirname(os.path.abspath(__file__))
_LIBRARY = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))
"""The folder that breakscan lies in."""


class _ImportWatch:
    """Finds nothing itself: it learns that certain modules are executed, and acts once, before or behind that."""

    def __init__(self, before: "Actions", behind: "Actions") -> None:
        self.before = before
        self.behind = behind

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name not in self.before and name not in self.behind:
            return None
        spec: Any = None
        for finder in sys.meta_path:
            # Finders of the old kind have no such method: Python asks them, if we find nothing.
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
            if spec is not None:
                break
        if spec is None or spec.loader is None:
            # Not there, or a folder without a file of its own, in which nothing is executed.
            return spec
        if isinstance(spec.loader, type):
            spec.loader = _LoaderOfBuiltin(spec.loader, self)
        else:
            execute = spec.loader.exec_module

            def exec_module(module: "ModuleType") -> None:
                del spec.loader.exec_module
                self.act(self.before, module)
                execute(module)
                self.act(self.behind, module)

            # So named, Python leaves it out of the traceback of an import that fails, as it does its own part.
            exec_module.__code__ = exec_module.__code__.replace(co_filename=_IMPORTLIB)
            spec.loader.exec_module = exec_module
        return spec

    def act(self, actions: "Actions", module: "ModuleType") -> None:
        action = actions.pop(module.__name__, None)
        if not self.before and not self.behind and self in sys.meta_path:
            sys.meta_path.remove(self)
        if action is not None:
            action(module)


class _LoaderOfBuiltin:
    """Stands in for a loader that is a class, and so the same for all modules."""

    def __init__(self, loader: "Any", watch: _ImportWatch) -> None:
        self.loader = loader
        self.watch = watch

    def create_module(self, spec: "Any") -> "Any":
        return self.loader.create_module(spec)

    def exec_module(self, module: "Any") -> None:
        module.__spec__.loader = module.__loader__ = self.loader
        self.watch.act(self.watch.before, module)
        self.loader.exec_module(module)
        self.watch.act(self.watch.behind, module)


def _note_torch(folder: str) -> None:
    try:
        os.close(os.open(os.path.join(folder, "torch-imported"), os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError:
        # The program deleted the folder, or filled the disk.
        return


def _start_recorder(folder: str) -> None:
    # Where it is there already, it keeps its place among the others.
    is_added = _LIBRARY not in sys.path
    if is_added:
        sys.path.append(_LIBRARY)
    try:
        from breakscan.runtime.recorder import start

        start(folder)
    except Exception as error:
        sys.stderr.write(f"breakscan: nothing is recorded: {type(error).__name__}: {error}\n")
    finally:
        if is_added:
            sys.path.remove(_LIBRARY)


def _neighbour(name: str) -> "Any":
    """A file beside this one as a module that the program does not see."""
    module = type(sys)(name)
    loader: Any = type(__loader__)  # type: ignore[name-defined]
    loader(name, os.path.join(_HERE, f"{name}.py")).exec_module(module)
    return module


def _children_hook(folder: str) -> "Callable[[ModuleType], None]":
    """Hooks into ``os``, and returns what hooks into ``_posixsubprocess``."""
    children = _neighbour("children").Children(folder, _HERE)
    children.hook_os()
    hook: Callable[[ModuleType], None] = children.hook_subprocess
    return hook


def _restore_environment() -> None:
    if _KEPT_PATH is not None:
        os.environ["PYTHONPATH"] = _KEPT_PATH
    else:
        os.environ.pop("PYTHONPATH", None)
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
    sys.path_importer_cache.pop(_HERE, None)


def _run_hidden_sitecustomize() -> None:
    """Ours hides the one that this Python has otherwise."""
    for finder in sys.meta_path:
        spec: Any = finder.find_spec("sitecustomize", None) if hasattr(finder, "find_spec") else None
        if spec is not None and spec.loader is not None:
            module = type(sys)("sitecustomize")
            module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
            sys.modules["sitecustomize"] = module
            spec.loader.exec_module(module)
            return


def _watch(folder: str) -> None:
    before: Actions = {"torch": lambda _: _note_torch(folder)}
    behind: Actions = {"torch._dynamo": lambda _: _start_recorder(folder)}
    if os.name == "posix":
        behind["_posixsubprocess"] = _children_hook(folder)
    if os.path.exists(os.path.join(folder, "requests")):
        behind.update(_neighbour("eager_compile").wait_for(folder, _LIBRARY))
    for actions in (before, behind):
        for name in [name for name in actions if name in sys.modules]:
            actions.pop(name)(sys.modules[name])
    if before or behind:
        sys.meta_path.insert(0, _ImportWatch(before, behind))


if _FOLDER is not None:
    _restore_environment()
    _watch(_FOLDER)
_run_hidden_sitecustomize()
