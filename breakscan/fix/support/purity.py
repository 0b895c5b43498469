"""Side effects of code, other breaks in it, and what may see it: reasons not to run it once more or not at all, and
for an edit not to be safe."""

import builtins
from collections.abc import Iterator
from functools import lru_cache

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined, is_outer, is_read
from breakscan.fix.support.context import Declined, RewriteContext
from breakscan.fix.support.operators import (
    called,
    draws_random,
    forms_of,
    is_builtin,
    is_measured,
    leaves_arguments,
    makes_new,
    operator_of,
    reads_values,
    writes,
)
from breakscan.fix.support.walking import findall, nodes_named, nodes_of
from breakscan.model.facts import Fact
from breakscan.model.findings import Verdict
from breakscan.rulebook.torch_facts.not_measured import (
    CHANGES_MORE_THAN_IT_RETURNS,
    COPIED_BETWEEN_DEVICES,
    ONLY_LOOKED_AT,
    SHOWS_THE_MEMORY,
    TAKES_FUNCTIONS_OR_FLAGS,
)

PURE_BUILTINS = frozenset({"abs", "bool", "float", "int", "isinstance", "len", "max", "min", "range", "round", "slice"})
_IMPURE = CHANGES_MORE_THAN_IT_RETURNS | TAKES_FUNCTIONS_OR_FLAGS | SHOWS_THE_MEMORY | COPIED_BETWEEN_DEVICES


def why_not_pure(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """The reason why an expression has side effects, as the end of a sentence; None if it has none.

    Only code that is known to be pure counts as pure: functions and tensor methods of torch that were measured and have
    no side effects, functions of math, operators, and attributes."""
    return _first_reason(_Impurities(context), node)


def why_may_raise(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """The reason why an expression may raise for some values of its tensors; None if it does not."""
    return _first_reason(_Raises(context), node)


def decline_for(reason: str | None, introduced: str = "") -> None:
    """Declines if there is a reason, such as :func:`why_not_pure` gives, behind the words that introduce it."""
    if reason is not None:
        raise Declined(f"{introduced}{reason}")


def _first_reason(visitor: "Effects | _Raises", node: cst.CSTNode) -> str | None:
    node.visit(visitor)
    return next(iter(visitor.reasons), None)


class Effects(cst.CSTVisitor):
    """Collects the reasons why code has side effects; subclasses decide about calls."""

    def __init__(self, context: RewriteContext) -> None:
        self.context = context
        self.reasons: list[str] = []

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self.reasons.append(f"`{self.context.code(node)}` assigns a name")

    def visit_Await(self, node: cst.Await) -> None:
        self.reasons.append("the code awaits")

    def visit_Yield(self, node: cst.Yield) -> None:
        self.reasons.append("the code yields")

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False


class _Impurities(Effects):
    def visit_Call(self, node: cst.Call) -> None:
        text = self.context.code(node.func)
        function, method = called(self.context, node)
        name = (method or function or "").rpartition(".")[2]
        is_torch = method is not None or (function or "").startswith("torch.")
        if not is_torch and not self._is_pure(function, node):
            self.reasons.append(f"`{text}` may have side effects")
        elif draws_random(self.context, node):
            self.reasons.append(f"`{text}` draws random numbers")
        elif name.endswith("_") and not name.endswith("__"):
            self.reasons.append(f"`{text}` changes a tensor in place")
        elif name in _IMPURE or reads_values(self.context, node):
            self.reasons.append(f"`{text}` reads the values of a tensor or has side effects")
        elif is_torch and writes(self.context, node):
            self.reasons.append(f"`{text}` may write to one of its arguments")
        elif is_torch and not is_measured(self.context, node):
            self.reasons.append(f"it has not been measured what `{text}` does besides returning a value")

    def _is_pure(self, function: str | None, node: cst.Call) -> bool:
        package, _, name = (function or "").partition(".")
        if name in ("max", "min") and len(node.args) == 1 and not self._can_be_read_again(node.args[0].value):
            return False
        return name in PURE_BUILTINS if package == "builtins" else package == "math"

    def _can_be_read_again(self, node: cst.BaseExpression) -> bool:
        """True if a value is no iterator, which can be read only once."""
        made = defined(self.context, node)
        literal = isinstance(made, cst.List | cst.Tuple | cst.ListComp | cst.Set | cst.Dict)
        return literal or self.context.fact(node).kind in ("tensor", "shape", "constant")


class _Shown(Effects):
    """Collects the reasons why computing the arguments of a print or log call may have side effects."""

    def visit_Call(self, node: cst.Call) -> bool:
        function, method = called(self.context, node)
        name = (method or function or "").rpartition(".")[2]
        is_torch = method is not None or (function or "").startswith("torch.")
        owner = node.func.value if isinstance(node.func, cst.Attribute) else None
        if is_torch:
            harmless = (
                is_measured(self.context, node)
                and not (draws_random(self.context, node) or writes(self.context, node))
                and name not in CHANGES_MORE_THAN_IT_RETURNS | TAKES_FUNCTIONS_OR_FLAGS | SHOWS_THE_MEMORY
                and (name.endswith("__") or not name.endswith("_"))
            )
        elif function is None or not function.startswith("builtins."):
            harmless = owner is not None and self.context.fact(owner).kind == "constant" and name in _OF_TEXTS
        else:
            harmless = name in PURE_BUILTINS | _SHOWING_BUILTINS
        if not harmless:
            self.reasons.append(f"`{self.context.code(node.func)}` may have side effects")
        for part in (owner if method is not None or not is_torch else None, *node.args):
            if part is not None:
                part.visit(self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        is_of_python = hasattr(builtins, node.value) and is_builtin(self.context, node.value, node)
        self._show(node, is_of_python or _is_plain(self.context.fact(node)))

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        # The value of an attribute may be known by what its property returns.
        owner = self.context.fact(node.value)
        is_value = _is_plain(owner) or owner.name in ("torch", "math", "numpy") or self._is_stored(node.attr.value)
        self._show(node, is_value and _is_plain(self.context.fact(node)))
        return False

    def _is_stored(self, name: str) -> bool:
        """True if the file assigns an attribute of this name, and defines no property of it."""
        above = [self.context.parent(one) for one in nodes_named(self.context.tree.module, name)]
        is_set = any(isinstance(self.context.parent(one), cst.AssignTarget) for one in above if one is not None)
        return is_set and not any(isinstance(one, cst.FunctionDef) for one in above)

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def _show(self, node: cst.BaseExpression, is_plain: bool) -> None:
        if not is_plain:
            self.reasons.append(f"showing `{self.context.code(node)}` may have side effects")


_OF_TEXTS = frozenset({"format", "join", "lower", "split", "strip", "title", "upper"})
_SHOWING_BUILTINS = frozenset({"all", "any", "list", "repr", "sorted", "str", "sum", "tuple", "type"})
_PLAIN_KINDS = frozenset({"array", "class", "constant", "drawn", "none", "number", "shape", "tensor"})


def _is_plain(fact: Fact) -> bool:
    """True if a value has a text that Python or torch makes, and not code of the program."""
    if fact.kind == "container" and fact.elements is not None:
        return all(map(_is_plain, fact.elements))
    return fact.kind in _PLAIN_KINDS


def why_shown(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """The reason why computing and showing an expression may have side effects; None if there is none.

    Reading the values of tensors is none."""
    return _first_reason(_Shown(context), node)


class _Raises(cst.CSTVisitor):
    def __init__(self, context: RewriteContext) -> None:
        self.context = context
        self.reasons: list[str] = []

    def visit_Call(self, node: cst.Call) -> None:
        known = operator_of(self.context, node)
        if known is not None and known.raises_in(forms_of(self.context, node)) is True:
            self.reasons.append(f"`{self.context.code(node.func)}` raises for some values")

    def visit_Subscript(self, node: cst.Subscript) -> None:
        for element in node.slice:
            index = element.slice.value if isinstance(element.slice, cst.Index) else None
            if index is not None and self.context.fact(index).is_tensor and self.context.fact(index).dtype != "bool":
                self.reasons.append(f"`{self.context.code(node)}` raises for indices out of range")

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        divisor = self.context.fact(node.right)
        by_number = isinstance(node.operator, cst.Divide) and divisor.kind in ("number", "shape", "unknown")
        divides = by_number or isinstance(node.operator, cst.FloorDivide | cst.Modulo)
        if divides and divisor.dtype != "float" and not divisor.literal:
            self.reasons.append(f"`{self.context.code(node)}` may divide by zero")


# -- code that compiled code skips ----------------------------------------------------------------------------------

_BUILTINS = frozenset(
    "abs bool dict float format getattr hasattr id int isinstance len list map max min range repr round set sorted str "
    "sum tuple type vars zip any all enumerate print".split()
)
_MODULES = ("math.", "time.", "datetime.", "os.getpid", "os.path.", "numpy.", "textwrap.")
_METHODS = frozenset(
    "format get isEnabledFor items join keys split strip upper lower values size dim numel item tolist cpu detach "
    "numpy mean min max sum any all abs isnan isinf isfinite float norm is_floating_point is_complex is_contiguous "
    "stride type memory_format count index title replace".split()
)
_RANDOM_MODULES = ("random.", "numpy.random.")
_ASKING = ("is_", "has_", "_is_", "_has_")
_CHANGES = frozenset({"backward", "load_state_dict", "set_", "manual_seed", "save", "load", "compile", "register_hook"})


def why_missed(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """The reason why code must not be skipped, as the end of a sentence; None if it only computes values and texts.

    Only calls known to have no side effects may be skipped, and functions whose names start with ``is_`` or ``has_``.
    """
    return _first_reason(_Missed(context), node)


_REPORTING = {
    "warnings": ("warn", "warn_explicit"),
    "logging": ("debug", "info", "warning", "warn", "error", "critical", "exception", "log"),
}
_NOT_REPORTING = ("etLevel", "Handler", "Filter", "EnabledFor", "EffectiveLevel", "getChild")


def is_line_or_record(context: RewriteContext, node: cst.CSTNode) -> bool:
    """True if an expression is a call that prints to the console or makes a log record, without the stack."""
    others = m.Arg(keyword=m.Name("file") | m.Name("stack_info"))
    if not isinstance(node, cst.Call) or any(m.matches(arg, others) for arg in node.args):
        return False
    function, _ = called(context, node)
    return is_reporting(context, node) and (function or "").startswith(("builtins.print", "sys.std", "logging."))


def is_reporting(context: RewriteContext, node: cst.CSTNode) -> bool:
    """True if an expression is a call that only reports something: a print, a log call, a warning."""
    if not isinstance(node, cst.Call):
        return False
    name = context.dotted(node.func) or ""
    if name in ("print", "tqdm.tqdm.write") or name.startswith(("sys.stdout.", "sys.stderr.", "logging.Logger.")):
        return not name.endswith(_NOT_REPORTING)
    module, _, function = name.rpartition(".")
    if context.code(node.func).rpartition(".")[2] in ("rank_zero_debug", "rank_zero_info", "rank_zero_warn"):
        return True  # of Lightning, TorchMetrics and others, also in their own files, where it is a decorated function
    return function in _REPORTING.get(module, ())


class _Missed(Effects):
    def visit_Call(self, node: cst.Call) -> None:
        text = self.context.code(node.func)
        function, method = called(self.context, node)
        full = (function or "").removeprefix("builtins.")
        attribute = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        name = (method or full).rpartition(".")[2] or attribute
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


_READS = "BRK2"
"""The start of the ids of rules about Python numbers that are read from tensors."""


def refuse_breaks_in(context: RewriteContext, node: cst.CSTNode, made: cst.CSTNode | None = None) -> None:
    """Declines if code breaks in a node of the file and is still there in ``made``, the code that replaces it."""
    text = context.code(node if made is None else made)
    for other, rule in _others(context):
        if (other is node or node in context.around(other)) and (code := context.code(other)) in text:
            raise Declined(f"`{code}` in it still breaks the graph ({rule}): rewrite that first")


def refuse_reads_of(context: RewriteContext, node: cst.CSTNode) -> None:
    """Declines if the value of a node is read as a Python number, which still breaks."""
    above = context.parent(node)
    while isinstance(above, cst.BaseExpression | cst.Arg):
        for other, rule in _others(context):
            if other is above and rule.startswith(_READS):
                raise Declined(f"`{context.code(other)}` would still break the graph ({rule}): rewrite that first")
        above = context.parent(above)


def _others(context: RewriteContext) -> Iterator[tuple[cst.CSTNode, str]]:
    for one in context.others:
        if one is context.finding or one.verdict not in (Verdict.SPLITS, Verdict.EAGER):
            continue
        node = context.tree.at(one.site)
        if node is not None:
            yield node, one.rule


# -- what may reach a tensor, or see operations ----------------------------------------------------------------------

_INNER = (cst.Lambda, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp, cst.ClassDef)
_MADE_BY_OPERATORS = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)
_LOOKED_AT = ONLY_LOOKED_AT | {"size", "dim", "numel", "is_floating_point"}
_REPLACES_OUTPUT = m.AssignTarget(m.Attribute(m.Name("sys"), m.Name("stdout") | m.Name("stderr")))
_READS_CODE = frozenset(
    "getsource getsourcelines __code__ script symbolic_trace exec mock patch globals"
    " TorchFunctionMode TorchDispatchMode __torch_function__ __torch_dispatch__"
    " redirect_stdout redirect_stderr Handler setLoggerClass".split()
)


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
    if isinstance(above, cst.Attribute | cst.Arg):
        call = context.parent(above)
        is_looked_at = isinstance(above, cst.Attribute) and above.attr.value in _LOOKED_AT
        return is_looked_at or (isinstance(call, cst.Call) and makes_new(context, call))
    if isinstance(above, cst.Subscript):
        # `x[i] = v` and `x[i] + 1` keep no part of it.
        user = context.parent(above)
        computes = isinstance(user, cst.AugAssign | cst.BinaryOperation | cst.Comparison)
        return computes or isinstance(context.outside(user, cst.Element, cst.Tuple), cst.AssignTarget)
    return isinstance(context.outside(above, cst.Element, cst.Tuple), cst.Return)


def _is_made(context: RewriteContext, value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Call):
        return makes_new(context, value)
    return isinstance(value, _MADE_BY_OPERATORS) and context.fact(value).is_tensor and context.fact(value).certain


@lru_cache(maxsize=16)
def reads_code(module: cst.Module) -> bool:
    """True if a file may read its own code or what it prints, compile it in other ways than ``torch.compile``, or see
    operations."""
    names = {one.value for one in nodes_of(module, cst.Name)}
    return not _READS_CODE.isdisjoint(names) or bool(findall(module, _REPLACES_OUTPUT))
