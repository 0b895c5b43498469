"""``torch.split(x, counts.tolist())`` over experts → every expert computes all rows, and each row takes its own result.

The parts become ``[x] * counts.shape[0]``, the loop over them stays, and ``torch.cat(outs)`` becomes a choice of rows
of ``torch.stack(outs)``."""

import libcst as cst

from breakscan.fix.result import Effect, assumes, differs
from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import is_bound_once, reads_of
from breakscan.fix.support.context import Declined, Edit, OtherForm, Replacement, RewriteContext
from breakscan.fix.support.operators import called
from breakscan.fix.support.walking import findall, fresh_name, nodes_named

_ROW_BY_ROW = assumes("each part must be computed row by row, and the counts must add up to the rows")
_ALL_ROWS = differs(
    "every expert computes all rows, which rounds differently, and costs more with more than about 8 experts",
    *(Effect.VALUES, Effect.GRADIENTS, Effect.STRIDES, Effect.NO_LONGER_RAISES),
)
_TOGETHER = m.Name(m.MatchRegex("(?i).*(attention|batch_?norm|instance_?norm|cumsum|sort|topk).*"))
_FIRST = m.Arg(m.Integer("0"))


def rewrite(context: RewriteContext) -> Edit:
    """The split and the concatenation, for all rows."""
    node = context.node
    if not m.matches(node, m.Call(m.Attribute(attr=m.Name("tolist")), [])):
        raise OtherForm("this is not a list of counts")
    counts = cst.ensure_type(cst.ensure_type(node, cst.Call).func, cst.Attribute).value
    replace: dict[cst.CSTNode, Replacement] = {}
    sizes = _named(context, node)
    if sizes is not None:
        replace[context.line()] = None
        is_same = isinstance(counts, cst.Name) and is_bound_once(context, counts.value)
        if not is_same and not m.matches(counts, m.Name(sizes.value)):
            raise Declined(f"`{context.plain(counts)}` may have other values at the split")
    split, rows = _split(context, sizes or node)
    parts = _named(context, split) or split
    loop = next((one for one in context.around(parts) if isinstance(one, cst.For | cst.ListComp)), None)
    outs = _outs(context, loop, parts)
    name = fresh_name(context.function, "expert")
    length = cst.Subscript(cst.Attribute(rows, cst.Name("shape")), [cst.SubscriptElement(cst.Index(cst.Integer("0")))])
    number = length.with_deep_changes(length.value, value=build.operand(counts))
    owner = build.call(context.imported("torch.repeat_interleave"), counts, output_size=length)
    start = context.line(split)
    alike = build.binary(cst.List([cst.Element(rows)]), cst.Multiply(), number)
    left = cst.ensure_type(start.deep_replace(split, alike), cst.SimpleStatementLine)
    replace[start] = [
        build.with_leading_lines(build.assignment(name, owner), start),
        left.with_changes(leading_lines=()),
    ]
    device = cst.Attribute(rows, cst.Name("device"))
    index = [name, build.call(context.imported("torch.arange"), length, device=device)]
    stacked = build.call(context.imported("torch.stack"), cst.ensure_type(outs.args[0].value, cst.Name))
    replace[outs] = cst.Subscript(stacked, [cst.SubscriptElement(cst.Index(one)) for one in index])
    return Edit(replace, [_ROW_BY_ROW, _ALL_ROWS])


def _named(context: RewriteContext, value: cst.CSTNode) -> cst.Name | None:
    """The only read of the name that a value is assigned to; None if it is not assigned."""
    small = context.parent(value)
    if not isinstance(small, cst.Assign):
        return None
    target = small.targets[0].target
    reads = reads_of(context, target, context.line(value)) if isinstance(target, cst.Name) else []
    if len(small.targets) > 1 or len(reads) != 1:
        raise OtherForm(f"`{context.plain(target)}` is used for more than a split")
    return reads[0]


def _split(context: RewriteContext, sizes: cst.CSTNode) -> tuple[cst.Call, cst.Name]:
    """The call that splits rows by a list of sizes, and the rows."""
    arg = context.parent(sizes)
    call = context.parent(arg) if isinstance(arg, cst.Arg) else None
    if not isinstance(call, cst.Call):
        raise OtherForm("the list is not passed to a split")
    function, method = called(context, call)
    given = [one for one in call.args if one is not arg]
    if function == "torch.split" and given:
        rows, given = given[0].value, given[1:]
    elif method == "split" and isinstance(call.func, cst.Attribute):
        rows = call.func.value
    else:
        raise OtherForm("the list is not passed to a split")
    if not isinstance(rows, cst.Name) or not all(m.matches(one, _FIRST) for one in given):
        raise Declined("the split is not one of the rows of a variable")
    return call, rows


def _outs(context: RewriteContext, loop: cst.CSTNode | None, parts: cst.CSTNode) -> cst.Call:
    """The concatenation of what a loop over the parts computes."""
    if isinstance(loop, cst.ListComp):
        small = context.parent(loop)
        target = small.targets[0].target if isinstance(small, cst.Assign) else None
        names, filled = [target] if isinstance(target, cst.Name) else [], 1
    elif isinstance(loop, cst.For) and not findall(loop.body, m.If() | m.Break() | m.Continue() | m.Return()):
        appends = findall(loop.body, m.Call(m.Attribute(m.Name(), m.Name("append")), [m.Arg()]))
        names = [cst.ensure_type(one.func.value, cst.Name) for one in appends]  # type: ignore[attr-defined]
        filled = 2
    else:
        raise OtherForm("no loop computes the parts one by one")
    if len(names) != 1 or findall(loop, _TOGETHER):
        raise Declined("the loop over the parts does more than compute each row")
    uses = nodes_named(context.function, names[0].value)
    last = context.parent(context.parent(uses[-1]) or uses[-1])
    if len(uses) != filled + 1 or not isinstance(last, cst.Call) or called(context, last)[0] != "torch.cat":
        raise Declined(f"`{names[0].value}` is used for more than a concatenation")
    if not all(m.matches(one, _FIRST) for one in last.args[1:]):
        raise Declined("the parts are not put together as rows")
    return last
