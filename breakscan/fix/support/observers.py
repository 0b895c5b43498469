"""What sees which operations run: a context manager or decorator, a mode, a profiler, a replaced function.

An unknown context manager or decorator may enter such a mode, so only those that are known count as blind.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.attribute_access import access_that_runs_code
from breakscan.fix.support.code_readers import reader_of_code
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.decorators import unplain_decorator
from breakscan.fix.support.difference import Difference, assumes
from breakscan.fix.support.edit import Edit
from breakscan.fix.support.import_names import import_name, is_within
from breakscan.fix.support.names import read
from breakscan.fix.support.plain_attributes import may_run_code
from breakscan.fix.support.saved_tensors import why_backward_raises
from breakscan.fix.support.walking import findall, nodes_of
from breakscan.rulebook.torch_facts.not_measured import (
    SEES_NO_OPERATION,
    SEES_OPERATIONS,
    SETTINGS,
    SETTINGS_OF_THE_COMPILER,
)

MOST_KEPT = 16
"""For how many files it is kept what sees operations."""

_BLIND = frozenset(
    {
        *("closing", "nullcontext", "redirect_stderr", "redirect_stdout", "suppress"),
        *("contextlib.closing", "contextlib.nullcontext", "contextlib.redirect_stderr"),
        *("contextlib.redirect_stdout", "contextlib.suppress", "threading.Lock", "threading.RLock"),
    }
)
"""Context managers of Python that see no operation."""
_BUILTINS = frozenset(name for name in dir(builtins) if name not in ("True", "False", "None"))
_METHODS = m.Name("__torch_function__") | m.Name("__torch_dispatch__")
_ENTERS = m.Call(m.Attribute(attr=m.Name("__enter__") | m.Name("enter_context") | m.Name("enter_async_context")))
_PATCHED = ("torch.", "random.", "math.", "numpy.", "builtins.")


def observed(context: RewriteContext, edit: Edit) -> Edit:
    """The edit, which also states what sees the code or the operations that it changes."""
    found: list[Difference] = []
    if (reader := reader_of_code(context)) is not None:
        found.append(assumes(f"`{reader}` must not read the code that is changed"))
    if (patched := _patched_in(context.tree.module)) is not None:
        found.append(assumes(f"`{patched}` must not be replaced by another function"))
    if (starred := _starred(context, edit)) is not None:
        found.append(assumes(f"`{starred}` must be Python's own, which a star import may replace"))
    if not edit.keeps_operations:
        if (saved := why_backward_raises(context, edit)) is not None and saved not in edit.differences:
            found.append(saved)
        if (observer := _observer(context)) is not None:
            found.append(assumes(f"`{observer}` must not see which operations run"))
        if (access := _access(context)) is not None:
            found.append(assumes(f"`{access}` must not run code of its class"))
        elif (part := _not_always_read(context, edit)) is not None:
            found.append(assumes(f"`{part}` must not run code of the program, such as a property"))
    return replace(edit, differences=[*edit.differences, *found]) if found else edit


def _access(context: RewriteContext) -> str | None:
    """The first attribute around the site for which a class may run code: what is known of it may be wrong."""
    functions = [one for one in context.around() if isinstance(one, cst.FunctionDef)]
    return access_that_runs_code(context, functions[-1]) if functions else None


def _not_always_read(context: RewriteContext, edit: Edit) -> str | None:
    """The first part of a test that an edit replaces that may run code, and that the test need not come to."""
    for node in edit.replace:
        for one in findall(node, m.BooleanOperation() | m.Comparison()) if context.tree.holds(node) else ():
            is_chain = isinstance(one, cst.Comparison) and len(one.comparisons) > 1
            part = may_run_code(context, one) if is_chain or isinstance(one, cst.BooleanOperation) else None
            if part is not None:
                return part
    return None


def _starred(context: RewriteContext, edit: Edit) -> str | None:
    """The first builtin in the code that an edit replaces that may have another meaning: ``from math import *``."""
    if not findall(context.tree.module, m.ImportFrom(names=m.ImportStar())):
        return None
    return next((name for name in read(edit.replace) if name in _BUILTINS), None)


def _observer(context: RewriteContext) -> str | None:
    for one in context.around():
        if isinstance(one, cst.With):
            for item in one.items:
                if not _is_blind(context, item.item):
                    return context.code(item.item)
        elif isinstance(one, cst.FunctionDef | cst.ClassDef) and (found := unplain_decorator(context, one)) is not None:
            return context.code(found)
    return _observer_in(context.tree.module)


def _is_blind(context: RewriteContext, manager: cst.BaseExpression) -> bool:
    function = manager.func if isinstance(manager, cst.Call) else manager
    if m.matches(manager, m.Call(m.Name("open"))):
        return True
    name = context.dotted(function) or import_name(context.tree.module, function)
    return name is not None and (name in SEES_NO_OPERATION or name in _BLIND)


@lru_cache(maxsize=MOST_KEPT)
def _observer_in(module: cst.Module) -> str | None:
    """The first code of a file that may see operations anywhere in it."""
    for one in findall(module, m.FunctionDef(_METHODS) | m.AssignTarget(_METHODS)):
        return cst.ensure_type(one, cst.FunctionDef).name.value if isinstance(one, cst.FunctionDef) else "class"
    for one in findall(module, _ENTERS):
        return module.code_for_node(one)
    for name, node in _named(module):
        if is_within(name, SEES_OPERATIONS):
            return module.code_for_node(node)
    return None


@lru_cache(maxsize=MOST_KEPT)
def _patched_in(module: cst.Module) -> str | None:
    """The first function of another module that a file replaces, or the code that may replace one."""
    aliases = {
        cst.ensure_type(target.target, cst.Name).value
        for one in findall(module, m.Assign([m.AssignTarget(m.Name())]))
        for target in cst.ensure_type(one, cst.Assign).targets
        if _is_patched(module, cst.ensure_type(one, cst.Assign).value)
    }
    for target in _written_into(module):
        if is_within(import_name(module, target) or "", SETTINGS_OF_THE_COMPILER | SETTINGS):
            continue
        root = target
        while isinstance(root, cst.Attribute):
            root = root.value
        if _is_patched(module, target) or (isinstance(root, cst.Name) and root.value in aliases):
            return module.code_for_node(target)
    for name, node in _named(module):
        if is_within(name, ("unittest.mock", "mock")):
            return module.code_for_node(node)
    return None


def _is_patched(module: cst.Module, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name | cst.Attribute) and f"{import_name(module, node)}.".startswith(_PATCHED)


def _written_into(module: cst.Module) -> Iterator[cst.BaseExpression]:
    """The attributes that a file assigns, and the objects of which it sets attributes in another way."""
    for one in findall(module, m.AssignTarget(m.Attribute())):
        yield cst.ensure_type(one, cst.AssignTarget).target
    for one in findall(module, m.Call(m.Name("setattr") | m.Name("vars"), [m.AtLeastN(n=1)])):
        yield cst.ensure_type(one, cst.Call).args[0].value
    for one in findall(module, m.Attribute(attr=m.Name("__dict__"))):
        yield cst.ensure_type(one, cst.Attribute).value


def _named(module: cst.Module) -> Iterator[tuple[str, cst.BaseExpression]]:
    """The imported objects that a file names."""
    for one in nodes_of(module, cst.Name, cst.Attribute):
        assert isinstance(one, cst.BaseExpression)
        if (name := import_name(module, one)) is not None:
            yield name, one
