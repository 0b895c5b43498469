"""Whether gradients are recorded at a place: the code around it that switches the grad mode.

Calls switch it too, until another call switches it back, and so does the caller of a generator while it waits.  A file
with such a call says of no place whether gradients are recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.walking import findall, walk
from breakscan.rulebook.torch_facts.not_measured import KEEPS_THE_GRAD_MODE, SWITCHES_THE_GRAD_MODE


class GradMode(Enum):
    """What a context manager or decorator makes of the grad mode."""

    OFF = "off"
    ON = "on"
    UNKNOWN = "unknown"


Scope = cst.With | cst.FunctionDef
_INNER = cst.Lambda | cst.GeneratorExp
_ENTERS = frozenset({"__enter__", "enter_context"})
MOST_KEPT = 64
"""For how many files and functions it is kept whether calls switch the mode."""


def no_gradient_scope(context: RewriteContext, node: cst.CSTNode) -> Scope | None:
    """The code around a node in which no gradient is recorded: a ``with`` statement, or a function with a decorator."""
    scope, mode = _innermost(context, node)
    return scope if mode is GradMode.OFF and not is_switched_by_calls(context, node) else None


def uncertain_gradient_scope(context: RewriteContext, node: cst.CSTNode) -> Scope | None:
    """The code around a node in which it may be that no gradient is recorded, although there may be one around it."""
    scope, mode = _innermost(context, node)
    return scope if mode is not GradMode.ON else None


def is_switched_by_calls(context: RewriteContext, node: cst.CSTNode) -> bool:
    """Whether other code than a ``with`` or a decorator may have switched the mode at a node."""
    if _has_switch(context.tree.module):
        return True
    function = context.enclosing(cst.FunctionDef, node)
    return function is not None and (function.asynchronous is not None or _yields(function))


@lru_cache(maxsize=MOST_KEPT)
def _has_switch(module: cst.Module) -> bool:
    """Whether a file calls what switches the mode, or enters a context by hand."""
    heads = {id(item.item) for one in findall(module, m.With()) for item in cst.ensure_type(one, cst.With).items}
    heads |= {id(cst.ensure_type(one, cst.Decorator).decorator) for one in findall(module, m.Decorator())}
    for one in findall(module, m.Call()):
        function = cst.ensure_type(one, cst.Call).func
        name = function.attr if isinstance(function, cst.Attribute) else function
        text = name.value if isinstance(name, cst.Name) else ""
        if text in _ENTERS or (text in SWITCHES_THE_GRAD_MODE and id(one) not in heads):
            return True
    return False


@lru_cache(maxsize=MOST_KEPT)
def _yields(function: cst.FunctionDef) -> bool:
    return any(isinstance(one, cst.Yield) for one in walk(function.body))


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
