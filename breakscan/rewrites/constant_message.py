"""``assert test, f"got {x}"`` → ``assert test, "got x"``, which the graph can contain.

Compiled code then checks inside the graph: a failure is a RuntimeError with the text.  In the text, each value is
replaced by its code.  The message of ``torch._check`` becomes a lambda that returns the constant text.
"""

from __future__ import annotations

import libcst as cst

from breakscan.rewrite_support.assertions import asserted_test
from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.difference import Effect, differs
from breakscan.rewrite_support.edit import Declined, Edit, Replacement
from breakscan.rewrite_support.messages import constant_text

_DIFFERENCE = differs(
    "the message shows no values, and in compiled code, a failure is a RuntimeError, or a device-side assert on CUDA",
    Effect.EXCEPTIONS,
)


def rewrite(context: RewriteContext) -> Edit:
    """The message as a literal, and the test as a single tensor if it is not one yet."""
    if isinstance(context.node, cst.Call) and context.finding.rule == "BRK430":
        return _of_check(context, context.node)
    node = context.enclosing(cst.Assert)
    if node is None or node.msg is None:
        raise Declined("this is not an assert with a message")
    text = constant_text(context, node.msg)
    if text is None:
        raise Declined(f"the literal parts of `{context.code(node.msg)}` are not known")
    replace: dict[cst.CSTNode, Replacement] = {node.msg: _laid_out(text, node.msg)}
    test = asserted_test(context, node.test)
    if test is not None:
        replace[node.test] = test
    return Edit(replace, [_DIFFERENCE])


def _of_check(context: RewriteContext, node: cst.Call) -> Edit:
    if (context.dotted(node.func) or "").endswith("_check_is_size"):
        raise Declined("the second argument of `torch._check_is_size` is not a message")
    given = next((one for at, one in enumerate(node.args) if _is_message(at, one)), None)
    if given is None:
        raise Declined("the message is not a plain argument")
    said = given.value
    made = said.body if isinstance(said, cst.Lambda) else said
    text = constant_text(context, made)
    if text is None:
        raise Declined(f"the literal parts of `{context.code(said)}` are not known")
    new = cst.Lambda(cst.Parameters(), _laid_out(text, made), whitespace_after_lambda=cst.SimpleWhitespace(""))
    changed = isinstance(made, cst.SimpleString | cst.ConcatenatedString) and not _has_fields(made)
    # With a string instead of a function, a failing check raises a TypeError.
    words = "a failing check now shows its message" if changed else "the message shows no values"
    return Edit({said: new}, [differs(words, Effect.EXCEPTIONS)])


def _is_message(position: int, arg: cst.Arg) -> bool:
    return arg.keyword.value == "message" if arg.keyword is not None else position == 1 and not arg.star


def _has_fields(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.ConcatenatedString):
        return _has_fields(node.left) or _has_fields(node.right)
    return isinstance(node, cst.FormattedString)


def _laid_out(text: cst.BaseExpression, like: cst.BaseExpression) -> cst.BaseExpression:
    """The text in the parentheses of the code that it replaces, if it has several lines."""
    if isinstance(text, cst.ConcatenatedString | cst.BinaryOperation):
        return text.with_changes(
            lpar=[one.deep_clone() for one in like.lpar], rpar=[one.deep_clone() for one in like.rpar]
        )
    return text
