"""The function or tensor method that a call calls, with the measured facts about it; numbers and sizes."""

from functools import lru_cache

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.walking import findall, written
from breakscan.rulebook.torch_facts.not_measured import (
    CONVERTS_WHERE_GIVEN,
    INPLACE_AT,
    ONLY_ANSWERS,
    READS_THE_ONLY_ELEMENT,
    SETS_THE_GENERATOR,
    WRITING_ARGUMENTS,
)
from breakscan.rulebook.torch_facts.operators import KINDS, Gradient, Often, Operator, forms, operator

_SETS_GLOBALS = (
    m.Name(m.MatchRegex("globals|builtins|exec|__builtins__|__globals__|__import__"))
    | m.Call(m.Name("vars"), [])
    | m.Call(m.Name("setattr"), [m.Arg(m.Call()), m.Arg(), m.Arg()])
    | m.Attribute(m.Name("sys"), m.Name("modules"))
    | m.Subscript(value=m.Attribute(attr=m.Name("modules")))
    | m.AssignTarget(m.Subscript(value=m.Attribute(attr=m.Name("__dict__"))))
)
"""Code that may bind a name of the file without naming it."""


def called(context: RewriteContext, node: cst.Call) -> tuple[str | None, str | None]:
    """The dotted name of the function that a call calls, or the name of the tensor method; None if unknown."""
    if (method := context.method(node)) is not None:
        return None, method
    name = context.dotted(node.func)
    if isinstance(node.func, cst.Name) and (name is None or name == node.func.value):
        name = f"builtins.{node.func.value}" if is_builtin(context, node.func.value, node) else None
    return name, None


def is_builtin(context: RewriteContext, name: str, node: cst.CSTNode) -> bool:
    """True if a builtin's name is known to have no other meaning at a node."""
    functions = [one for one in context.around(node) if isinstance(one, cst.FunctionDef)]
    is_bound = any(name in written(one) for one in functions)
    return not is_bound and _bound_at_top(context.tree.module).isdisjoint({"*", name})


def only_argument(node: cst.CSTNode) -> cst.BaseExpression | None:
    """The argument of a call with a single one, passed by position."""
    if not isinstance(node, cst.Call) or len(node.args) != 1:
        return None
    arg = node.args[0]
    return None if arg.keyword is not None or arg.star else arg.value


@lru_cache(maxsize=4)
def _bound_at_top(module: cst.Module) -> frozenset[str]:
    """The names that the top level of a file binds; ``*`` where it may bind others too."""
    declared = findall(module, m.Global())
    found = {item.name.value for one in declared for item in cst.ensure_type(one, cst.Global).names}
    for one in module.body:
        if isinstance(one, cst.FunctionDef | cst.ClassDef):
            found.add(one.name.value)
            continue
        found |= set(written(one))
    if findall(module, _SETS_GLOBALS | m.ImportStar()):
        found.add("*")
    return frozenset(found)


_MAY_REQUIRE_GRADIENT = m.Arg(star="**") | m.Arg(keyword=m.Name("requires_grad"), value=~m.Name("False"))


def operator_of(context: RewriteContext, node: cst.Call) -> Operator | None:
    """The facts about the function that a call calls; None if it is not a torch function or nothing is known."""
    function, method = called(context, node)
    if method is not None:
        return operator(context.finding.torch, f"torch.Tensor.{method}")
    if function is None or not function.startswith("torch."):
        return None
    return operator(context.finding.torch, function)


def is_elementwise(context: RewriteContext, node: cst.Call) -> bool:
    """True if a call is known to compute each element of its result only from the elements at the same position."""
    known = operator_of(context, node)
    return known is not None and known.elementwise is True and known.draws_random is Often.NEVER


def makes_new(context: RewriteContext, node: cst.Call) -> bool:
    """True if the result of a call is known not to share storage with its arguments."""
    known = operator_of(context, node)
    if known is None or known.result is None or writes(context, node):
        return False
    if known.result == "python":
        return True
    return known.shares_storage is Often.NEVER and known.returns_input is Often.NEVER


def draws_random(context: RewriteContext, node: cst.Call) -> bool:
    """True if a call may draw random numbers or set the state of the generator."""
    known = operator_of(context, node)
    function, _ = called(context, node)
    sets = (function or "").startswith("torch.") and (function or "").rpartition(".")[2] in SETS_THE_GENERATOR
    return sets or (known is not None and known.draws_random not in (None, Often.NEVER))


def is_measured(context: RewriteContext, node: cst.Call) -> bool:
    """True if it is known what a call of torch does besides returning a value: draw, write, read values."""
    function, _ = called(context, node)
    if function in ONLY_ANSWERS:
        return True
    known = operator_of(context, node)
    return known is not None and None not in (known.draws_random, known.reads_values, known.writes)


def writes(context: RewriteContext, node: cst.Call) -> bool:
    """True if a call of torch may change one of its arguments in place, as far as that was measured."""
    known = operator_of(context, node)
    if known is not None and known.writes:
        return True
    if any(arg.star == "**" or (arg.keyword and arg.keyword.value in WRITING_ARGUMENTS) for arg in node.args):
        return True
    function, _ = called(context, node)
    flag = INPLACE_AT.get((function or "").removeprefix("torch.nn.functional."))
    return flag is not None and (len(node.args) > flag or any(arg.star for arg in node.args))


def leaves_arguments(context: RewriteContext, node: cst.Call) -> bool:
    """True if a call of torch is known to change none of its arguments in place."""
    return is_measured(context, node) and not writes(context, node)


def reads_values(context: RewriteContext, node: cst.Call) -> bool:
    """True if a call may read the values of a tensor on the host.  NumPy functions are treated like those of torch."""
    function, method = called(context, node)
    if function is not None and function.startswith("numpy."):
        known = operator(context.finding.torch, function.rpartition(".")[2])
    else:
        known = operator_of(context, node)
    if (method or (function or "").removeprefix("torch.")) in READS_THE_ONLY_ELEMENT:
        return True
    if known is None or known.result is None:
        return False
    return known.reads_in(forms_of(context, node)) is not False


def takes_alike(context: RewriteContext, node: cst.Call, arg: cst.Arg) -> bool:
    """True if a call is elementwise, and computes the same with a number instead of the 0-d tensor that is its last
    argument, or with a 0-d tensor instead of the number."""
    known = operator_of(context, node)
    if known is None or known.elementwise is not True:
        return False
    _, method = called(context, node)
    first = 1 if method is not None else 0
    place = node.args.index(arg) + first
    return place in known.alike and len(node.args) + first == place + 1


def is_conversion(context: RewriteContext, node: cst.Call) -> bool:
    """True if a method call returns its tensor, possibly with another dtype, device or memory layout."""
    known = operator_of(context, node)
    _, method = called(context, node)
    if method in CONVERTS_WHERE_GIVEN:
        return bool(node.args)
    return method is not None and known is not None and known.keeps_values is True


def flattens(context: RewriteContext, node: cst.Call) -> bool:
    """True if a method call merges dimensions, and so returns a vector unchanged."""
    known = operator_of(context, node)
    if called(context, node)[1] is None or node.args or known is None:
        return False
    return known.keeps_vectors is True and known.elementwise is not True


def cuts_gradient(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """True if an expression is a call through which no gradient flows."""
    # What asks for a gradient may have one, whatever its arguments are.
    if not isinstance(node, cst.Call) or any(m.matches(arg, _MAY_REQUIRE_GRADIENT) for arg in node.args):
        return False
    known = operator_of(context, node)
    if known is None or known.gradient is Gradient.NONE:
        return known is not None
    # The methods of what has no gradient have none, as in `loss.detach().mean()`.
    return not node.args and isinstance(node.func, cst.Attribute) and cuts_gradient(context, node.func.value)


def forms_of(context: RewriteContext, node: cst.Call) -> frozenset[str]:
    """The forms that a call may have; the tensor of a method counts as an argument."""
    kinds = [KINDS if arg.star else _kind(context, arg.value) for arg in node.args]
    return forms(["t", *kinds] if called(context, node)[1] is not None else kinds)


def _kind(context: RewriteContext, node: cst.BaseExpression) -> str:
    if isinstance(node, cst.SimpleString | cst.ConcatenatedString | cst.FormattedString):
        return "s"
    fact = context.fact(node)
    if fact.is_tensor:
        return "t"
    if fact.kind == "constant" and fact.literal is None and not isinstance(node, cst.BaseNumber):
        return "ns"
    return "n" if fact.kind in ("constant", "drawn", "none", "number", "shape") else KINDS


def what_costs(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """The code of the first costly part: a matrix product, a convolution, a module."""
    for one in findall(node, m.Call() | m.BinaryOperation()):
        if isinstance(one, cst.Call):
            known = operator_of(context, one)
            if (known is not None and known.costly) or context.fact(one.func).kind == "module":
                return context.code(one.func)
        if isinstance(one, cst.BinaryOperation) and isinstance(one.operator, cst.MatrixMultiply):
            return context.code(one)
    return None


_DIVISION = m.BinaryOperation(operator=m.Divide())
_POLES = m.Name(m.MatchRegex("div|divide|log(2|10|1p)?|r?sqrt|reciprocal|acos|asin"))


def poles(node: cst.CSTNode) -> list[tuple[cst.CSTNode, cst.CSTNode]]:
    """The parts of code whose gradient is infinite for some values, each with the code of these values."""
    divisions = [cst.ensure_type(one, cst.BinaryOperation) for one in findall(node, _DIVISION)]
    calls = findall(node, m.Call(_POLES | m.Attribute(attr=_POLES)))
    return [*((one, one.right) for one in divisions), *((one, one) for one in calls)]


_CONSTANT = m.Attribute(
    value=m.OneOf(*(m.Name(name) for name in ("math", "torch", "np", "numpy"))),
    attr=m.OneOf(*(m.Name(name) for name in ("inf", "nan", "pi", "e"))),
)
_WRITTEN = (
    m.Integer() | m.Float() | m.Imaginary() | m.Call(func=m.Name("float"), args=[m.Arg(m.SimpleString())]) | _CONSTANT
)
_LIMIT = m.Attribute(
    value=m.Call(func=m.Attribute(value=m.Name("torch"), attr=m.Name("finfo") | m.Name("iinfo"))),
    attr=m.OneOf(*(m.Name(name) for name in ("min", "max", "eps", "tiny", "smallest_normal"))),
)


def is_number(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """True if an expression is known to be a Python number: a literal, read from a tensor, or a limit of a dtype."""
    while isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus | cst.Plus):
        node = node.expression
    return context.fact(node).is_number or m.matches(node, _WRITTEN | _LIMIT)


def written_number(node: cst.BaseExpression) -> int | float | complex | None:
    """The value of a number literal, with its sign."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus | cst.Plus):
        value = written_number(node.expression)
        return value if value is None or isinstance(node.operator, cst.Plus) else -value
    return node.evaluated_value if isinstance(node, cst.Integer | cst.Float | cst.Imaginary) else None


def is_size(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """True if an expression is a length or a size of a tensor, which is an integer and not negative."""
    if isinstance(node, cst.Call) and called(context, node)[0] == "builtins.len":
        return True
    owner: cst.BaseExpression | None = None
    if isinstance(node, cst.Call) and context.method(node) == ("size" if node.args else "dim"):
        owner = cst.ensure_type(node.func, cst.Attribute).value
    elif m.matches(node, m.Subscript(m.Attribute(attr=m.Name("shape")), [m.SubscriptElement(m.Index())])):
        owner = cst.ensure_type(cst.ensure_type(node, cst.Subscript).value, cst.Attribute).value
    return owner is not None and context.fact(owner).is_tensor and context.fact(owner).certain
