"""Runs first in the user's program, and makes the recorder start once torch's compiler is loaded.

Imports nothing that Python has not imported by now, so that the program finds the modules that it would find
without us: torch is not imported early, and a file of the user's named like one of the standard library still
comes first.  The environment and the import path are put back as they were.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_FOLDER = os.environ.pop("BREAKSCAN_RECORDING", None)
_HERE = os.path.dirname(os.path.abspath(__file__))
_COMPILER = "torch._dynamo"


class _CompilerWatch:
    """Finds nothing itself: it learns that torch is imported, and hooks into the loader of its compiler."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name == "torch":
            os.close(os.open(os.path.join(self.folder, "torch-imported"), os.O_CREAT | os.O_WRONLY, 0o600))
        if name != _COMPILER:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec: Any = finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: "ModuleType") -> None:
            del spec.loader.exec_module
            execute(module)
            _start_recorder(self.folder)

        spec.loader.exec_module = exec_module
        return spec


def _start_recorder(folder: str) -> None:
    package = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))
    sys.path.append(package)
    try:
        from breakscan.runtime.recorder import start

        start(folder)
    except Exception as error:
        sys.stderr.write(f"breakscan: nothing is recorded: {type(error).__name__}: {error}\n")
    finally:
        sys.path.remove(package)


def _restore_environment() -> None:
    kept = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry != _HERE]
    if any(kept):
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    else:
        os.environ.pop("PYTHONPATH", None)
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]


def _run_hidden_sitecustomize() -> None:
    """Ours hides the one that this Python has otherwise."""
    for finder in sys.meta_path:
        spec = finder.find_spec("sitecustomize", None)
        if spec is not None and spec.loader is not None:
            module = type(sys)("sitecustomize")
            module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
            sys.modules["sitecustomize"] = module
            spec.loader.exec_module(module)
            return


_restore_environment()
if _FOLDER is not None:
    if _COMPILER in sys.modules:
        _start_recorder(_FOLDER)
    else:
        sys.meta_path.insert(0, _CompilerWatch(_FOLDER))
_run_hidden_sitecustomize()
