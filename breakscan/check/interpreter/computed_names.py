"""Names of attributes that the program computes: ``getattr(self, f"layer{i}")``."""

from __future__ import annotations

import ast
import re

from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.joins import join_all
from breakscan.check.interpreter.values import (
    UNKNOWN,
    Function,
    Instance,
    Module,
    Sure,
    Value,
    at_most,
    literal_of,
)

ANY = "*"
"""Stands for the parts of a name that are not known."""

_PERCENT = re.compile(r"%[-+0-9.]*[a-zA-Z]")
_FIELD = re.compile(r"\{[^{}]*\}")


def computed_name(frame: Frame, node: ast.expr) -> str | None:
    """The text of a node, with ``*`` for what is not known of it; None if nothing is known."""
    name = _text(frame, node)
    return name if name.strip(ANY) else None


def _text(frame: Frame, node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(frame, part) for part in parts)
        case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
            return _known(frame, inner)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(frame, left) + _text(frame, right)
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
            return _PERCENT.sub(ANY, text)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return _FIELD.sub(ANY, text)
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return _known(frame, inner)
        case ast.Name():
            return _known(frame, node)
    return ANY


def _known(frame: Frame, node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    value = frame.names.get(node.id) if isinstance(node, ast.Name) else None
    known = literal_of(value) if value is not None else None
    return str(known) if isinstance(known, str | int) and not getattr(value, "by_default", False) else ANY


def attribute_matching(frame: Frame, owner: Value, pattern: str) -> Value:
    """Any of the attributes of an object whose names match."""
    if not isinstance(owner, Module | Instance) or owner.info is None:
        return UNKNOWN
    found = [
        one if isinstance(one, Value) else Function(info=one, bound=None if one.is_static else owner)
        for one in frame.program.attributes.matching(owner.info, pattern)
    ]
    return at_most(join_all(found), Sure.LIKELY) if found else UNKNOWN
