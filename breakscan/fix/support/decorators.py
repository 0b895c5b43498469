"""Decorators that do not read the code of a function, and those that may."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.import_names import import_name, is_within
from breakscan.fix.support.walking import findall, nodes_named
from breakscan.rulebook.torch_facts.not_measured import ONLY_CALLS_THE_FUNCTION

_KNOWN = frozenset(
    {
        *("abstractmethod", "cached_property", "classmethod", "compile", "contextmanager", "disable", "enable_grad"),
        *("inference_mode", "lru_cache", "cache", "no_grad", "override", "property", "setter", "staticmethod", "wraps"),
    }
)


def unknown_decorator(context: RewriteContext, function: cst.FunctionDef) -> str | None:
    """The first decorator of a function, or of a function or class around it, that may read its code."""
    for one in (function, *context.around(function)):
        if not isinstance(one, cst.FunctionDef | cst.ClassDef):
            continue
        for decorator in one.decorators:
            made = decorator.decorator
            text = context.code(made.func if isinstance(made, cst.Call) else made)
            known = _KNOWN if isinstance(one, cst.FunctionDef) else {"dataclass", "final"}
            if text.rpartition(".")[2] not in known:
                return context.code(made)
    return None


_PLAIN = frozenset({"classmethod", "property", "staticmethod"})
_PLAIN_OF_CLASSES = frozenset({"dataclasses.dataclass", "typing.final", "typing_extensions.final"})
_PLAIN_IMPORTED = frozenset(
    {
        *("abc.abstractmethod", "contextlib.contextmanager", "contextlib.asynccontextmanager", "functools.cache"),
        *("functools.cached_property", "functools.lru_cache", "functools.wraps"),
        *("typing.final", "typing.no_type_check"),
        *("typing.overload", "typing.override", "typing_extensions.overload", "typing_extensions.override"),
    }
)


def _is_plain(
    context: RewriteContext, decorator: cst.BaseExpression, decorated: cst.FunctionDef | cst.ClassDef
) -> bool:
    """Whether a decorator is known to neither read code nor to see which operations run."""
    made = decorator.func if isinstance(decorator, cst.Call) else decorator
    name = import_name(context.tree.module, made)
    if name is None:
        setter = isinstance(made, cst.Attribute) and made.attr.value in ("setter", "deleter", "getter")
        if isinstance(made, cst.Name) and isinstance(decorated, cst.FunctionDef):
            return made.value in _PLAIN or (made is decorator and _only_calls(context, made.value))
        return setter
    if isinstance(decorated, cst.ClassDef):
        return name in _PLAIN_OF_CLASSES
    return name in _PLAIN_IMPORTED or is_within(name, ONLY_CALLS_THE_FUNCTION)


def unplain_decorator(context: RewriteContext, decorated: cst.FunctionDef | cst.ClassDef) -> cst.BaseExpression | None:
    """The first decorator that may read code or see which operations run; None if there is none."""
    found = (one.decorator for one in decorated.decorators)
    return next((one for one in found if not _is_plain(context, one, decorated)), None)


def _only_calls(context: RewriteContext, name: str) -> bool:
    """Whether a decorator is a function of the file that returns its argument, or a function that calls it."""
    module = context.tree.module
    defined = [one for one in module.body if isinstance(one, cst.FunctionDef) and one.name.value == name]
    bound = [one for one in nodes_named(module, name) if isinstance(context.parent(one), cst.AssignTarget)]
    if len(defined) != 1 or bound or defined[0].decorators or len(defined[0].params.params) != 1:
        return False
    if findall(defined[0], m.With() | m.Global() | m.Nonlocal()):
        return False
    function = defined[0].params.params[0].name
    return all(_is_call(context, one) for one in nodes_named(defined[0], function.value) if one is not function)


def _is_call(context: RewriteContext, read: cst.Name) -> bool:
    above = context.parent(read)
    if isinstance(above, cst.Call):
        return above.func is read
    if isinstance(above, cst.Arg):
        call = context.parent(above)
        return isinstance(call, cst.Call) and m.matches(
            call.func, m.Name("wraps") | m.Attribute(m.Name("functools"), m.Name("wraps"))
        )
    return isinstance(above, cst.Return)
