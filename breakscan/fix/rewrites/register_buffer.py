"""``self.steps = 0``, changed in ``forward`` → ``self.register_buffer("steps", torch.tensor(0), persistent=False)``.

A Python number on a module is a constant in compiled code, a buffer is an input: a step is then an operation in the
graph.  ``self.steps += 1`` becomes ``self.steps = self.steps + 1``: the compiled backward pass computes with the new
value of a buffer that is changed in place, and gradients are wrong (torch 2.13).  Rows that are stored from the counter
on, ``cache[:, self.n : self.n + k] = new``, are stored at ``self.n + torch.arange(k)``.  ``persistent=False`` keeps it
out of the state dict, as before."""

import libcst as cst

from breakscan.fix.result import Effect, differs
from breakscan.fix.rewrites.keep_tensor import Uses
from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import binary, call, method, operand, with_leading_lines
from breakscan.fix.support.context import Declined, Edit, Replacement, RewriteContext
from breakscan.fix.support.walking import findall

_IS_TENSOR = differs("the attribute is a tensor, not a Python number", Effect.TYPES)
_NO_NUMBER = differs("assigning a number to the attribute in other files raises a TypeError", Effect.RAISES)


def rewrite(context: RewriteContext) -> Edit:
    """The number in ``__init__`` as a buffer."""
    counted = next((one for one in (context.node, *context.around()) if isinstance(one, cst.AugAssign)), None)
    if counted is None or not m.matches(counted.target, m.Attribute(value=m.Name())):
        raise Declined("the number is set from outside: pass it in as a tensor")
    target = cst.ensure_type(counted.target, cst.Attribute)
    name, own = target.attr.value, context.code(target.value)
    owner = next((one for one in context.around() if isinstance(one, cst.ClassDef)), None)
    if owner is None:
        raise Declined("the function is not a method")
    init = next((one for one in owner.body.body if m.matches(one, m.FunctionDef(name=m.Name("__init__")))), None)
    if not isinstance(init, cst.FunctionDef) or not isinstance(init.body, cst.IndentedBlock):
        raise Declined(f"`{owner.name.value}` has no `__init__`")
    line = _start(context, init, own, name)
    for one in findall(context.tree.module, m.SimpleString()):
        if cst.ensure_type(one, cst.SimpleString).evaluated_value == name:
            raise Declined(f"`{context.code(one)}` may name the number elsewhere")
    value = cst.ensure_type(line.body[0], cst.Assign).value
    tensor = f"{context.code(context.imported('torch.tensor'))}({context.code(value)})"
    made: cst.BaseStatement = cst.parse_statement(f'{own}.register_buffer("{name}", {tensor}, persistent=False)')
    made = with_leading_lines(made, line).with_changes(trailing_whitespace=line.trailing_whitespace)
    uses = Uses(context, "int", context.code(target))
    replace: dict[cst.CSTNode, Replacement] = {line: made}
    for one in findall(context.tree.module, m.Attribute(attr=m.Name(name))):
        above = context.parent(one)
        if isinstance(above, cst.AssignTarget) and context.statement(one) is line:
            continue
        assigned = context.parent(above) if above is not None else None
        if isinstance(above, cst.AssignTarget) and m.matches(assigned, m.Assign([m.AssignTarget()], m.Integer())):
            reset = cst.ensure_type(assigned, cst.Assign)
            replace[reset] = cst.Expr(method(cst.ensure_type(one, cst.Attribute), "fill_", reset.value))
        elif isinstance(above, cst.AugAssign) and above.target is one:
            replace[above] = _changed(context, above)
        elif (rows := _rows(context, one)) is not None:
            replace[rows] = _positions(context, rows)
        elif isinstance(one, cst.BaseExpression) and context.enclosing(cst.Slice, one) is None:
            uses.follow(one)
        else:
            # In the end of such a slice, it changes with its start.
            end = context.enclosing(cst.Slice, one)
            if end is None or end.lower is None or _rows(context, end.lower) is not end:
                raise Declined(f"`{context.code(one)}` is used as a Python number elsewhere")
    return Edit(replace, [_IS_TENSOR, _NO_NUMBER])


def _changed(context: RewriteContext, change: cst.AugAssign) -> cst.Assign:
    """``self.steps += 1`` as ``self.steps = self.steps + 1``."""
    operators = {cst.AddAssign: cst.Add(), cst.SubtractAssign: cst.Subtract()}
    operator = operators.get(type(change.operator))
    if operator is None or context.fact(change.value).kind not in ("constant", "shape"):
        raise Declined("the number is not changed by an integer")
    target = cst.ensure_type(change.target.deep_clone(), cst.Attribute)
    value = cst.BinaryOperation(target, operator, operand(change.value))
    return cst.Assign([cst.AssignTarget(target.deep_clone())], value, semicolon=change.semicolon)


def _rows(context: RewriteContext, counter: cst.CSTNode) -> cst.Slice | None:
    """The slice ``counter : counter + n`` of a tensor that is assigned, of which a counter is the start."""
    rows = context.parent(counter)
    if not isinstance(rows, cst.Slice) or rows.lower is not counter or rows.step is not None:
        return None
    if not m.matches(rows.upper, m.BinaryOperation(operator=m.Add())):
        return None
    end = cst.ensure_type(rows.upper, cst.BinaryOperation)
    _, _, stored, *_ = context.around(rows)
    is_from = context.plain(end.left) == context.plain(counter)
    return rows if is_from and isinstance(stored, cst.AssignTarget) else None


def _positions(context: RewriteContext, rows: cst.Slice) -> cst.Index:
    """``counter + torch.arange(n)`` for ``counter : counter + n``."""
    assert rows.lower is not None
    count = cst.ensure_type(rows.upper, cst.BinaryOperation).right
    device = cst.Attribute(operand(rows.lower), cst.Name("device"))
    numbers = call(context.imported("torch.arange"), count, device=device)
    return cst.Index(binary(rows.lower, cst.Add(), numbers))


def _start(context: RewriteContext, init: cst.FunctionDef, own: str, name: str) -> cst.SimpleStatementLine:
    """The line of ``__init__`` that sets the number."""
    ready = False
    assigned = m.Assign([m.AssignTarget(m.Attribute(m.Name(own), m.Name(name)))], m.Integer())
    for line in init.body.body:
        ready = ready or "__init__" in context.code(line)
        if m.matches(line, m.SimpleStatementLine([assigned])):
            if not ready:
                raise Declined("the number is set before `super().__init__()`")
            return cst.ensure_type(line, cst.SimpleStatementLine)
    raise Declined(f"`__init__` does not set `{own}.{name}` to an integer")
