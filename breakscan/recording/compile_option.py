"""Reads what ``--compile`` is given."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from breakscan.recording.requests_file import MAIN, CompileRequest
from breakscan.rulebook.document import nearest
from breakscan.source.module import SourceProblem, decode_source

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class RequestError(ValueError):
    """The request cannot be met.  Says why."""


def compile_request(text: str, argv: Sequence[str]) -> CompileRequest:
    """The request of a ``--compile``, of a program run as ``python ARGV``.

    Raises RequestError for a text of another form, and for a name that the script does not bind.
    """
    module, colon, attribute = text.partition(":")
    parts = [*(module.split(".") if module else []), *attribute.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise RequestError(f"{text!r} is not of the form module:name, or :name for the script itself")
    if module not in ("", MAIN) and not (argv[0] == "-m" and argv[1] == module):
        return CompileRequest(text, module, attribute)
    shown = "the script" if argv[0] in ("-", "-c") else argv[1] if argv[0] == "-m" else argv[0]
    return CompileRequest(text, MAIN, attribute, _last_binding(_script(argv), attribute.split(".")[0], shown))


def _script(argv: Sequence[str]) -> str | None:
    """The source of the program; None if that needs running something."""
    if argv[0] == "-c":
        return argv[1]
    if argv[0] == "-":
        return None
    if argv[0] != "-m":
        return _read(Path(argv[0]))
    parts = argv[1].split(".")
    candidates = [Path(*parts).with_suffix(".py"), Path(*parts, "__main__.py")]
    files = (Path(folder or ".", candidate) for folder in ["", *sys.path] for candidate in candidates)
    return next((_read(file) for file in files if file.is_file()), None)


def _read(path: Path) -> str | None:
    try:
        return decode_source(path.read_bytes(), str(path))
    except (OSError, SourceProblem):
        return None


def _last_binding(source: str | None, name: str, shown: str) -> int | None:
    try:
        tree = ast.parse(source) if source is not None else None
    except (SyntaxError, ValueError, RecursionError):
        tree = None
    if tree is None:
        return None
    bindings = list(_bindings(tree))
    if any(bound == "*" for bound, _ in bindings) or _binds_from_within(tree):
        return None
    lines = [line for bound, line in bindings if bound == name]
    if not lines:
        raise RequestError(f"{shown} binds no {name} at its top level{nearest(name, [bound for bound, _ in bindings])}")
    return max(lines)


def _bindings(node: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a module's own statements bind, each with the last line of its statement."""
    for child in ast.iter_child_nodes(node):
        last = getattr(child, "end_lineno", 0) or 0
        if isinstance(child, _DEFINITIONS):
            yield child.name, last
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id, last
        elif isinstance(child, ast.alias):
            yield child.asname or child.name.partition(".")[0], last
        if not isinstance(child, (*_DEFINITIONS, ast.Lambda)):
            yield from _bindings(child)


def _binds_from_within(tree: ast.Module) -> bool:
    """Return whether a function may bind names of the module."""
    return any(
        isinstance(node, ast.Global) or (isinstance(node, ast.Name) and node.id in ("globals", "exec", "vars"))
        for node in ast.walk(tree)
    )
