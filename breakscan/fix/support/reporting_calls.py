"""Whether compiled code may skip code that only reports something."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.called import called
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.operators import draws_random, leaves_arguments
from breakscan.fix.support.purity import Effects

_BUILTINS = frozenset(
    {
        *("abs", "bool", "dict", "float", "format", "getattr", "hasattr", "id", "int", "isinstance", "len", "list"),
        *("map", "max", "min", "range", "repr", "round", "set", "sorted", "str", "sum", "tuple", "type", "vars", "zip"),
        *("any", "all", "enumerate", "print"),
    }
)
_MODULES = ("math.", "time.", "datetime.", "os.getpid", "os.path.", "numpy.", "textwrap.")
_METHODS = frozenset(
    {
        *("format", "get", "isEnabledFor", "items", "join", "keys", "split", "strip", "upper", "lower", "values"),
        *("size", "dim", "numel", "item", "tolist", "cpu", "detach", "numpy", "mean", "min", "max", "sum", "any"),
        *("all", "abs", "isnan", "isinf", "isfinite", "float", "norm", "is_floating_point", "is_complex"),
        *("is_contiguous", "stride", "type", "memory_format", "count", "index", "title", "replace"),
    }
)
_RANDOM_MODULES = ("random.", "numpy.random.")
_ASKING = ("is_", "has_", "_is_", "_has_")
_CHANGES = frozenset({"backward", "load_state_dict", "set_", "manual_seed", "save", "load", "compile", "register_hook"})


def why_missed(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """Why code must not be skipped, as the end of a sentence; None if it only computes values and texts.

    Only calls known to have no side effects may be skipped, and functions whose names start with ``is_`` or ``has_``.
    """
    found = _Missed(context)
    node.visit(found)
    return found.reasons[0] if found.reasons else None


def is_reporting(context: RewriteContext, node: cst.CSTNode) -> bool:
    """Whether an expression is a call that only reports something: a print, a log call, a warning."""
    if not isinstance(node, cst.Call):
        return False
    name = context.dotted(node.func) or ""
    if name in ("print", "tqdm.tqdm.write") or name.startswith(("sys.stdout.", "sys.stderr.", "logging.Logger.")):
        return not name.endswith(("etLevel", "Handler", "Filter", "EnabledFor", "EffectiveLevel", "getChild"))
    module, _, function = name.rpartition(".")
    return (module == "warnings" and function in ("warn", "warn_explicit")) or (
        module == "logging"
        and function in ("debug", "info", "warning", "warn", "error", "critical", "exception", "log")
    )


class _Missed(Effects):
    def visit_Call(self, node: cst.Call) -> None:
        text = self.context.code(node.func)
        function, method = called(self.context, node)
        full = (function or "").removeprefix("builtins.")
        name = (method or full).rpartition(".")[2] or _last(node.func)
        if draws_random(self.context, node) or full.startswith(_RANDOM_MODULES):
            self.reasons.append(f"`{text}` draws random numbers")
        elif name.endswith("_") and not name.endswith("__"):
            self.reasons.append(f"`{text}` changes a tensor in place")
        elif name in _CHANGES or not self._is_harmless(node, full, name):
            self.reasons.append(f"`{text}` may have side effects")

    def _is_harmless(self, node: cst.Call, function: str, name: str) -> bool:
        if self.context.method(node) is not None:
            return name in _METHODS or leaves_arguments(self.context, node)
        if is_reporting(self.context, node) or name.startswith(_ASKING):
            return True
        if isinstance(node.func, cst.Name) and function in _BUILTINS:
            return True
        if function.startswith("torch."):
            return leaves_arguments(self.context, node)
        return function.startswith(_MODULES) or (isinstance(node.func, cst.Attribute) and name in _METHODS)


def _last(function: cst.BaseExpression) -> str:
    return function.attr.value if isinstance(function, cst.Attribute) else ""
