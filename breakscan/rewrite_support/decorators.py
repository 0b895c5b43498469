"""Decorators that do not read the code of a function, and those that may."""

from __future__ import annotations

import libcst as cst

from breakscan.rewrite_support.context import RewriteContext

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
