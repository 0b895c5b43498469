"""Whether gradients are recorded at a place: the code around it that switches the grad mode."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import libcst as cst
import libcst.matchers as m

from breakscan.rewrite_support.context import RewriteContext
from breakscan.torch_facts.not_measured import KEEPS_THE_GRAD_MODE


class GradMode(Enum):
    """What a context manager or decorator makes of the grad mode."""

    OFF = "off"
    ON = "on"
    UNKNOWN = "unknown"


Scope = cst.With | cst.FunctionDef
_INNER = cst.Lambda | cst.GeneratorExp


def no_gradient_scope(context: RewriteContext, node: cst.CSTNode) -> Scope | None:
    """The code around a node in which no gradient is recorded: a ``with`` statement, or a function with a decorator."""
    scope, mode = _innermost(context, node)
    return scope if mode is GradMode.OFF else None


def uncertain_gradient_scope(context: RewriteContext, node: cst.CSTNode) -> Scope | None:
    """The code around a node in which it may be that no gradient is recorded, although there may be one around it."""
    scope, mode = _innermost(context, node)
    return scope if mode is not GradMode.ON else None


def _innermost(context: RewriteContext, node: cst.CSTNode) -> tuple[Scope | None, GradMode]:
    for one in context.around(node):
        if isinstance(one, _INNER):
            break  # It runs later, in another mode maybe.
        if isinstance(one, cst.With):
            for item in reversed(one.items):
                if (mode := _of_manager(context, item.item)) is not None:
                    return one, mode
        elif isinstance(one, cst.FunctionDef):
            modes = (_of_switch(context, each) for each in (d.decorator for d in reversed(one.decorators)))
            found = next((mode for mode in modes if mode is not None), None)
            return (one, found) if found is not None else (None, GradMode.ON)
    return None, GradMode.ON


def _of_manager(context: RewriteContext, node: cst.BaseExpression) -> GradMode | None:
    function = node.func if isinstance(node, cst.Call) else node
    name = context.dotted(function) or context.code(function)
    if name in KEEPS_THE_GRAD_MODE or name.split(".")[0] in ("contextlib", "open", "warnings"):
        return None
    return _of_switch(context, node) or GradMode.UNKNOWN


def _of_switch(context: RewriteContext, node: cst.BaseExpression) -> GradMode | None:
    """What a context manager or decorator of torch makes of the mode; None if it is none that switches it."""
    function = node.func if isinstance(node, cst.Call) else node
    args = node.args if isinstance(node, cst.Call) else ()
    # There are no facts about decorators, so the text and the imports decide.
    name = context.code(function).rpartition(".")[2]
    if context.code(function).split(".")[0] not in set(_names_of_torch(context)):
        return None
    if name == "enable_grad":
        return GradMode.ON
    if name == "no_grad" or (name == "inference_mode" and not args):
        return GradMode.OFF
    if name == "inference_mode" and m.matches(args[0].value, m.Name("True")):
        return GradMode.OFF
    return GradMode.UNKNOWN if name in ("inference_mode", "set_grad_enabled") else None


def _names_of_torch(context: RewriteContext) -> Iterator[str]:
    """The names that imports of the file bind to torch, or to something of it."""
    for small in context.file_imports:
        if isinstance(small, cst.Import):
            for alias in small.names:
                if alias.evaluated_name.split(".")[0] == "torch":
                    yield alias.evaluated_alias or "torch"
        elif small.module is not None and not small.relative:
            is_torch = context.code(small.module).split(".")[0] == "torch"
            if is_torch and not isinstance(small.names, cst.ImportStar):
                yield from (alias.evaluated_alias or alias.evaluated_name for alias in small.names)
