"""Replaces the text of files of the program in this process, without changing files on disk, and records what of them
runs: lines, and the outcomes of tested expressions.

The import system returns code that was compiled from the new text under the original path and ignores any ``.pyc``.
``linecache`` (and with it tracebacks, ``inspect`` and torch) knows the new lines."""

import ast
import builtins
import contextlib
import linecache
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, ClassVar

from breakscan.prove.protocol import ExpressionSpan, RanCode, span_of
from breakscan.prove.state import PLAIN
from breakscan.source.walking import tested_expressions


def plain_code(text: str, path: str) -> CodeType:
    """The code of the text of a file.  Raises SyntaxError."""
    return compile(text, path, "exec", dont_inherit=True)


class Overlay:
    """``texts`` by path, for ``compile_text``.  ``loaded`` are the given paths whose text was truly executed."""

    def __init__(self, texts: Mapping[str, str], compile_text: Callable[[str, str], CodeType] = plain_code) -> None:
        self._texts = {os.path.realpath(path): (path, text) for path, text in texts.items()}
        self.paths = list(texts)
        """The files for which there is a new text."""
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
            return overlay._texts[os.path.realpath(path)][1].encode() if overlay.holds(path) else get_data(loader, path)

        SourceFileLoader.get_code = overlaid_code  # type: ignore[method-assign,assignment]
        SourceFileLoader.get_data = overlaid_data  # type: ignore[method-assign,assignment]

    def holds(self, path: str) -> bool:
        """Returns whether there is a new text for the file."""
        # Looking up the real path of each module that is imported can take seconds.
        may_be_held = os.path.basename(path) in self._names or (self._names and os.path.islink(path))
        return bool(may_be_held) and os.path.realpath(path) in self._texts

    def code(self, path: str) -> CodeType:
        """The new code of a file that it :meth:`holds`; from here on it counts as loaded.  Raises SyntaxError."""
        given, text = self._texts[os.path.realpath(path)]
        code = self._compile_text(text, path)
        # Without a time, the cache does not look at the disk for a newer text.
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        self.loaded.add(given)
        return code


def run_script(path: str, arguments: list[str], overlay: Overlay) -> None:
    """Runs a script, or its new text, as ``python path arguments`` does, in this process, as ``__main__``."""
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    absolute = os.path.abspath(path)
    module = _fresh_main()
    module.__file__ = absolute
    module.__loader__ = SourceFileLoader("__main__", absolute)
    if overlay.holds(absolute):
        code = overlay.code(absolute)
    else:
        code = compile(Path(absolute).read_bytes(), absolute, "exec", dont_inherit=True)
    exec(code, module.__dict__)


def run_module(name: str, arguments: list[str]) -> None:
    """Runs a module as ``python -m name arguments`` does, in this process, as ``__main__``."""
    import runpy

    sys.argv = [name, *arguments]
    sys.path[0] = os.getcwd()
    _fresh_main()
    # What ``python -m`` itself calls: the module's own names stay when it has ended.
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]


def _fresh_main() -> Any:
    module: Any = type(sys)("__main__")
    module.__builtins__ = __builtins__
    module.__spec__ = None
    sys.modules["__main__"] = module
    return module


RECORDER = "__breakscan_outcome__"
"""A name in ``builtins``. Names that end in underscores are not changed in classes."""


def recording_code(text: str, path: str) -> CodeType:
    """The code of the text of a file, which records the outcomes of its tested expressions.  Raises SyntaxError."""
    tree = ast.parse(text, path)
    _Recorded(os.path.realpath(path), tree).visit(tree)
    setattr(builtins, RECORDER, _record)
    return compile(tree, path, "exec", dont_inherit=True)


def _record(path: str, span: ExpressionSpan, value: object) -> object:
    if ExecutedCode.current is not None:
        ExecutedCode.current.outcomes.add((path, span, bool(value)))
    return value


class _Recorded(ast.NodeTransformer):
    """Puts a call of the recorder around each tested expression."""

    def __init__(self, path: str, tree: ast.AST) -> None:
        self._path = path
        self._tested = {id(one.node): one for one in tested_expressions(tree)}

    def visit(self, node: ast.AST) -> ast.AST:
        tested = self._tested.get(id(node))
        visited: ast.AST = self.generic_visit(node)
        if tested is None:
            return visited
        assert isinstance(visited, ast.expr)
        # Where only the truth is asked for, the recorder gets it: an object is then asked once, as without a recorder.
        value = visited if tested.keeps_value else ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), visited))
        span = ast.Tuple([*map(ast.Constant, span_of(tested.node))], ast.Load())
        arguments: list[ast.expr] = [ast.Constant(self._path), span, value]
        call = ast.Call(ast.Name(RECORDER, ast.Load()), arguments, [])
        # All new nodes are where the expression is that they are around.
        return ast.fix_missing_locations(ast.copy_location(call, visited))


class ExecutedCode:
    """The code of some files, by path as given, that a thread executes.  ``outcomes`` are those of tests in
    :func:`recording_code`: the real path of the file, the span of the test, and the outcome."""

    current: "ClassVar[ExecutedCode | None]" = None

    def __init__(self, paths: Collection[str]) -> None:
        self.lines: dict[str, set[int]] = {path: set() for path in paths}
        self.outcomes: set[tuple[str, ExpressionSpan, bool]] = set()
        self._offsets: dict[CodeType, tuple[str, set[int]]] = {}
        self._arguments: dict[str, set[str]] = {path: set() for path in paths}
        self._stopped = False

    def found(self) -> dict[str, RanCode]:
        """The executed code."""
        spans: dict[str, set[ExpressionSpan]] = {path: set() for path in self.lines}
        for code, (path, offsets) in self._offsets.items():
            # Python 3.10 knows lines alone.
            positions: list[tuple[int | None, ...]] = list(getattr(code, "co_positions", list)())
            for offset in offsets if positions else ():
                line, end_line, column, end_column = (-1 if at is None else at for at in positions[offset // 2])
                spans[path].add((line, column, end_line, end_column))
        return {
            path: RanCode(
                frozenset(lines),
                frozenset(spans[path]),
                frozenset(self._arguments[path]),
                frozenset((span, one) for its, span, one in self.outcomes if its == os.path.realpath(path)),
            )
            for path, lines in self.lines.items()
        }

    def stop(self) -> None:
        """Code that runs from here on is not noted."""
        self._stopped = True

    @contextlib.contextmanager
    def noted(self, closely: bool = False) -> "Iterator[ExecutedCode]":
        """Notes what runs while the block runs: the lines, and where ``closely``, expressions.  Yields itself."""
        wanted = {os.path.realpath(path): path for path in self.lines}
        before: Any = sys.gettrace()
        names: dict[str, str | None] = {}

        def on_call(frame: FrameType, event: str, argument: Any) -> Any:
            # What looks at the script for ``--compile`` goes on.
            other = before(frame, event, argument) if before is not None else None
            name = frame.f_code.co_filename
            if name not in names:
                names[name] = wanted.get(os.path.realpath(name))
            path = names[name]
            if path is None or self._stopped:
                return other
            code, lines = frame.f_code, self.lines[path]
            if frame.f_lasti <= 0 or code not in self._offsets:
                given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
                plain = ((name, frame.f_locals.get(name, ...)) for name in given)
                self._arguments[path].update(
                    f"{code.co_firstlineno} {name} {value!r}" for name, value in plain if isinstance(value, PLAIN)
                )
            offsets = self._offsets.setdefault(code, (path, set()))[1]

            def on_event(frame: FrameType, event: str, argument: Any) -> Any:
                nonlocal other
                other = other(frame, event, argument) if other is not None else None
                if self._stopped:
                    return other
                if event == "opcode":
                    offsets.add(frame.f_lasti)
                # Instructions that the compiler of Python adds have no line.
                if frame.f_lineno is not None:
                    lines.add(frame.f_lineno)
                return on_event

            # CPython 3.13 traces instructions only where the frame has its function already.
            frame.f_trace, frame.f_trace_opcodes = on_event, closely
            lines.add(frame.f_lineno)
            return on_event

        outer = ExecutedCode.current
        if wanted:
            # CPython 3.12 traces instructions only if a frame has asked for that before.
            sys._getframe().f_trace_opcodes = closely
            sys.settrace(on_call)
        ExecutedCode.current = self
        try:
            yield self
        finally:
            sys.settrace(before)
            ExecutedCode.current = outer
