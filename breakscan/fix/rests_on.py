"""The observed values that an edit rests on."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from breakscan.fix.result import RestsOn
from breakscan.model.facts import Span
from breakscan.model.observations import FunctionSeen
from breakscan.source.module import SourceModule
from breakscan.source.outline import Outline
from breakscan.source.walking import walk


def values_under(
    module: SourceModule, function: str | None, spans: Iterable[Span], seen: Mapping[str, FunctionSeen]
) -> RestsOn:
    """The values of the names that the code at ``spans`` is computed from, as they were when its function started.

    An edit may rest on fewer of them.  Where the function itself was not seen, its callers were.
    """
    known = seen.get(function or "")
    scope = next((one for one in Outline(module.tree).scopes if one.qualname == function), None)
    if known is None or scope is None:
        return RestsOn({}, max((one.calls for one in seen.values()), default=1))
    lines = {line for start, _, end, _ in spans for line in range(start, end + 1)}
    statements = [node for node in walk(scope.node) if isinstance(node, ast.stmt) and node is not scope.node]
    names = {name for node in statements if node.lineno in lines for name in _names(node, ast.Load)}
    while (
        more := {
            name
            for node in statements
            if not hasattr(node, "body") and not names.isdisjoint(_names(node, ast.Store))
            for name in _names(node, ast.Load)
        }
        - names
    ):
        names |= more
    values = {name: value for name, value in known.names.items() if name in names}
    for attribute in (one for node in statements if node.lineno in lines for one in walk(node)):
        if isinstance(attribute, ast.Attribute) and isinstance(attribute.value, ast.Name):
            owner = known.names.get(attribute.value.id)
            if owner is not None and attribute.attr in owner.entries:
                values[f"{attribute.value.id}.{attribute.attr}"] = owner.entries[attribute.attr]
    return RestsOn({name: value for name, value in values.items() if value.tensor or value.texts}, known.calls)


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {one.id for one in walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, context)}
