"""Replaces the text of files of the program in this process, without changing files on disk, and records what of them
runs: lines, and the outcomes of tested expressions.

The import system returns code that was compiled from the new text under the original path and ignores any ``.pyc``.
``linecache`` (and with it tracebacks, ``inspect`` and torch) knows the new lines.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import linecache
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.machinery import SourceFileLoader
from types import CodeType, FrameType
from typing import Any

from breakscan.prove.protocol import ExpressionSpan, SeenOutcomes
from breakscan.source.walking import Tested, tested_expressions


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


RECORDER = "__breakscan_outcome__"
"""A name in ``builtins``. Names that end in underscores are not changed in classes."""


RecordedOutcome = tuple[str, int, bool]
"""The real path of a file, the number of a tested expression in it, and an outcome."""


class OutcomeRecorder:
    """Compiles texts so that it can record the outcomes of their tested expressions."""

    def __init__(self) -> None:
        self._tested: dict[str, list[ExpressionSpan]] = {}
        self._seen: set[RecordedOutcome] | None = None

    def compile(self, text: str, path: str) -> CodeType:
        """The code of a text. Raises SyntaxError."""
        tree = ast.parse(text, path)
        tested = list(tested_expressions(tree))
        real = os.path.realpath(path)
        self._tested[real] = [span_of(one.node) for one in tested]
        _Recorded(real, tested).visit(tree)
        setattr(builtins, RECORDER, self._record)
        return compile(tree, path, "exec", dont_inherit=True)

    @contextlib.contextmanager
    def recording(self) -> Iterator[set[RecordedOutcome]]:
        """Records while the block runs."""
        seen: set[RecordedOutcome] = set()
        self._seen = seen
        try:
            yield seen
        finally:
            self._seen = None

    def outcomes(self, seen: Collection[RecordedOutcome]) -> dict[str, tuple[SeenOutcomes, ...]]:
        """What was recorded, for each tested expression that was evaluated, by the real path of the file."""
        return {
            path: tuple(
                SeenOutcomes(span, (path, number, True) in seen, (path, number, False) in seen)
                for number, span in enumerate(spans)
                if (path, number, True) in seen or (path, number, False) in seen
            )
            for path, spans in self._tested.items()
        }

    def _record(self, path: str, number: int, value: object) -> object:
        if self._seen is not None:
            self._seen.add((path, number, bool(value)))
        return value


def span_of(node: ast.expr) -> ExpressionSpan:
    """Where an expression is."""
    return ExpressionSpan(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)


class _Recorded(ast.NodeTransformer):
    """Puts a call of the recorder around each tested expression."""

    def __init__(self, path: str, tested: list[Tested]) -> None:
        self._path = path
        self._numbers = {id(one.node): (number, one.keeps_value) for number, one in enumerate(tested)}

    def visit(self, node: ast.AST) -> ast.AST:
        known = self._numbers.get(id(node))
        visited: ast.AST = self.generic_visit(node)
        if known is None:
            return visited
        assert isinstance(visited, ast.expr)
        number, keeps_value = known
        # Where only the truth is asked for, the recorder gets it: an object is then asked once, as without a recorder.
        value = visited if keeps_value else ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), visited))
        arguments: list[ast.expr] = [ast.Constant(self._path), ast.Constant(number), value]
        return _at(visited, ast.Call(ast.Name(RECORDER, ast.Load()), arguments, []))


def _at(place: ast.expr, made: ast.expr) -> ast.expr:
    """Gives all new nodes the place of the expression that they are around."""
    for node in ast.walk(made):
        if isinstance(node, ast.expr) and not hasattr(node, "lineno"):
            ast.copy_location(node, place)
    return made


@contextlib.contextmanager
def executed_lines(paths: Collection[str]) -> Iterator[dict[str, set[int]]]:
    """Yields the numbers of the lines, by path as given, that this thread executes until the block ends."""
    wanted = {os.path.realpath(path): path for path in paths}
    names: dict[str, str | None] = {}
    found: dict[str, set[int]] = {path: set() for path in paths}

    def on_call(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in names:
            names[name] = wanted.get(os.path.realpath(name))
        path = names[name]
        if path is None:
            return None
        lines = found[path]

        def on_line(frame: FrameType, event: str, _: Any) -> Any:
            lines.add(frame.f_lineno)
            return on_line

        lines.add(frame.f_lineno)
        return on_line

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield found
    finally:
        sys.settrace(before)
