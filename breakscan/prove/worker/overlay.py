"""Replaces the text of files of the program in this process, without changing files on disk.

The import system returns code that was compiled from the new text under the original path and ignores any ``.pyc``.
``linecache`` (and with it tracebacks, ``inspect`` and torch) knows the new lines.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any


def plain_code(text: str, path: str) -> CodeType:
    """The code of the text of a file.  Raises SyntaxError."""
    return compile(text, path, "exec", dont_inherit=True)


class Overlay:
    """``texts`` by path, which ``compile_text`` compiles.  ``loaded`` are the paths, as they were given, whose text was
    truly executed."""

    def __init__(self, texts: Mapping[str, str], compile_text: Callable[[str, str], CodeType] = plain_code) -> None:
        self._texts = {os.path.realpath(path): (path, text) for path, text in texts.items()}
        self._names = {os.path.basename(path) for path in self._texts}
        self._compile_text = compile_text
        self.loaded: set[str] = set()

    def install(self) -> None:
        """Installs the overlay until this process ends."""
        overlay = self
        get_code, get_data = SourceFileLoader.get_code, SourceFileLoader.get_data

        def overlaid_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
            path = loader.get_filename(fullname)
            return overlay.code(path) if overlay.holds(path) else get_code(loader, fullname)

        def overlaid_data(loader: Any, path: str) -> bytes:
            return overlay.text(path).encode() if overlay.holds(path) else get_data(loader, path)

        SourceFileLoader.get_code = overlaid_code  # type: ignore[method-assign,assignment]
        SourceFileLoader.get_data = overlaid_data  # type: ignore[method-assign,assignment]

    @property
    def paths(self) -> list[str]:
        """The files for which there is a new text."""
        return [path for path, _ in self._texts.values()]

    def holds(self, path: str) -> bool:
        """Returns whether there is a new text for the file."""
        # Looking up the real path of each module that is imported can take seconds.
        may_be_held = os.path.basename(path) in self._names or (self._names and os.path.islink(path))
        return bool(may_be_held) and os.path.realpath(path) in self._texts

    def text(self, path: str) -> str:
        """The new text of a file that it :meth:`holds`."""
        return self._texts[os.path.realpath(path)][1]

    def code(self, path: str) -> CodeType:
        """The new code of a file that it :meth:`holds`; from here on it counts as loaded.  Raises SyntaxError."""
        given, text = self._texts[os.path.realpath(path)]
        code = self._compile_text(text, path)
        # Without a time, the cache does not look at the disk for a newer text.
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        self.loaded.add(given)
        return code


def program_code(path: str, overlay: Overlay) -> CodeType:
    """The code of a script: of its new text, else of the file.  Raises OSError and SyntaxError."""
    if overlay.holds(path):
        return overlay.code(path)
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def run_script(path: str, arguments: list[str], overlay: Overlay) -> None:
    """Runs a script as ``python path arguments`` does, in this process, as ``__main__``."""
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    absolute = os.path.abspath(path)
    module = _fresh_main()
    module.__file__ = absolute
    module.__loader__ = SourceFileLoader("__main__", absolute)
    exec(program_code(absolute, overlay), module.__dict__)


def run_module(name: str, arguments: list[str]) -> None:
    """Runs a module as ``python -m name arguments`` does, in this process, as ``__main__``."""
    import runpy

    sys.argv = [name, *arguments]
    sys.path[0] = os.getcwd()
    _fresh_main()
    # What ``python -m`` itself calls: the module's own names stay when it has ended.
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]


def run_text(text: str, arguments: list[str]) -> None:
    """Runs code as ``python -c text arguments`` does, in this process, as ``__main__``."""
    sys.argv = ["-c", *arguments]
    sys.path[0] = ""
    exec(compile(text, "<string>", "exec", dont_inherit=True), _fresh_main().__dict__)


def _fresh_main() -> Any:
    module: Any = type(sys)("__main__")
    module.__builtins__ = __builtins__
    module.__spec__ = None
    sys.modules["__main__"] = module
    return module
