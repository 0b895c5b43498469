"""Runs first in the user's program, and makes the recorder start once torch's compiler is loaded.  Imports nothing that
Python has not imported by now, so that the program finds the modules that it would find without us: torch is not
imported early, and a file of the user's named like one of the standard library still comes first.  The environment and
the import path are put back as they were."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_FOLDER = os.environ.pop("BREAKSCAN_RECORDING", None)
_KEPT_PATH = os.environ.pop("BREAKSCAN_PYTHONPATH", None)  # ``PYTHONPATH`` as it was, where it was set
_HERE = os.path.dirname(os.path.abspath(__file__))
_LIBRARY = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))  # the folder that breakscan lies in
_LOADED_LATE = ("torch.export._trace", "torch.export._draft_export", "torch._inductor")
"""Modules that the recorder must learn of before the program imports functions from them.  They may be what loads
torch's compiler: then they are executed before it, in part, and end after it."""


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
        from breakscan.recording.recorder import start

        _tell.append(start(folder))
    except Exception as error:
        sys.stderr.write(f"breakscan: nothing is recorded: {type(error).__name__}: {error}\n")
    finally:
        if is_added:
            sys.path.remove(_LIBRARY)


_tell: "list[Callable[[str], None]]" = []  # takes names of modules, once the recorder has started


def _neighbour(name: str) -> "Any":
    """A file next to this one as a module that the program does not see."""
    module = type(sys)(name)
    loader: Any = type(__loader__)  # type: ignore[name-defined]
    loader(name, os.path.join(_HERE, f"{name}.py")).exec_module(module)
    return module


def _restore_environment() -> None:
    if _KEPT_PATH is not None:
        os.environ["PYTHONPATH"] = _KEPT_PATH
    else:
        os.environ.pop("PYTHONPATH", None)
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
    sys.path_importer_cache.pop(_HERE, None)


def _run_hidden_sitecustomize() -> None:
    """Runs the ``sitecustomize`` that this Python has otherwise: ours hides it."""
    for finder in sys.meta_path:
        spec: Any = finder.find_spec("sitecustomize", None) if hasattr(finder, "find_spec") else None
        if spec is not None and spec.loader is not None:
            module = type(sys)("sitecustomize")
            module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
            sys.modules["sitecustomize"] = module
            spec.loader.exec_module(module)
            return


def _watch(folder: str) -> None:
    watch: Any = _neighbour("import_watch").ImportWatch()
    watch.before("torch", lambda _: _note_torch(folder))
    watch.after("torch._dynamo", lambda _: _start_recorder(folder))
    for name in _LOADED_LATE:
        watch.after(name, lambda module: [listener(module.__name__) for listener in _tell])
    if os.name == "posix":
        children = _neighbour("children").Children(folder, _HERE)
        children.hook_os()
        watch.after("_posixsubprocess", children.hook_subprocess)
    if os.path.exists(os.path.join(folder, "requests")):
        for name, action in _neighbour("eager_compile").wait_for(folder, _LIBRARY).items():
            watch.after(name, action)


if _FOLDER is not None:
    _restore_environment()
    _watch(_FOLDER)
_run_hidden_sitecustomize()
