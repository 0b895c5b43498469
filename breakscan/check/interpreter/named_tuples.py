"""Named tuples that ``collections.namedtuple`` makes: the class and its objects."""

from __future__ import annotations

import ast
from dataclasses import replace

from breakscan.check.interpreter.arguments import Arguments
from breakscan.check.interpreter.values import UNKNOWN, NamedTupleClass, Value, container


def named_tuple_class(node: ast.Call) -> Value:
    """What a call of ``namedtuple`` makes; unknown where the fields are computed."""
    names = _fields_named(node)
    return NamedTupleClass(names=names) if names else UNKNOWN


def named_tuple(names: tuple[str, ...], arguments: Arguments) -> Value:
    """What calling a class with these fields makes."""
    parts = [arguments.get(i, name) or UNKNOWN for i, name in enumerate(names)]
    if arguments.spread:
        return UNKNOWN
    made = container(parts)
    return replace(made, keys=tuple(zip(names, parts, strict=True))) if made.elements else made


def _fields_named(node: ast.Call) -> tuple[str, ...]:
    """The fields that a call of ``namedtuple`` lists, in one text or several; empty where they are computed."""
    listed = node.args[1] if len(node.args) > 1 else None
    if isinstance(listed, ast.Constant) and isinstance(listed.value, str):
        return tuple(listed.value.replace(",", " ").split())
    if not isinstance(listed, ast.List | ast.Tuple):
        return ()
    names = [n.value for n in listed.elts if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return tuple(names) if len(names) == len(listed.elts) else ()
