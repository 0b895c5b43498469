"""``points(shapes)``, where ``shapes = torch.as_tensor(sizes)`` → ``points(sizes)``.

A function that loops over a tensor of sizes breaks the graph where it uses an element as a size or slice bound.  If its
callers have the list that the tensor was made from, the loop gets the numbers of that list instead.  The list is found
if the caller itself makes the tensor from it, or if it takes both: ``shapes`` and ``shapes_list``.  The function is
unchanged, so callers in other files can still pass the tensor.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.aliases import change_behind
from breakscan.fix.support.assignments import origin
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Difference, Effect, assumes, differs
from breakscan.fix.support.edit import Declined, Edit, OtherForm
from breakscan.fix.support.elements import Numbers, targets
from breakscan.fix.support.names import read, written
from breakscan.fix.support.walking import findall

SUFFIX = "_list"
_MAKES = frozenset({"torch.as_tensor", "torch.tensor"})
_MOVES = frozenset({"cpu", "cuda", "int", "long", "to"})
_NO_INTEGER = ("float", "half", "double", "bool", "complex")
_LIST_TYPES = ("list", "tuple", "sequence")
_CHANGES = frozenset({"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"})

_NUMBERS = differs("the loop gets Python numbers instead of 0-d tensors", Effect.TYPES)


def rewrite(context: RewriteContext) -> Edit:
    """The lists in the calls."""
    function = context.function
    parameter = _looped_over(context, function)
    replaced: dict[cst.CSTNode, cst.Name] = {}
    differences = {_NUMBERS: None}
    for call, bound in _calls(context, function):
        given = _given(function, parameter, call, bound)
        name, found = _list_of(context, given)
        replaced[given] = cst.Name(name)
        differences.update(dict.fromkeys(found))
    return Edit({**replaced}, list(differences))


# -- the loop ----------------------------------------------------------------------------------------------------


def _looped_over(context: RewriteContext, function: cst.FunctionDef) -> cst.Param:
    """The parameter from whose elements the site is computed."""
    declined: Declined | None = None
    all_loops = findall(function.body, m.For() | m.CompFor())
    for parameter in _parameters(function):
        name = parameter.name.value
        loops = [one for one in all_loops if _iterates(one, name)]
        if not any(_is_about(context, one) for one in loops):
            continue
        try:
            if name in written(function.body):
                raise Declined(f"`{name}` is reassigned in the function")
            if parameter.annotation is not None and context.code(parameter.annotation.annotation).endswith("Tensor"):
                raise Declined(f"`{name}` is annotated as a tensor")
            numbers = Numbers(context, function, targets(context, function, name))
        except Declined as reason:
            declined = declined or reason
            continue
        if (numbers.names | numbers.rows).intersection(read(context.node)):
            return parameter
    raise declined or OtherForm(
        "the number does not come from a loop over a parameter: pass Python numbers to the function"
    )


def _iterates(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.For | cst.CompFor) and name in read(node.iter)


def _is_about(context: RewriteContext, loop: cst.CSTNode) -> bool:
    """Whether the site is in a loop, or contains a comprehension."""
    holder = context.parent(loop) if isinstance(loop, cst.CompFor) else loop
    return any(one is holder for one in context.around()) or any(one is context.node for one in context.around(loop))


def _parameters(function: cst.FunctionDef) -> list[cst.Param]:
    given = function.params
    return [*given.posonly_params, *given.params, *given.kwonly_params]


# -- the calls ---------------------------------------------------------------------------------------------------


def _calls(context: RewriteContext, function: cst.FunctionDef) -> Iterator[tuple[cst.Call, bool]]:
    """All calls of a function in its file, and whether the first parameter is bound by attribute access."""
    name = function.name.value
    module = context.tree.module
    if len(findall(module, m.FunctionDef(name=m.Name(name)))) > 1:
        raise Declined(f"the file has several functions named `{name}`")
    block = context.parent(function)
    owner = context.parent(block) if block is not None else None
    binds = True
    for decorator in function.decorators:
        code = context.code(decorator.decorator)
        binds = binds and code != "staticmethod"
        if code not in ("staticmethod", "classmethod") and not code.startswith("torch."):
            raise Declined(f"`{name}` is decorated with `@{code}`")
    in_class = isinstance(owner, cst.ClassDef)
    pattern = m.Attribute(attr=m.Name(name)) if in_class else m.Name(name)
    found = 0
    for one in findall(module, pattern):
        above = context.parent(one)
        if above is function or (isinstance(above, cst.Attribute) and above.attr is one):
            continue
        if not isinstance(above, cst.Call) or above.func is not one:
            raise Declined(f"`{name}` is passed on, and may be called from elsewhere")
        if isinstance(one, cst.Attribute) and isinstance(owner, cst.ClassDef):
            on = context.code(one.value)
            if on not in ("self", "cls") and (on != owner.name.value or binds):
                raise Declined(f"`{context.code(one)}` may be a different function")
        found += 1
        yield above, in_class and binds
    if not found:
        raise Declined(f"`{name}` is not called in this file")


def _given(function: cst.FunctionDef, parameter: cst.Param, call: cst.Call, bound: bool) -> cst.BaseExpression:
    """The argument that a call passes for a parameter."""
    name = parameter.name.value
    if any(arg.star for arg in call.args):
        raise Declined(f"a call with `*` may pass `{name}`")
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return arg.value
    positional = [*function.params.posonly_params, *function.params.params][bound:]
    at = positional.index(parameter) if parameter in positional else len(call.args)
    if at >= len(call.args) or call.args[at].keyword is not None:
        raise Declined(f"a call does not pass `{name}`")
    return call.args[at].value


# -- the list ----------------------------------------------------------------------------------------------------


def _list_of(context: RewriteContext, given: cst.BaseExpression) -> tuple[str, list[Difference]]:
    """The name of the list from which an argument was made, and the assumptions."""
    text = context.code(given)
    none = Declined(f"a call passes `{text}`, and the list that it is made from is not available")
    if not isinstance(given, cst.Name):
        raise none
    there = RewriteContext(context.tree, context.finding, given, context.torch_version)
    found = origin(there, given)
    if isinstance(found.anchor, cst.FunctionDef):
        sibling = text + SUFFIX
        parameters = [one.name.value for one in _parameters(found.anchor)]
        if sibling not in parameters or not _is_made_elsewhere(context, text, sibling):
            raise none
        _unchanged(there, found.anchor.body, {text, sibling}, sibling)
        return sibling, [assumes(f"`{sibling}` must hold the same numbers as `{text}`")]
    made = _made_of(context, found.value)
    if made is None or found.anchor is None:
        raise none
    if made.value == text:
        raise Declined(f"`{text}` names both the list and the tensor")
    if not _is_list(there, made):
        raise Declined(f"`{text}` is made from `{made.value}`, which may not be a list")
    _unchanged(there, found.anchor, {text, made.value}, made.value)
    return made.value, []


def _made_of(context: RewriteContext, value: cst.BaseExpression | None) -> cst.Name | None:
    """``sizes`` of ``torch.as_tensor(sizes, ...)``, also if the tensor is then moved; None for another dtype."""
    while isinstance(value, cst.Call):
        if any(word in context.code(arg.value) for arg in value.args[1:] for word in _NO_INTEGER):
            return None
        if (context.dotted(value.func) or context.code(value.func)) in _MAKES:
            first = value.args[0] if value.args else None
            return first.value if first is not None and isinstance(first.value, cst.Name) else None
        if not isinstance(value.func, cst.Attribute) or value.func.attr.value not in _MOVES:
            return None
        if any(word in context.code(arg.value) for arg in value.args for word in _NO_INTEGER):
            return None
        value = value.func.value
    return None


def _is_made_elsewhere(context: RewriteContext, tensor: str, numbers: str) -> bool:
    for one in findall(context.tree.module, m.Assign([m.AssignTarget(m.Name(tensor))])):
        made = _made_of(context, cst.ensure_type(one, cst.Assign).value)
        if made is not None and made.value == numbers:
            return True
    return False


def _is_list(there: RewriteContext, name: cst.Name) -> bool:
    found = origin(there, name)
    if isinstance(found.anchor, cst.FunctionDef):
        annotations = [one.annotation for one in _parameters(found.anchor) if one.name.value == name.value]
        words = [there.code(one.annotation).lower() for one in annotations if one is not None]
        return any(word.rpartition(".")[2].startswith(_LIST_TYPES) for word in words)
    made = found.value
    if isinstance(made, cst.Call):
        return there.code(made.func) in ("list", "tuple")
    return isinstance(made, cst.List | cst.Tuple | cst.ListComp)


def _unchanged(there: RewriteContext, start: cst.CSTNode, names: set[str], numbers: str) -> None:
    """Declines if the tensor is changed, or the list is changed or rebound, after a node."""
    changed = change_behind(there, names, start, trusts_calls=True)
    at = there.tree.span(start)[:2] if isinstance(start, cst.IndentedBlock) else there.tree.span(start)[2:]
    for one in findall(there.function, m.Call() | m.AssignTarget() | m.NamedExpr() | m.For() | m.AsName() | m.Del()):
        if changed is not None:
            break
        if there.tree.span(one)[:2] < at:
            continue
        if isinstance(one, cst.Call):
            is_change = m.matches(one.func, m.Attribute(m.Name(numbers), m.Name(m.MatchIfTrue(_CHANGES.__contains__))))
        else:
            head = one.target if isinstance(one, cst.For | cst.NamedExpr) else one
            is_change = numbers in (read(head) if isinstance(one, cst.For) else written(one))
        changed = there.code(one).partition("\n")[0] if is_change else None
    if changed is not None:
        raise Declined(f"after `{changed}`, the list and the tensor may differ")
