"""Compiles what ``--compile`` names, as soon as the program has defined it.  A module is looked at when it has been
executed, the script itself after each of its lines, until the name is something that can be compiled.  Runs
before the program does, so it imports nothing that Python has not imported by then; torch once it is needed."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, FrameType, ModuleType
    from typing import Any

FILE = "requests"  # the file, in the folder of a recording, of what is asked for: a word and operands a line
KEEP_GOING, PROFILE = "keep-going", "profile"
SAVE_CACHES, LOAD_CACHES = "save-caches", "load-caches"  # words that have no operands
MAIN = "__main__"  # the module that the script is
BUNDLE = "caches"  # the start of the names of files with what the compiler has stored, and the name of the one to load
BACKEND = "inductor"  # the default of ``torch.compile``
MOST_NAMES = 200


class Request:
    """``--compile module:attribute``: ``text`` as the user wrote it."""

    def __init__(self, text: str, module: str, attribute: str) -> None:
        self.text = text
        self.module = module
        self.attribute = attribute
        self.path = attribute.split(".")


def read_requests(folder: str) -> "tuple[set[str], str, list[Request]]":
    """The words that have no operands, the backend of what is to be compiled, and what that is."""
    words, backend, requests = set(), BACKEND, []
    path = os.path.join(folder, FILE)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for word, *operands in map(str.split, file):
                if word == "compile":
                    requests.append(Request(*operands))
                elif word == "backend":
                    (backend,) = operands
                else:
                    words.add(word)
    return words, backend, requests


def wait_for(folder: str, library: str) -> "dict[str, Callable[[ModuleType], None]]":
    """Waits for the names of the script that the folder's file asks to compile.  Returns what to do after each
    module that it asks for.  ``library`` is the folder that breakscan lies in."""
    words, backend, requests = read_requests(folder)
    compiler = Compiler(folder, library, backend, requests)
    own = [request for request in requests if request.module == MAIN]
    if own:
        watch = _ScriptWatch(compiler, own)
        (watch.monitor if sys.version_info >= (3, 12) else watch.trace)()
    found: dict[str, Callable[[ModuleType], None]] = dict.fromkeys(
        {request.module for request in requests} - {MAIN}, compiler.compile_in
    )
    if LOAD_CACHES in words:
        found["torch"] = lambda torch: load_caches(torch, folder)
    return found


def load_caches(torch: "Any", folder: str) -> None:
    """Does what the line does that ``--warm-up`` prints, where the program would have it."""
    try:
        with open(os.path.join(folder, BUNDLE), "rb") as file:
            torch.compiler.load_cache_artifacts(file.read())
    except Exception as error:
        sys.stderr.write(f"breakscan: the caches are not loaded: {type(error).__name__}: {error}\n")


def save_caches(folder: str) -> None:
    """Writes down what this process has compiled, if anything, for others to load."""
    import torch

    try:
        saved = torch.compiler.save_cache_artifacts()
        if saved is not None:
            with open(os.path.join(folder, f"{BUNDLE}-{os.getpid()}"), "wb") as file:
                file.write(saved[0])
    except Exception as error:
        sys.stderr.write(f"breakscan: the caches are not saved: {type(error).__name__}: {error}\n")


class Compiler:
    """Compiles names of modules, and writes down what became of each.  Nothing that goes wrong reaches the program."""

    def __init__(self, folder: str, library: str, backend: str, requests: "list[Request]") -> None:
        self.folder = folder
        self.library = library
        self.backend = backend
        self.requests = requests

    def compile_in(self, module: "ModuleType") -> None:
        """Compiles what is asked for in a module that was executed."""
        name = module.__name__
        shown = os.path.basename(getattr(module, "__file__", None) or name)
        for request in self.requests:
            if request.module == name:
                # A module may have put something else in its own place.
                self.compile(request, sys.modules.get(name, module), shown)

    def compile(self, request: Request, namespace: "Any", shown: str) -> None:
        """Compiles what the namespace, a module, holds under the name; or records why there is nothing."""
        try:
            problem, names = self._compile(request.path, namespace, shown)
        except Exception as error:
            problem, names = f"{type(error).__name__}: {error}", []
        self._record(request.text, problem, names)

    def can_compile(self, request: Request, namespace: "Any") -> bool:
        """Return whether the name refers to something that can be compiled."""
        try:
            owner, name = _owner(namespace, request.path)
            return callable(getattr(owner, name))
        except Exception:
            # An attribute can be computed, and fail in any way as long as it is not ready.
            return False

    def _compile(self, path: "Sequence[str]", namespace: "Any", shown: str) -> "tuple[str | None, list[str]]":
        try:
            owner, name = _owner(namespace, path)
            value = getattr(owner, name)
        except AttributeError:
            return f"{shown} defines no {'.'.join(path)}", _callables(namespace, path)
        if not callable(value):
            return f"{'.'.join(path)} is of type {type(value).__qualname__}, which cannot be compiled", []
        if isinstance(value, type):
            if not callable(getattr(value, "forward", None)):
                return f"the class {'.'.join(path)} has no forward: name one of its methods", _callables(value, [name])
            owner, name = value, "forward"
        self._replace(owner, name)
        return None, []

    def _replace(self, owner: "Any", name: str) -> None:
        import torch

        value = getattr(owner, name)
        if isinstance(value, torch.nn.Module):
            value.compile(backend=self.backend)
            return
        held = vars(owner).get(name)
        if isinstance(held, (staticmethod, classmethod)):
            setattr(owner, name, type(held)(torch.compile(held.__func__, backend=self.backend)))
        else:
            setattr(owner, name, torch.compile(value, backend=self.backend))

    def _record(self, target: str, problem: "str | None", names: "list[str]") -> None:
        # Where it is there already, it keeps its place among the others.
        is_added = self.library not in sys.path
        if is_added:
            sys.path.append(self.library)
        try:
            from pathlib import Path

            from breakscan.recording.recording import RecordingWriter
            from breakscan.recording.records import CompileMet

            RecordingWriter(Path(self.folder)).write(CompileMet(target, problem, tuple(names)))
        except Exception as error:
            sys.stderr.write(f"breakscan: --compile {target} is not recorded: {type(error).__name__}: {error}\n")
        finally:
            if is_added:
                sys.path.remove(self.library)


class _ScriptWatch:
    """Looks at the script's names after each of its lines, as nothing else shows that a statement has run."""

    def __init__(self, compiler: Compiler, requests: "list[Request]") -> None:
        self.compiler = compiler
        self.pending = requests
        self.script: CodeType | None = None

    def trace(self) -> None:
        """Python 3.10 and 3.11.  The tracer is called for each function's call until all names are found."""
        if sys.gettrace() is None:
            sys.settrace(self._on_call)

    def _on_call(self, frame: "FrameType", event: str, argument: object) -> "Callable[..., Any] | None":
        return self._on_event if self._is_script(frame) else None

    def _on_event(self, frame: "FrameType", event: str, argument: object) -> "Callable[..., Any] | None":
        self._look(frame, ended=event == "return")
        if self.pending:
            return self._on_event
        if sys.gettrace() == self._on_call:
            sys.settrace(None)
        return None

    def monitor(self) -> None:
        """Python 3.12 and later: nothing but the script's own lines is watched."""
        monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 - mypy checks for Python 3.10
        tool = next((number for number in range(6) if monitoring.get_tool(number) is None), None)
        if tool is None:
            return
        events = monitoring.events
        monitoring.use_tool_id(tool, "breakscan")

        def on_start(code: "CodeType", _: int) -> object:
            frame = sys._getframe(1)
            if self._is_script(frame):
                monitoring.set_events(tool, 0)
                monitoring.set_local_events(tool, code, events.LINE | events.PY_RETURN)
            return monitoring.DISABLE

        def on_event(code: "CodeType", *_: object, ended: bool = False) -> None:
            self._look(sys._getframe(1 + ended), ended)
            if not self.pending:
                monitoring.set_local_events(tool, code, 0)
                monitoring.free_tool_id(tool)

        monitoring.register_callback(tool, events.PY_START, on_start)
        monitoring.register_callback(tool, events.LINE, on_event)
        monitoring.register_callback(tool, events.PY_RETURN, lambda code, *_: on_event(code, ended=True))
        monitoring.set_events(tool, events.PY_START)

    def _is_script(self, frame: "FrameType") -> bool:
        return frame.f_code.co_name == "<module>" and frame.f_globals is vars(sys.modules[MAIN])

    def _look(self, frame: "FrameType", ended: bool) -> None:
        script = sys.modules[MAIN]
        shown = os.path.basename(getattr(script, "__file__", None) or "the script")
        for request in list(self.pending):
            if ended or self.compiler.can_compile(request, script):
                self.pending.remove(request)
                self.compiler.compile(request, script, shown)


def _owner(namespace: "Any", path: "Sequence[str]") -> "tuple[Any, str]":
    """The object that holds the last name of a dotted path, and that name.  Raises AttributeError."""
    for name in path[:-1]:
        namespace = getattr(namespace, name)
    return namespace, path[-1]


def _callables(namespace: "Any", path: "Sequence[str]") -> "list[str]":
    """Names that could have been meant: those next to the last one that is there, in full."""
    known: list[str] = []
    for name in path[:-1]:
        inner = getattr(namespace, name, None)
        if inner is None:
            break
        namespace = inner
        known.append(name)
    names = [name for name, value in vars(namespace).items() if callable(value) and not name.startswith("__")]
    return [".".join([*known, name]) for name in names][:MOST_NAMES]
