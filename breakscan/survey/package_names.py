"""Prints the public modules of a package: ``python -m breakscan.survey.package_names PACKAGE``.

They are the classes of ``torch.nn.Module`` that the package defines and that can be called, each under its shortest
public name.  A submodule that cannot be imported stands for itself: its unit says why.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
from collections.abc import Iterator
from types import ModuleType

_TESTS = frozenset({"test", "tests", "conftest"})


def names(package: str) -> list[str]:
    """The dotted names of what a package offers.  Raises what the package raises when it is imported."""
    modules: dict[str, ModuleType] = {}
    broken: list[str] = []
    _import_below(importlib.import_module(package), modules, broken)
    found: dict[type, tuple[bool, int, str]] = {}
    for module in modules.values():
        for name, value in list(vars(module).items()):
            if not name.startswith("_") and _is_offered(value, package):
                place = f"{module.__name__}.{name}"
                rank = (not _is_public(value, name, module), place.count("."), place)
                found[value] = min(rank, found.get(value, rank))
    return sorted([*(place for _, _, place in found.values()), *broken])


def _import_below(module: ModuleType, modules: dict[str, ModuleType], broken: list[str]) -> None:
    """Imports the public submodules of a package, one after the other, and those below them."""
    modules[module.__name__] = module
    for name in _submodules(module):
        child = _imported(name)
        if child is None:
            broken.append(name)
        else:
            _import_below(child, modules, broken)


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit):  # whatever a module does when it is imported
        return None


def _submodules(module: ModuleType) -> Iterator[str]:
    for one in pkgutil.iter_modules(getattr(module, "__path__", []), f"{module.__name__}."):
        last = one.name.rpartition(".")[2]
        if not last.startswith("_") and last not in _TESTS:
            yield one.name


def _is_offered(value: object, package: str) -> bool:
    """Whether it is a class of the package whose instances can be called."""
    from torch.nn import Module

    if not isinstance(value, type) or not issubclass(value, Module) or inspect.isabstract(value):
        return False
    if not f"{value.__module__}.".startswith(f"{package}."):
        return False
    return value.forward is not Module.forward or value.__call__ is not Module.__call__


def _is_public(value: type, name: str, module: ModuleType) -> bool:
    """Whether a module offers a class: it defines it, is a package above, or says so.  Others import it for their own
    use."""
    return f"{value.__module__}.".startswith(f"{module.__name__}.") or name in getattr(module, "__all__", ())


if __name__ == "__main__":
    print(json.dumps(names(sys.argv[1])))
