"""``assert test, f"got {x}"`` → the same in eager code, and in compiled code an assert that the graph can contain.

Eager code keeps the message with its values.  Compiled code checks inside the graph: a failure is a RuntimeError with a
constant text, in which each value is replaced by its code.  The message of ``torch._check`` becomes a lambda that
returns the constant text.  A message without values stays one statement.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from breakscan.fix.support.assertions import FAILURE, asserted_test
from breakscan.fix.support.build import copied
from breakscan.fix.support.compiling import either
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import EXCEPTIONS, Difference, ShowsOnly, differs
from breakscan.fix.support.edit import Declined, Edit, Replacement
from breakscan.fix.support.messages import constant_text, shows_values

_NO_VALUES = differs(
    "in compiled code, the message of a failing check shows no values", *EXCEPTIONS, only=ShowsOnly.COMPILED
)
_SHOWN = differs("a failing check now shows its message instead of raising a TypeError", *EXCEPTIONS)


@dataclass(frozen=True, slots=True)
class _Compiled:
    statement: cst.BaseSmallStatement
    differences: list[Difference]


def rewrite(context: RewriteContext) -> Edit:
    """The message as a literal, and the test as a single tensor if it is not one yet."""
    if isinstance(context.node, cst.Call) and context.finding.rule == "BRK430":
        return _of_check(context, context.node)
    node = context.enclosing(cst.Assert)
    if node is None or node.msg is None:
        raise Declined("this is not an assert with a message")
    text = _text(context, node.msg)
    if not shows_values(node.msg):
        test, check = asserted_test(context, node.test) or (None, None)
        differences = [FAILURE, *(check.differences() if check else [])]
        return Edit({node.msg: text, **({} if test is None else {node.test: test})}, differences)
    return _under_one_test(context, context.line(), _compiled(context, node))


def _compiled(context: RewriteContext, node: cst.Assert) -> _Compiled:
    """An assert as compiled code has it.  Declines if there is no such form."""
    assert node.msg is not None
    made = node.deep_clone().with_changes(msg=_text(context, node.msg))
    found = asserted_test(context, node.test)
    if found is None:
        return _Compiled(made, [FAILURE])
    test, check = found
    return _Compiled(made.with_changes(test=test), [FAILURE, *check.differences(compiled=True)])


def _under_one_test(context: RewriteContext, line: cst.SimpleStatementLine, compiled: _Compiled) -> Edit:
    """The assert of a line with those that follow it directly."""
    lines, all_compiled = [line], [compiled]
    body, position = context.siblings(line)
    for one in body[position + 1 :]:
        following = _follows(context, one)
        if following is None:
            break
        lines.append(cst.ensure_type(one, cst.SimpleStatementLine))
        all_compiled.append(following)
    made = either(context, lines, [one.statement for one in all_compiled], [one.body[0].deep_clone() for one in lines])
    replace: dict[cst.CSTNode, Replacement] = {line: made, **dict.fromkeys(lines[1:])}
    return Edit(replace, list(dict.fromkeys(said for one in all_compiled for said in one.differences)))


def _follows(context: RewriteContext, line: cst.CSTNode) -> _Compiled | None:
    """The assert of a line without a comment above it, if that breaks the graph, too."""
    if not isinstance(line, cst.SimpleStatementLine) or line.leading_lines or len(line.body) > 1:
        return None
    node = line.body[0]
    if not isinstance(node, cst.Assert) or node.msg is None or not shows_values(node.msg):
        return None
    sites = (context.tree.at(one.site) for one in context.others if one.rule == context.finding.rule)
    if not any(site is node or node in context.around(site) for site in sites if site is not None):
        return None
    try:
        return _compiled(context, node)
    except Declined:
        return None


def _of_check(context: RewriteContext, node: cst.Call) -> Edit:
    if (context.dotted(node.func) or "").endswith("_check_is_size"):
        raise Declined("the second argument of `torch._check_is_size` is not a message")
    given = next((one for at, one in enumerate(node.args) if _is_message(at, one)), None)
    if given is None:
        raise Declined("the message is not a plain argument")
    said = given.value
    made = said.body if isinstance(said, cst.Lambda) else said
    text = _text(context, made)
    differences = [] if isinstance(said, cst.Lambda) else [_SHOWN]
    if not shows_values(made):
        return Edit({said: _lambda(text)}, differences or [_NO_VALUES])

    def checked(message: cst.BaseExpression) -> cst.Expr:
        args = [one.deep_clone() for one in node.args]
        args[list(node.args).index(given)] = given.deep_clone().with_changes(value=message)
        return cst.Expr(copied(node).with_changes(args=args))

    eager = said.deep_clone() if isinstance(said, cst.Lambda) else _lambda(made.deep_clone())
    line = context.line()
    made_line = either(context, [line], [checked(_lambda(text))], [checked(eager)])
    return Edit({line: made_line}, [*differences, _NO_VALUES])


def _text(context: RewriteContext, message: cst.BaseExpression) -> cst.BaseExpression:
    text = constant_text(context, message)
    if text is None:
        raise Declined(
            f"the literal parts of `{context.code(message)}` are not known: write the text at the check, as a string"
        )
    # The text has the parentheses of the code that it replaces, if it has several lines.
    if isinstance(text, cst.ConcatenatedString | cst.BinaryOperation):
        kept = [one.deep_clone() for one in message.lpar], [one.deep_clone() for one in message.rpar]
        return text.with_changes(lpar=kept[0], rpar=kept[1])
    return text


def _lambda(body: cst.BaseExpression) -> cst.Lambda:
    return cst.Lambda(cst.Parameters(), body, whitespace_after_lambda=cst.SimpleWhitespace(""))


def _is_message(position: int, arg: cst.Arg) -> bool:
    return arg.keyword.value == "message" if arg.keyword is not None else position == 1 and not arg.star
