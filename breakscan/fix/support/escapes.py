"""The escape check of safe edits: what is made anew must be reachable by one local name alone, and nothing around it
may see which operations run.  Where that is not plain to see, an edit is unsafe and says what it assumes.
"""

from __future__ import annotations

from functools import lru_cache

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import is_outer, is_read
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.operators import makes_new
from breakscan.fix.support.walking import findall, nodes_named
from breakscan.rulebook.torch_facts.not_measured import ONLY_LOOKED_AT

_INNER = (cst.Lambda, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp, cst.ClassDef)
_MADE_BY_OPERATORS = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)
_LOOKED_AT = ONLY_LOOKED_AT | {"size", "dim", "numel", "is_floating_point"}
_QUIET_DECORATORS = frozenset(
    {"abstractmethod", "cached_property", "classmethod", "compile", "dataclass", "override", "property", "staticmethod"}
)
_REPLACES = m.AssignTarget(m.Attribute(m.Name("torch") | m.Attribute(m.Name("torch"))))
_REPLACES_OUTPUT = m.AssignTarget(m.Attribute(m.Name("sys"), m.Name("stdout") | m.Name("stderr")))
_READS_CODE = frozenset(
    "getsource getsourcelines __code__ script symbolic_trace exec mock patch globals"
    " TorchFunctionMode TorchDispatchMode __torch_function__ __torch_dispatch__"
    " redirect_stdout redirect_stderr Handler setLoggerClass".split()
)
_LOUD = _READS_CODE | frozenset(
    "saved_tensors_hooks autocast set_default_dtype set_default_device profile register_hook data_ptr _version"
    " __enter__".split()
)
"""Names in a file that may see operations or code, or change what they do, at a place that is not plain to see."""


def is_local(context: RewriteContext, name: cst.Name) -> bool:
    """True if a name holds a tensor that the function made, and that nothing else can reach."""
    function = context.function
    if is_outer(context, name.value) or findall(function, m.Yield() | m.Await() | m.Global() | m.Nonlocal()):
        return False
    return all(_keeps_it(context, one) for one in nodes_named(function, name.value))


def _keeps_it(context: RewriteContext, name: cst.Name) -> bool:
    """True if a use of a name neither binds it to a tensor from elsewhere nor hands the tensor on."""
    above = context.parent(name)
    around = next((one for one in context.around(name) if isinstance(one, (*_INNER, cst.FunctionDef))), None)
    if around is not context.function:
        return False
    if isinstance(above, cst.Arg) and above.keyword is name:
        return True
    if not is_read(context, name):
        line = context.parent(above) if isinstance(above, cst.AssignTarget) else None
        return isinstance(line, cst.Assign) and len(line.targets) == 1 and _is_made(context, line.value)
    if isinstance(above, cst.BinaryOperation | cst.Comparison | cst.ComparisonTarget | cst.UnaryOperation | cst.Return):
        return True
    if isinstance(above, cst.AugAssign):
        return above.target is name
    if isinstance(above, cst.Attribute):
        call = context.parent(above)
        return above.attr.value in _LOOKED_AT or (isinstance(call, cst.Call) and makes_new(context, call))
    if isinstance(above, cst.Arg):
        call = context.parent(above)
        return isinstance(call, cst.Call) and makes_new(context, call)
    if isinstance(above, cst.Subscript):
        # `x[i] = v` and `x[i] + 1` keep no part of it.
        user = context.parent(above)
        return isinstance(_outside(context, user), cst.AssignTarget) or isinstance(
            user, cst.AugAssign | cst.BinaryOperation | cst.Comparison
        )
    return isinstance(_outside(context, above), cst.Return)


def _outside(context: RewriteContext, node: cst.CSTNode | None) -> cst.CSTNode | None:
    """The parent of the tuples that a node is in, or the node itself."""
    while isinstance(node, cst.Element | cst.Tuple):
        node = context.parent(node)
    return node


def _is_made(context: RewriteContext, value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Call):
        return makes_new(context, value)
    return isinstance(value, _MADE_BY_OPERATORS) and context.fact(value).is_tensor and context.fact(value).certain


def loud(context: RewriteContext) -> str | None:
    """The first code that may see which operations run around the site, or what they do; None if there is none."""
    for one in context.around():
        if isinstance(one, cst.With):
            return context.code(one.items[0].item)
        if isinstance(one, cst.FunctionDef | cst.ClassDef):
            for decorator in one.decorators:
                made = decorator.decorator
                name = context.code(made.func if isinstance(made, cst.Call) else made).rpartition(".")[2]
                if name not in _QUIET_DECORATORS:
                    return context.code(made)
    return "torch" if context.is_bound("torch") else _loud_in(context.tree.module)


@lru_cache(maxsize=16)
def _loud_in(module: cst.Module) -> str | None:
    for found in findall(module, m.ImportStar() | _REPLACES):
        return module.code_for_node(found).rstrip(" =")
    return next((name for name in _names(module) if name in _LOUD), None)


def reads_code(module: cst.Module) -> bool:
    """True if a file may read its own code or what it prints, compile it in other ways than ``torch.compile``, or see
    operations."""
    return not _READS_CODE.isdisjoint(_names(module)) or bool(findall(module, _REPLACES_OUTPUT))


def _names(module: cst.Module) -> list[str]:
    return [cst.ensure_type(one, cst.Name).value for one in findall(module, m.Name())]
