"""Whether the code shows that a value need not be what the analysis takes it for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import takewhile

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.walking import findall

Around = Callable[[cst.CSTNode], Iterator[cst.CSTNode]]
"""The nodes around a node, from the inside out."""

_NO_TENSOR = re.compile(
    "bool|int|float|complex|str|bytes|[Ll]ist|[Dd]ict|[Tt]uple|[Ss]et|[Ss]equence|[Mm]apping|[Ii]terable|[Ii]terator"
    "|[Cc]allable|[Nn]umber|.*[Nn]d[Aa]rray.*"
)
_JOINS = ("Union", "Optional", "Annotated")
_LITERAL = m.Name("True") | m.Name("False") | m.Integer() | m.Float() | m.SimpleString() | m.List() | m.Dict()
_EXITS = m.SimpleStatementLine(body=[m.AtLeastN(m.Return() | m.Raise() | m.Continue(), n=1)])


def may_be_no_tensor(node: cst.BaseExpression, around: Around) -> bool:
    """Whether an annotation, a default value, an assignment or a test of types shows that it need not be a tensor."""
    if isinstance(node, cst.Name):
        return _parameter_may(node, around) and not _is_narrowed(node, around)
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
        return _attribute_may(node, around) and not _is_narrowed(node, around)
    return False


def may_be_index(node: cst.Name, around: Around) -> bool:
    """Whether the function says that a parameter may hold indices: in its documentation, or by asking for a dtype."""
    for function in around(node):
        if isinstance(function, cst.FunctionDef) and _parameter(function, node.value) is not None:
            said = _documented(function, node.value)
            asked = m.Comparison(left=m.Attribute(m.Name(node.value), m.Name("dtype")))
            return re.search(r"\b(index|indices)\b", said) is not None or bool(findall(function.body, asked))
    return False


def _documented(function: cst.FunctionDef, name: str) -> str:
    """The lines about a parameter in the docstring of a function."""
    lines = (function.get_docstring() or "").splitlines()
    for number, line in enumerate(lines):
        if re.match(rf"\s*{re.escape(name)}\b.*:", line):
            return "\n".join([line, *takewhile(_deeper_than(line), lines[number + 1 :])])
    return ""


def _deeper_than(line: str) -> Callable[[str], bool]:
    indent = len(line) - len(line.lstrip())
    return lambda one: len(one) - len(one.lstrip()) > indent


def _parameter_may(node: cst.Name, around: Around) -> bool:
    for function in around(node):
        if isinstance(function, cst.FunctionDef):
            given = _parameter(function, node.value)
            if given is not None:
                return not _is_rebound(node, function, around) and (
                    _allows_others(given) or _type_is_tested(node, function)
                )
    return False


def _parameter(function: cst.FunctionDef, name: str) -> cst.Param | None:
    params = function.params
    every = [*params.posonly_params, *params.params, *params.kwonly_params]
    return next((one for one in every if one.name.value == name), None)


def _allows_others(param: cst.Param) -> bool:
    if param.annotation is not None:
        return _is_no_tensor(param.annotation.annotation)
    return param.default is not None and m.matches(param.default, _LITERAL)


def _is_no_tensor(annotation: cst.BaseExpression) -> bool:
    if isinstance(annotation, cst.SimpleString):
        try:
            return _is_no_tensor(cst.parse_expression(str(annotation.raw_value)))
        except cst.ParserSyntaxError:
            return False
    if isinstance(annotation, cst.BinaryOperation):
        return _is_no_tensor(annotation.left) or _is_no_tensor(annotation.right)
    if isinstance(annotation, cst.Subscript):
        if _last_name(annotation.value) in _JOINS:
            inner = [one.slice.value for one in annotation.slice if isinstance(one.slice, cst.Index)]
            return any(_is_no_tensor(one) for one in inner)
        return _is_no_tensor(annotation.value)
    return _NO_TENSOR.fullmatch(_last_name(annotation)) is not None


def _last_name(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def _type_is_tested(node: cst.Name | cst.Attribute, function: cst.FunctionDef) -> bool:
    """Whether the function asks whether a value is one of several types."""
    asked = m.Call(m.Name("isinstance"), [m.Arg(_same(node)), m.Arg(m.Tuple())])
    return bool(findall(function, asked))


def _same(node: cst.Name | cst.Attribute) -> m.BaseMatcherNode:
    if isinstance(node, cst.Name):
        return m.Name(node.value)
    return m.Attribute(m.Name(cst.ensure_type(node.value, cst.Name).value), m.Name(node.attr.value))


def _is_rebound(node: cst.Name, function: cst.FunctionDef, around: Around) -> bool:
    """Whether every path to a name assigns it again."""
    inner: cst.CSTNode = node
    for above in around(node):
        if isinstance(above, cst.IndentedBlock):
            for one in above.body:
                if one is inner:
                    break
                if m.matches(one, m.SimpleStatementLine()) and findall(one, m.AssignTarget(m.Name(node.value))):
                    return True
        if above is function:
            return False
        inner = above
    return False


def _is_narrowed(node: cst.Name | cst.Attribute, around: Around) -> bool:
    """Whether a test of its type comes before a value, so that only some types reach it."""
    inner: cst.CSTNode = node
    for above in around(node):
        if isinstance(above, cst.If | cst.IfExp) and inner is not above.test and _asks_type(above.test, node):
            return True
        if isinstance(above, cst.BooleanOperation) and inner is above.right and _asks_type(above.left, node):
            return True
        if isinstance(above, cst.IndentedBlock):
            for one in above.body:
                if one is inner:
                    break
                if isinstance(one, cst.If) and _asks_type(one.test, node) and m.matches(one.body.body[-1], _EXITS):
                    return True
                if m.matches(one, m.SimpleStatementLine(body=[m.Assert()])) and _asks_type(_asserted(one), node):
                    return True
        if isinstance(above, cst.FunctionDef):
            return False
        inner = above
    return False


def _asserted(line: cst.CSTNode) -> cst.BaseExpression:
    return cst.ensure_type(cst.ensure_type(line, cst.SimpleStatementLine).body[0], cst.Assert).test


def _asks_type(test: cst.BaseExpression, node: cst.Name | cst.Attribute) -> bool:
    """Whether a test, or an operand of its ``and`` or ``or``, asks whether a value has one type."""
    if isinstance(test, cst.BooleanOperation):
        parts = test.left, test.right
        same = [one for one in parts if not isinstance(one, cst.BooleanOperation) or _alike(one, test)]
        return any(_asks_type(one, node) for one in same)
    if isinstance(test, cst.UnaryOperation):
        return not isinstance(test.expression, cst.BooleanOperation) and _asks_type(test.expression, node)
    of_one_class = m.Call(m.Name("isinstance"), [m.Arg(_same(node)), m.Arg(m.Name() | m.Attribute())])
    of_tensor = m.Call(m.Attribute(attr=m.Name("is_tensor")), [m.Arg(_same(node))])
    return m.matches(test, of_one_class | of_tensor)


def _alike(one: cst.BooleanOperation, other: cst.BooleanOperation) -> bool:
    return type(one.operator) is type(other.operator)


def _attribute_may(node: cst.Attribute, around: Around) -> bool:
    """Whether the file assigns an attribute a literal, or a parameter that need not be a tensor."""
    top = None
    for top in around(node):
        if isinstance(top, cst.ClassDef):
            break
    if top is None:
        return False
    for found in findall(top, m.Assign(targets=[m.AssignTarget(_same(node))])):
        value = cst.ensure_type(found, cst.Assign).value
        if m.matches(value, m.Name("True") | m.Name("False")):
            return True
        if isinstance(value, cst.Name) and _parameter_may(value, around):
            return True
    return False
