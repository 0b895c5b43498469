"""Calls of methods of ``object`` that only C has, through ``super()``: Dynamo does not find them there."""

from __future__ import annotations

import ast

from breakscan.check.interpreter.frame import Frame
from breakscan.check.project.index import BUILTINS, ClassInfo
from breakscan.rulebook.events import EventKind

_OF_OBJECT = frozenset(
    "__eq__ __format__ __ge__ __getstate__ __gt__ __hash__ __init_subclass__ __le__ __lt__ __ne__ __reduce__ "
    "__reduce_ex__ __repr__ __sizeof__ __str__".split()
)
_OF_MODULES = frozenset({"__getstate__", "__repr__"})
"""Those that ``nn.Module`` has in Python, or that most modules have a base for."""


def emit_super_slot(frame: Frame, node: ast.Call) -> None:
    """Emits ``super().__hash__()`` and the like, where no base in Python has the method."""
    func = node.func
    if not isinstance(func, ast.Attribute) or func.attr not in _OF_OBJECT or not _is_super(func.value):
        return
    owner = frame.function.owner if frame.function is not None else None
    if owner is None:
        return
    project = frame.program.project
    outside = project.outside_bases(owner)
    chain = project.bases_of(owner)
    if any(base != "torch.nn.Module" for base in outside) or any(map(_has_builtin_base, chain)):
        return
    found = _OF_OBJECT - _OF_MODULES if outside else _OF_OBJECT
    if func.attr in found and not any(func.attr in base.methods for base in chain[1:]):
        frame.emit(EventKind.CALL, node, callee=f"super.{func.attr}")


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _has_builtin_base(info: ClassInfo) -> bool:
    """Whether a class has a base such as ``list``, whose methods Dynamo knows."""
    return any(base != "object" and base in BUILTINS for base in info.bases)
