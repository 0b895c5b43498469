"""Walks an ast: all nodes, those of one function, the blocks of a statement, the names that it binds or reads."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Loop = ast.For | ast.AsyncFor | ast.While


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """As :func:`ast.walk` without operators and contexts, in another order and five times as fast."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if current.__class__ not in _LEAVES:
            push_children(stack, current)


def own_nodes(node: FunctionNode | ast.Module) -> list[ast.AST]:
    """All nodes of the body of a function or file, without the bodies of functions and classes in it."""
    stack: list[ast.AST] = list(node.body) if isinstance(node.body, list) else [node.body]
    found = []
    while stack:
        current = stack.pop()
        found.append(current)
        if current.__class__ not in _CLOSED:
            push_children(stack, current)
    return found


def blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists inside an ``if``, ``try``, ``with`` or loop."""
    parts = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
    found = [part for part in parts if isinstance(part, list)]
    found.extend(handler.body for handler in getattr(node, "handlers", []))
    found.extend(case.body for case in getattr(node, "cases", []))
    return found


def stored_names(node: ast.AST) -> Iterator[str]:
    """The names that a node binds: by assignment, as a loop's target, in a ``with`` line, in a comprehension."""
    for part in walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id


def form_of_test(node: ast.If | ast.While | ast.Assert | ast.IfExp) -> str:
    """The form of the branch that a node makes of its test, as ``rulebook.events`` names it: ``guard`` for an ``if``
    that does nothing but raise."""
    if isinstance(node, ast.While):
        return "while"
    if isinstance(node, ast.IfExp):
        return "ternary"
    if isinstance(node, ast.Assert):
        is_plain = node.msg is None or (isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str))
        return "assert" if is_plain else "assert-message"
    only_raises = not node.orelse and isinstance(node.body[-1], ast.Raise) and len(node.body) <= 2
    return "guard" if only_raises else "if"


def reads(node: ast.AST, name: str) -> bool:
    """True if a name is read anywhere in a node."""
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in walk(node))


def root_of(node: ast.AST) -> str | None:
    """The name that an expression begins with: ``x`` of ``x.a[0].b()``."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def is_name(node: ast.AST | None, name: str | None) -> bool:
    """True if a node is this name, in any context."""
    return isinstance(node, ast.Name) and node.id == name


_NO_NODES = frozenset(
    "arg asname attr conversion ctx is_async level lineno module name op ops rest simple str type_comment".split()
)
_LEAVES: frozenset[type[ast.AST]] = frozenset({ast.Constant, ast.MatchSingleton, ast.Name, ast.Pass})
_CLOSED = _LEAVES | {ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef}
_HOLD_OTHERS = frozenset({ast.arguments, ast.Dict, ast.Global, ast.Nonlocal, ast.MatchMapping, ast.MatchClass})
"""Their lists hold None or names as well."""
_CHILDREN: dict[type[ast.AST], tuple[str, ...]] = dict.fromkeys(_LEAVES, ())


def push_children(stack: list[ast.AST], node: ast.AST) -> None:
    """Adds the children of a node, without operators and contexts."""
    kind, held = node.__class__, node.__dict__
    fields = _CHILDREN.get(kind)
    if fields is None:
        fields = _CHILDREN[kind] = tuple(name for name in kind._fields if name not in _NO_NODES)
    for name in fields:
        child = held.get(name)
        if child.__class__ is list:
            if child:
                stack += [item for item in child if isinstance(item, ast.AST)] if kind in _HOLD_OTHERS else child
        elif child is not None:
            stack.append(child)


@dataclass(frozen=True, slots=True)
class Tested:
    """A tested expression. ``keeps_value`` says that its value is used, too: that of ``a`` in ``x = a or b``."""

    node: ast.expr
    keeps_value: bool


def tested_expressions(tree: ast.AST) -> Iterator[Tested]:
    """The tested expressions of ``if``, ``elif``, ``while``, ``assert``, ternaries, ``and``, ``or``, comprehensions and
    guards of ``case``.

    An ``and``, ``or`` or ``not`` that is tested counts as its operands: each of them decides. Constants do not count.
    """
    operands: set[int] = set()
    for node in walk(tree):
        for test in _tests(node):
            yield from _deciding(test, operands)
    for node in walk(tree):
        if isinstance(node, ast.BoolOp) and id(node) not in operands:
            # The last operand is only a value.
            yield from (Tested(value, True) for value in node.values[:-1] if _is_open(value))


def asks_for_compiling(test: ast.AST) -> bool:
    """True if a test, or any other code, asks if it is being compiled: the compiler decides its outcome."""
    names = (node for node in walk(test) if isinstance(node, ast.Attribute | ast.Name))
    return any(ast.unparse(name).endswith("_compiling") for name in names)


def _tests(node: ast.AST) -> list[ast.expr]:
    """The expressions that a node itself tests."""
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        return [node.test]
    if isinstance(node, ast.comprehension):
        return node.ifs
    return [node.guard] if isinstance(node, ast.match_case) and node.guard is not None else []


def _deciding(test: ast.expr, operands: set[int]) -> Iterator[Tested]:
    """The expressions that decide a test. ``operands`` receives the ``and`` and ``or`` that are looked into."""
    if isinstance(test, ast.BoolOp):
        operands.add(id(test))
        for value in test.values:
            yield from _deciding(value, operands)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _deciding(test.operand, operands)
    elif _is_open(test):
        yield Tested(test, False)


def _is_open(test: ast.expr) -> bool:
    """True if the outcome is not fixed: that of a constant is, and the compiler of Python uses it."""
    return not isinstance(test, ast.Constant) and not (isinstance(test, ast.Name) and test.id == "__debug__")
