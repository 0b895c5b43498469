"""``if bad: raise E(message)``, ``assert ok, message`` → ``torch._assert_async(~bad, "message")`` in compiled code.

Eager code makes the old check, with its exception and its message.  Compiled code checks inside the graph and does not
wait for the result: a failure is a RuntimeError with a constant text on the CPU, and on CUDA a device-side assert that
a later call reports.  Python conditions in the test stay Python conditions."""

import re
from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from breakscan.fix.result import EXCEPTIONS, Effect, differs
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import reads_of
from breakscan.fix.support.build import call, copied, inverted, method
from breakscan.fix.support.checks import block_of, breaking, compiling, is_caught
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.operators import cuts_gradient
from breakscan.fix.support.purity import decline_for, why_missed
from breakscan.fix.support.tensor_test import When, not_python, tensor_test
from breakscan.fix.support.walking import walk

_FAILURE = differs(
    "in compiled code, a failure is a RuntimeError with a constant text, or a device-side assert on CUDA", *EXCEPTIONS
)
_READ = m.Call(m.Attribute(attr=m.Name("item")), []) | m.Call(m.Name("int") | m.Name("float"), [m.Arg()])
_COMPARED = m.Comparison(comparisons=[m.ComparisonTarget(~(m.In() | m.NotIn() | m.Is() | m.IsNot()))])


def rewrite(context: RewriteContext) -> Edit:
    """The check as an assertion in the graph, in front of the old one."""
    if (assertion := context.enclosing(cst.Assert)) is not None:
        return _of_assert(context, assertion)
    if (number := _checked_number(context)) is not None:
        return number
    guard = _guard_of(context)
    text = _raised_text(context, guard)
    if context.finding.mode.exports and context.fact(guard.test).kind == "number":
        return _in_front(context, guard, guard, [When(not_python(guard.test), False)], None, text)
    is_elif = isinstance(context.parent(guard), cst.If)
    block: Sequence[cst.CSTNode] = [guard] if is_elif else block_of(context, guard)
    if (culprit := breaking(context, block[:-1])) is not None:
        raise Declined(f"the check needs `{culprit}`, which breaks the graph itself")
    check = tensor_test(context, guard.test, negated=True)
    edit = _in_front(context, guard, guard, check.when, check.tensor, text)
    return replace(edit, differences=[*edit.differences, *check.differences()])


def _guard_of(context: RewriteContext) -> cst.If:
    """The ``if`` whose test is at the site and that then raises.  Declines if there is none."""
    guard = context.tested_by(cst.If)
    if guard is None or not any(isinstance(one, cst.Raise) for one in walk(guard.body)):
        raise OtherForm("this is not the test of an `if` that raises")
    return guard


_ASSIGNMENT = m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(m.Name())])])


def _raised_text(context: RewriteContext, guard: cst.If) -> cst.BaseExpression | None:
    """The constant text of what a check raises.  Declines if it does more, may be caught, or must not be skipped."""
    *before, last = guard.body.body
    raised = last.body[0] if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 else None
    if not isinstance(raised, cst.Raise) or not all(m.matches(one, _ASSIGNMENT) for one in before):
        raise Declined("the `if` does more than raise an exception")
    if is_caught(context, guard):
        raise Declined("the exception may be caught in this function")
    if guard.orelse is not None:
        raise Declined("the check has an `else` branch")
    decline_for(why_missed(context, guard.test), "compiled code would skip the original test, and ")
    return _message(raised, before)


def _checked_number(context: RewriteContext) -> Edit | None:
    """``n = t.item()`` and ``if n != m: raise E(n)``, with the tensor as ``n``; None where nothing else reads ``n``."""
    value, small = context.node, context.parent(context.node)
    if not m.matches(value, _READ) or not isinstance(small, cst.Assign) or len(small.targets) > 1:
        return None
    name, node = small.targets[0].target, cst.ensure_type(value, cst.Call)
    tensor = node.func.value if isinstance(node.func, cst.Attribute) else node.args[0].value
    if not isinstance(name, cst.Name) or not context.fact(tensor).zero_dim:
        return None
    guard, *others = {context.enclosing(cst.If, one) for one in reads_of(context, name, context.line())}
    if others or guard is None or not m.matches(guard.test, _COMPARED):
        return None
    edit = _in_front(context, guard, guard, [], inverted(guard.test), _raised_text(context, guard))
    has_gradient = context.fact(tensor).dtype not in ("int", "bool") and not cuts_gradient(context, tensor)
    made = method(tensor, "detach") if has_gradient else copied(tensor)
    is_tensor = differs(f"`{name.value}` becomes a 0-d tensor, also in the exception", Effect.TYPES)
    return replace(edit, replace={**edit.replace, node: made}, differences=[is_tensor, *edit.differences])


def _of_assert(context: RewriteContext, assertion: cst.Assert) -> Edit:
    decline_for(why_missed(context, assertion.test), "compiled code would skip the original test, and ")
    line = context.line(assertion)
    text = None if assertion.msg is None else _constant_text(assertion.msg)
    old = cst.Else(cst.IndentedBlock([line.deep_clone().with_changes(leading_lines=())]))
    check = tensor_test(context, assertion.test)
    if not check.when and (assertion.msg is None or isinstance(assertion.msg, cst.SimpleString)):
        # An assert of a tensor with a constant text compiles.
        return Edit({assertion.test: check.tensor}, [_FAILURE, *check.differences()])
    edit = _in_front(context, line, old, check.when, check.tensor, text)
    return replace(edit, differences=[*edit.differences, *check.differences()])


def _in_front(
    context: RewriteContext,
    check: cst.If | cst.SimpleStatementLine,
    old: cst.If | cst.Else,
    conditions: Sequence[When],
    tensor: cst.BaseExpression | None,
    text: cst.BaseExpression | None,
) -> Edit:
    """The assertion for compiled code, in front of the old check."""
    texts = [context.plain(one.test) for one in conditions]
    body = _conditional(context, [conditions[i] for i, one in enumerate(texts) if one not in texts[:i]], tensor, text)
    above = [one.deep_clone() for one in check.leading_lines]
    if isinstance(old, cst.If):
        old = old.deep_clone().with_changes(leading_lines=())
    made = cst.If(compiling(context), cst.IndentedBlock(body), old, leading_lines=above)
    return Edit({check: made}, [_FAILURE])


def _conditional(
    context: RewriteContext,
    conditions: Sequence[When],
    tensor: cst.BaseExpression | None,
    text: cst.BaseExpression | None,
) -> list[cst.BaseStatement]:
    """The assertion under its Python conditions: each is an ``if``, or a check of its own."""
    if not conditions:
        if tensor is None:
            return []
        asserted = call(context.imported("torch._assert_async"), tensor, *([] if text is None else [text]))
        return [cst.SimpleStatementLine([cst.Expr(asserted)])]
    first, *others = conditions
    if first.otherwise:
        inner = _conditional(context, others, tensor, text)
        return [cst.If(copied(first.test), cst.IndentedBlock(inner))]
    said = [] if text is None else [cst.Lambda(cst.Parameters(), text.deep_clone(), lpar=(), rpar=())]
    checked = call(context.imported("torch._check"), first.test, *said)
    line = cst.SimpleStatementLine([cst.Expr(checked)])
    return [line, *_conditional(context, others, tensor, text)]


def _message(raised: cst.Raise, before: Sequence[cst.CSTNode]) -> cst.BaseExpression | None:
    """The constant text of the raised exception, even if a line before it assigned the text to a name."""
    made = raised.exc
    if not isinstance(made, cst.Call) or not made.args or made.args[0].keyword is not None or made.args[0].star:
        return None
    message = made.args[0].value
    for one in before:
        assigned = cst.ensure_type(cst.ensure_type(one, cst.SimpleStatementLine).body[0], cst.Assign)
        if isinstance(message, cst.Name) and m.matches(assigned.targets[0].target, m.Name(message.value)):
            message = assigned.value
    return _constant_text(message)


def _constant_text(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """A constant text for a string, without the values or with dots in their place; None for other messages."""
    if isinstance(node, cst.SimpleString):
        return None if "b" in node.prefix.lower() else copied(node)
    if isinstance(node, cst.ConcatenatedString):
        left = _constant_text(node.left)
        if not isinstance(left, cst.SimpleString):
            return None
        if isinstance(node.left, cst.FormattedString) and _TAIL.search(_text(node.left)):
            return left
        right = _constant_text(node.right)
        if not isinstance(right, cst.SimpleString | cst.ConcatenatedString):
            return None
        spread = isinstance(node.whitespace_between, cst.ParenthesizedWhitespace)
        between = cst.ParenthesizedWhitespace(indent=True) if spread else node.whitespace_between.deep_clone()
        return cst.ConcatenatedString(left, right, whitespace_between=between)
    if not isinstance(node, cst.FormattedString):
        return None
    text = _text(node)
    if short := _TAIL.sub("", text).rstrip():
        text = short if short != text.rstrip() else text
    text = text.replace(_VALUE, "...")
    prefix = node.start.removesuffix(node.end).replace("f", "").replace("F", "")
    return cst.SimpleString(prefix + node.end + text + node.end)


_VALUE = "\0"
"""Stands for a value in a text."""
_ASIDE = re.compile(rf" \([^()]*{_VALUE}[^()]*\)")
_TAIL = re.compile(
    rf"\s*[:;,]\s*(?:but\s)?(?:[\w\s]*(?:[:=]|got|found|received)\s*)?{_VALUE}(?:[\s,;.]|and|{_VALUE}|[\w.]+[:=])*$"
)
"""The end of a message that shows values, as ``, but got {n}``."""


def _text(node: cst.FormattedString) -> str:
    """The text of a formatted string, with marks for its values, and no values in parentheses."""
    parts = (
        part.value.replace("{{", "{").replace("}}", "}") if isinstance(part, cst.FormattedStringText) else _VALUE
        for part in node.parts
    )
    return _ASIDE.sub("", "".join(parts))
