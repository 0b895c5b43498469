"""Calls of functions that import the module whose name they are given: ``scipy, found = optional_import("scipy")``."""

from __future__ import annotations

import ast

from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.values import CONSTANT, Value, container
from breakscan.check.project.index import FunctionInfo

_IMPORTING = frozenset({"importlib.import_module", "__import__"})


def optional_import(frame: Frame, node: ast.Call, info: FunctionInfo) -> Value | None:
    """What such a call returns if it imports; None for any other call."""
    if "import" not in info.name or not node.args or not _imports_first(info):
        return None
    names = [node.args[0], *(keyword.value for keyword in node.keywords if keyword.arg == "name")]
    texts = [name.value for name in names if isinstance(name, ast.Constant) and isinstance(name.value, str)]
    if len(texts) != len(names):
        return None
    found = frame.program.names.imported(".".join(texts), frame.index)
    returned = (one.value for one in info.own_nodes if isinstance(one, ast.Return))
    several = any(isinstance(value, ast.Tuple) for value in returned)
    return container([found, CONSTANT]) if several else found


def _imports_first(info: FunctionInfo) -> bool:
    """Whether a function imports the module that its first parameter names."""
    return any(
        isinstance(node, ast.Call)
        and info.index.dotted(node.func) in _IMPORTING
        and any(isinstance(given, ast.Name) and given.id == info.first_parameter for given in node.args[:1])
        for node in info.own_nodes
    )
