"""``sizes = counts.tolist()`` for experts that get their rows by ``x.split(sizes)`` → every expert computes all rows.

The rows are sorted by expert, and ``sizes`` says how many each gets.  The sizes stay a tensor, also where a method
hands them to another object of the file.  Where a loop took one part after the other, each expert computes all rows,
and each row is taken from what its expert computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Difference, Effect, assumes, differs
from breakscan.fix.support.edit import Declined, Edit, OtherForm, Replacement
from breakscan.fix.support.masked import NAN_GRADIENTS
from breakscan.fix.support.names import read, written
from breakscan.fix.support.walking import findall
from breakscan.fix.support.wording import plain

_FIRST_DIMENSION = m.Arg(m.Integer("0"), keyword=m.Name("dim")) | m.Arg(m.Integer("0"), keyword=None)
_ROWWISE = "torch.nn.functional.linear"
_LOOP = m.For(
    target=m.Name(),
    iter=m.Call(func=m.Name("range"), args=[m.Arg(keyword=None, star="")]),
    body=m.IndentedBlock([m.SimpleStatementLine([m.Expr(m.Call(func=m.Attribute(attr=m.Name("append"))))])]),
    orelse=None,
)
_ROUNDING = differs("the sizes of matrix products change, so the last digits may differ", Effect.VALUES)
_COST = differs("every expert computes all rows, which takes more operations and memory, the more experts there are")


def rewrite(context: RewriteContext) -> Edit:
    """The sizes as a tensor, and the experts over all rows."""
    line, name, counts = _sizes_of(context)
    uses = _Uses(context, line, name)
    experts = uses.experts()
    if not experts:
        raise OtherForm("the sizes do not split rows over which a loop goes")
    kept = m.matches(counts, m.Name(name))
    changes: dict[cst.CSTNode, Replacement] = {line: None} if kept else {context.node: build.copied(counts)}
    differences: dict[Difference, None] = {}
    for one in experts:
        changes |= one.changes(context)
        differences |= dict.fromkeys(one.differences())
    if uses.leaves:
        differences[assumes(f"`{name}` is a tensor: all code that gets it must take one")] = None
    return Edit(changes, [*differences, _ROUNDING, NAN_GRADIENTS, _COST])


def _sizes_of(context: RewriteContext) -> tuple[cst.SimpleStatementLine, str, cst.BaseExpression]:
    """The line that makes the list, the name of the list, and the tensor."""
    node = context.node
    line = context.statement()
    if not m.matches(node, m.Call(func=m.Attribute(attr=m.Name("tolist")), args=[])):
        raise OtherForm("no list is made of a tensor")
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        raise OtherForm("the list is not assigned to a name")
    small = line.body[0]
    if not isinstance(small, cst.Assign) or small.value is not node or len(small.targets) != 1:
        raise OtherForm("the list is not assigned to a name")
    target = small.targets[0].target
    if not isinstance(target, cst.Name):
        raise OtherForm("the list is not assigned to a name")
    counts = cst.ensure_type(cst.ensure_type(node, cst.Call).func, cst.Attribute).value
    return line, target.value, counts


class _Uses:
    """What a file does with the sizes, by their name, in the function that makes them and in those that get them."""

    def __init__(self, context: RewriteContext, line: cst.SimpleStatementLine, name: str) -> None:
        self.context = context
        self.line = line
        self.name = name
        self.leaves = False
        """Whether the function that makes the sizes hands them on."""

    def experts(self) -> list[_Experts]:
        """The loops over what the sizes split.  Declines if anything else needs the numbers."""
        context = self.context
        inner = {id(one) for one in findall(self.line, m.Name())}
        found: list[_Experts] = []
        called: list[cst.Attribute] = []
        for one in findall(context.tree.module, m.Name(self.name)):
            function = self._function_around(one)
            if id(one) in inner or function is None or self._is_no_read(one):
                continue
            above = context.parent(one)
            if isinstance(above, cst.Element) and isinstance(context.parent(above), cst.Tuple):
                self.leaves = True
                continue
            owner = context.parent(above) if isinstance(above, cst.Arg) else None
            if not isinstance(owner, cst.Call):
                raise Declined(f"`{self.name}` is used for more than to split rows")
            if m.matches(owner.func, m.Attribute(attr=m.Name("split"))):
                found.append(_experts_of(context, function, owner, self.name))
            elif m.matches(owner.func, m.Attribute(value=m.Name("self"))):
                self.leaves = True
                called.append(cst.ensure_type(owner.func, cst.Attribute))
            else:
                raise Declined(f"`{plain(context, owner.func)}` needs the sizes as numbers")
        takers = {self._class_around(one.function) for one in found}
        for attribute in called:
            if self._class_of(attribute) not in takers:
                raise Declined(f"`{plain(context, attribute)}` may need the sizes as numbers")
        return found

    def _function_around(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        return next((one for one in self.context.around(node) if isinstance(one, cst.FunctionDef)), None)

    def _class_around(self, function: cst.FunctionDef) -> str | None:
        owner = next((one for one in self.context.around(function) if isinstance(one, cst.ClassDef)), None)
        return owner.name.value if owner is not None else None

    def _class_of(self, attribute: cst.Attribute) -> str | None:
        """The class of the file of which an attribute of the object is made, in its ``__init__``."""
        owner = next((one for one in self.context.around(attribute) if isinstance(one, cst.ClassDef)), None)
        targets = findall(owner, m.Assign()) if owner is not None else []
        text = plain(self.context, attribute)
        made = {
            one.value.func.value if m.matches(one.value, m.Call(func=m.Name())) else None  # type: ignore[attr-defined]
            for one in targets
            if isinstance(one, cst.Assign)
            if any(plain(self.context, target.target) == text for target in one.targets)
        }
        return made.pop() if len(made) == 1 else None

    def _is_no_read(self, node: cst.CSTNode) -> bool:
        """Whether a name is bound there, or is the name of something else."""
        above = self.context.parent(node)
        if isinstance(above, cst.AssignTarget | cst.Param):
            return True
        if isinstance(above, cst.Attribute):
            return above.attr is node
        if isinstance(above, cst.Arg):
            return above.keyword is node
        around = self.context.parent(above) if isinstance(above, cst.Element) else None
        return isinstance(around, cst.Tuple) and isinstance(self.context.parent(around), cst.AssignTarget)


@dataclass(frozen=True, slots=True)
class _Experts:
    """``parts = rows.split(sizes)``, a loop that appends what each expert makes of its part, and ``torch.cat`` of that.

    ``taken`` are the parts in the loop.
    """

    function: cst.FunctionDef
    name: str
    rows: cst.Name
    line: cst.SimpleStatementLine
    taken: list[cst.Subscript]
    made: str
    cat: cst.Call

    def changes(self, context: RewriteContext) -> dict[cst.CSTNode, Replacement]:
        taken = {*read(self.function), *written(self.function)}
        place, segment = (_fresh(one, taken) for one in ("places", "segments"))
        torch = context.imported("torch")
        prefix = f"{context.code(torch)}."
        rows = self.rows.value
        lines = build.statements(
            f"{self.name} = {prefix}as_tensor({self.name}, device={rows}.device)\n"
            f"{place} = {prefix}arange({rows}.shape[0], device={rows}.device)\n"
            f"{segment} = {prefix}searchsorted({self.name}.cumsum(0), {place}, right=True)\n"
        )
        first = build.with_leading_lines(lines[0], self.line)
        whole = build.expression(f"{prefix}stack({self.made})[{segment}, {place}]")
        return {self.line: [first, *lines[1:]], **{one: self.rows.deep_clone() for one in self.taken}, self.cat: whole}

    def differences(self) -> list[Difference]:
        rows = self.rows.value
        return [
            assumes(f"`{self.name}` must be as many sizes as there are experts, and add up to the rows of `{rows}`"),
            assumes(f"`{rows}` must have more than one dimension"),
        ]


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _experts_of(context: RewriteContext, function: cst.FunctionDef, split: cst.Call, name: str) -> _Experts:
    """The loop over the parts that a call of ``split`` gives.  Declines if it has another form."""
    rows = cst.ensure_type(split.func, cst.Attribute).value
    given = m.Arg(m.Name(name))
    if not isinstance(rows, cst.Name) or not m.matches(
        split, m.Call(args=[given]) | m.Call(args=[given, _FIRST_DIMENSION])
    ):
        raise Declined(f"`{plain(context, split)}` does not split rows of a variable")
    line, parts = _assigned(context, split)
    block = context.parent(line)
    behind = list(block.body) if isinstance(block, cst.IndentedBlock) else []
    behind = behind[next((place + 1 for place, one in enumerate(behind) if one is line), len(behind)) :]
    loop = next((one for one in behind if isinstance(one, cst.For) and parts in read(one)), None)
    if loop is None or not m.matches(loop, _LOOP):
        raise Declined(f"no loop takes the parts of `{rows.value}` one by one")
    number = cst.ensure_type(loop.target, cst.Name).value
    append = cst.ensure_type(findall(loop.body, m.Call(func=m.Attribute(attr=m.Name("append"))))[0], cst.Call)
    receiver = cst.ensure_type(append.func, cst.Attribute).value
    if not isinstance(receiver, cst.Name):
        raise Declined("the loop does more than append what an expert computes")
    made = receiver.value
    taken = _taken(context, append, parts, number)
    cat = _joined(context, function, made)
    used = [one for one in findall(function.body, m.Name(parts)) if not _is_target(context, one)]
    if len(used) != len(taken):
        raise Declined(f"`{parts}` is used for more than the loop")
    if len([one for one in findall(function.body, m.Name(made)) if not _is_target(context, one)]) != 2:
        raise Declined(f"`{made}` is used for more than the loop and `torch.cat`")
    bound = [one for one in findall(function.body, m.Assign()) if made in written(one)]
    if len(bound) != 1 or not m.matches(bound[0], m.Assign([m.AssignTarget(m.Name())], m.List(elements=[]))):
        raise Declined(f"`{made}` may hold more than what the loop appends")
    if rows.value in written(behind[: behind.index(loop) + 1]):
        raise Declined(f"`{rows.value}` may have another value in the loop")
    return _Experts(function, name, rows, line, taken, made, cat)


def _assigned(context: RewriteContext, split: cst.Call) -> tuple[cst.SimpleStatementLine, str]:
    """The line that assigns the parts, and their name."""
    above = context.parent(split)
    line = context.parent(above) if isinstance(above, cst.Assign) and len(above.targets) == 1 else None
    if not isinstance(above, cst.Assign) or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        raise Declined(f"the parts of `{plain(context, split)}` are not assigned to a name")
    target = above.targets[0].target
    if not isinstance(target, cst.Name):
        raise Declined(f"the parts of `{plain(context, split)}` are not assigned to a name")
    return line, target.value


def _taken(context: RewriteContext, append: cst.Call, parts: str, number: str) -> list[cst.Subscript]:
    """The part that an expert takes.  Declines if it does not compute each row by itself."""
    only = append.args[0].value if len(append.args) == 1 else None
    part = m.Subscript(value=m.Name(parts), slice=[m.SubscriptElement(m.Index(m.Name(number)))])
    operands: list[cst.BaseExpression] = []
    if isinstance(only, cst.Call) and context.dotted(only.func) == _ROWWISE and not any(a.star for a in only.args):
        operands = [arg.value for arg in only.args]
    elif isinstance(only, cst.BinaryOperation) and isinstance(only.operator, cst.MatrixMultiply):
        operands = [only.left, only.right]
    if not operands or not m.matches(operands[0], part):
        raise Declined("an expert may not compute each row by itself")
    plain_weight = m.Name() | m.Attribute(value=m.Name()) | m.Subscript(value=m.Name() | m.Attribute(value=m.Name()))
    for weight in operands[1:]:
        if not m.matches(weight, plain_weight) or {parts} & set(read(weight)):
            raise Declined(f"`{plain(context, weight)}` may depend on the rows")
    return [cst.ensure_type(operands[0], cst.Subscript)]


def _joined(context: RewriteContext, function: cst.FunctionDef, made: str) -> cst.Call:
    """The call of ``torch.cat`` that joins what the experts made."""
    first = m.Arg(m.Name(made))
    for one in findall(function.body, m.Call(args=[first]) | m.Call(args=[first, _FIRST_DIMENSION])):
        call = cst.ensure_type(one, cst.Call)
        if context.dotted(call.func) == "torch.cat":
            return call
    raise Declined(f"`torch.cat` does not join what `{made}` holds")


def _is_target(context: RewriteContext, node: cst.CSTNode) -> bool:
    return isinstance(context.parent(node), cst.AssignTarget)
