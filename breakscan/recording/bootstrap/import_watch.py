"""Acts once, before or after certain modules are executed for the first time.  Loaded by ``sitecustomize`` before the
program starts, so it imports nothing that Python has not imported by then."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    Action = Callable[[ModuleType], None]

_IMPORTLIB = "<frozen importlib._bootstrap_external>"


class ImportWatch:
    """Finds no module itself: it asks the finders after it, and wraps the loader that they give.  It is among the
    finders only while there is something to wait for.  There can be several: each asks only those after it, or two
    would ask each other for ever."""

    def __init__(self) -> None:
        self._before: dict[str, list[Action]] = {}
        self._after: dict[str, list[Action]] = {}

    def before(self, name: str, action: "Action") -> None:
        """Calls ``action`` with the module right before it is executed; at once if it has been."""
        self._wait(self._before, name, action)

    def after(self, name: str, action: "Action") -> None:
        """Calls ``action`` with the module as soon as it has been executed; at once if it has been."""
        self._wait(self._after, name, action)

    def stop(self) -> None:
        self._before.clear()
        self._after.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        """The spec that a finder after this one gives."""
        if name not in self._before and name not in self._after:
            return None
        spec: Any = None
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :] if self in finders else ():
            # Finders of the old kind have no such method.  Python asks them if this one finds nothing.
            if hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
            if spec is not None:
                break
        if spec is None or spec.loader is None:
            # Not there, or a folder without an __init__.py, in which nothing is executed.
            return spec
        if isinstance(spec.loader, type):
            spec.loader = _LoaderOfBuiltin(spec.loader, self)
        else:
            execute = spec.loader.exec_module
            of_another_watch = "exec_module" in vars(spec.loader)

            def exec_module(module: "ModuleType") -> None:
                if of_another_watch:
                    spec.loader.exec_module = execute
                else:
                    del spec.loader.exec_module
                self.execute(execute, module)

            # With this name, Python leaves it out of the traceback of an import that fails, as it does its own frames.
            exec_module.__code__ = exec_module.__code__.replace(co_filename=_IMPORTLIB)
            spec.loader.exec_module = exec_module
        return spec

    def execute(self, execute: "Callable[[ModuleType], object]", module: "ModuleType") -> None:
        """Executes a module between its actions."""
        self._act(self._before, module)
        execute(module)
        self._act(self._after, module)

    # Between the two, a traceback shows no frame of this file either.
    execute.__code__ = execute.__code__.replace(co_filename=_IMPORTLIB)

    def _wait(self, actions: "dict[str, list[Action]]", name: str, action: "Action") -> None:
        if name in sys.modules:
            action(sys.modules[name])
            return
        actions.setdefault(name, []).append(action)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def _act(self, waiting: "dict[str, list[Action]]", module: "ModuleType") -> None:
        actions = waiting.pop(module.__name__, ())
        if not self._before and not self._after and self in sys.meta_path:
            sys.meta_path.remove(self)
        for action in actions:
            action(module)


class _LoaderOfBuiltin:
    """Replaces a loader that is a class, and so the same for all modules."""

    def __init__(self, loader: "Any", watch: ImportWatch) -> None:
        self.loader = loader
        self.watch = watch

    def create_module(self, spec: "Any") -> "Any":
        return self.loader.create_module(spec)

    def exec_module(self, module: "Any") -> None:
        module.__spec__.loader = module.__loader__ = self.loader
        self.watch.execute(self.loader.exec_module, module)
