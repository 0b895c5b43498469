"""The code of a change that ran and that did not, and the tests of the old text that it has replaced."""

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Set
from dataclasses import dataclass
from enum import Enum

from breakscan.fix.source_map import SourceMap
from breakscan.prove.protocol import RanCode, span_of
from breakscan.source.spans import Outline
from breakscan.source.walking import asks_for_compiling, tested_expressions

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OPTIONS = ("mode", "dynamic", "fullgraph", "disable", "isolate_recompiles")


class UnseenKind(str, Enum):
    """A part of a change that no call has shown."""

    OUTCOME = "outcome"
    """An outcome of a test that it replaces."""
    REPLACED = "replaced"
    """Code that it replaces or takes away did not run."""
    NEW = "new"
    """New code did not run."""
    DEFAULT = "default"
    """No call left out the argument."""
    OUTSIDE = "outside"
    """Something that is set up or read outside of the calls is another one, as ``code`` says."""


@dataclass(frozen=True, slots=True)
class UnseenCode:
    """Code of a change of which nothing is proved: ``line`` is in the new text where the code is new.  ``outcomes`` are
    those of a test that no call had."""

    kind: UnseenKind
    path: str
    line: int
    code: str
    outcomes: tuple[bool, ...] = ()


def changed_code_ran(after: str, lines: SourceMap, executed: Collection[int]) -> bool | None:
    """Return True if any changed statement of a new text ran, or none is in a function, so that it could run during a
    call; None if no statement has changed. ``lines`` says where the lines come from. Raises SyntaxError."""
    changed = _innermost(ast.parse(after), lines.changed_lines())
    if not changed:
        return None
    return any(span.ran_in(executed) for span in changed) or not any(span.in_function for span in changed)


def lines_around(after: str, changed: Set[int], executed: Collection[int]) -> set[int]:
    """The changed lines of a new text in the functions, and at the top level, of which other lines are executed."""
    outline = Outline(ast.parse(after))
    nodes = {line: getattr(outline.function_at(line), "node", None) for line in {*changed, *executed}}
    # The line of a definition runs where the function does not.
    began = {nodes[line] for line in executed if (node := nodes[line]) is None or line >= node.body[0].lineno}
    return {line for line in changed if nodes[line] in began}


def _innermost(tree: ast.AST, changed: Set[int]) -> "list[_Span]":
    """The statements of which a line has changed.  Of two nested ones, the inner one counts."""
    spans = [span for span in _spans(tree) if not changed.isdisjoint(range(span.first, span.last + 1))]
    return [span for span in spans if not any(other is not span and span.holds(other) for other in spans)]


def unrun(kind: UnseenKind, path: str, text: str, other: str, changed: Set[int], ran: RanCode) -> list[UnseenCode]:
    """The statements, arms, bodies and defaults on the ``changed`` lines of one text that did not run, except for
    statements that are in the other text, too, or that depend on a test of whether the code is being compiled."""
    tree, others = ast.parse(text), ast.parse(other)
    known = {span.code for span in _spans(others)}
    found = [
        (span.first, text.split("\n")[span.first - 1].strip())
        for span in _innermost(tree, changed)
        if not span.compiler_only and span.code not in known and not span.ran_in(ran.lines)
    ]
    missing = {line for line, _ in found}
    parts = {ast.dump(part) for part in _parts(_parsed(other))}
    for part in _parts(_parsed(text)):
        # A statement that did not run is named as a whole.
        is_new = part.lineno in changed and part.lineno not in missing and ast.dump(part) not in parts
        around = span_of(part)
        is_run = any(around[:2] <= one[:2] and one[2:] <= around[2:] for one in ran.expressions)
        if is_new and ran.expressions and not is_run:
            found.append((part.lineno, ast.unparse(part)))
    unseen = [UnseenCode(kind, path, line, code) for line, code in dict(found).items()]
    if kind is UnseenKind.REPLACED:
        return unseen
    defaults = {ast.dump(one) for *_, one in _defaults(others)}
    for function, name, value in _defaults(tree):
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        is_new = value.lineno in changed and ast.dump(value) not in defaults
        if is_new and f"{first} {name} {ast.unparse(value)}" not in ran.arguments:
            code = f"{name}={ast.unparse(value)}"
            unseen.append(UnseenCode(UnseenKind.DEFAULT, path, value.lineno, code))
    return unseen


def _parts(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions that need not run where their statement does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            yield node.body
        elif isinstance(node, ast.IfExp):
            yield from (node.body, node.orelse)
        elif isinstance(node, ast.BoolOp):
            yield from node.values[1:]
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            yield node.elt
        elif isinstance(node, ast.DictComp):
            yield node.value


def _defaults(tree: ast.AST) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str, ast.expr]]:
    """The functions with defaults, their parameters, and the defaults."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            positional = [*node.args.posonlyargs, *node.args.args]
            given = [
                *zip(reversed(positional), reversed(node.args.defaults), strict=False),
                *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
            ]
            yield from ((node, one.arg, value) for one, value in given if value is not None)


def set_elsewhere(text: str) -> set[str]:
    """The names of attributes that a text sets outside of ``__init__`` and classes, and of variables set repeatedly."""
    tree = ast.parse(text)
    inits = [one for one in ast.walk(tree) if isinstance(one, FUNCTIONS) and one.name == "__init__"]
    first = {id(node) for one in inits for node in ast.walk(one)}
    stored = [
        node for node in ast.walk(tree) if isinstance(getattr(node, "ctx", None), ast.Store) and id(node) not in first
    ]
    names = Counter(node.id for node in stored if isinstance(node, ast.Name))
    return {node.attr for node in stored if isinstance(node, ast.Attribute)} | {one for one in names if names[one] > 1}


@dataclass(frozen=True, slots=True)
class _Span:
    """The lines of a statement's own text. Executed lines up to ``proof`` show that it ran. ``code`` is the same for
    statements that differ only in their place and in comments."""

    first: int
    last: int
    proof: int
    in_function: bool
    compiler_only: bool
    code: str

    def ran_in(self, executed: Collection[int]) -> bool:
        return not set(executed).isdisjoint(range(self.first, self.proof + 1))

    def holds(self, other: "_Span") -> bool:
        mine, its = (self.first, self.last), (other.first, other.last)
        return mine != its and mine[0] <= its[0] and its[1] <= mine[1]


def _spans(node: ast.AST, in_function: bool = False, compiler_only: bool = False) -> Iterator[_Span]:
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, FUNCTIONS)
        is_text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if isinstance(child, ast.stmt) and not is_text:
            yield _Span(*_lines(child), in_function or is_function, compiler_only, ast.dump(child))
        asks = isinstance(child, ast.If) and asks_for_compiling(child.test)
        yield from _spans(child, in_function or is_function, compiler_only or asks)


def _lines(statement: ast.stmt) -> tuple[int, int, int]:
    last = statement.end_lineno or statement.lineno
    if isinstance(statement, FUNCTIONS):
        # Decorators and the signature take effect when the body runs.
        first = min([statement.lineno, *(one.lineno for one in statement.decorator_list)])
        return first, statement.body[0].lineno - 1, last
    body = getattr(statement, "body", None)
    if body:
        head = max(statement.lineno, body[0].lineno - 1)
        return statement.lineno, head, head
    return statement.lineno, last, last


def replaced_tests(before: str, after: str, lines: SourceMap) -> list[ast.expr]:
    """Returns the tested expressions of the old text of which a line has changed, and those of functions in which code
    has moved, in source order. ``lines`` says where the lines of the new text come from. Raises SyntaxError. A test of
    whether code is being compiled is not among them: the compiler decides its outcome; nor is one that only decides how
    something is compiled."""
    old, new = before.split("\n"), after.split("\n")
    tree = _parsed(before)
    places = {origin + 1: at + 1 for at, origin in enumerate(lines.origins) if old[origin].strip() == new[at].strip()}
    # A line that both texts have once may have moved farther.
    was, now = ([line.strip() for line in text] for text in (old, new))
    once = {line for line, count in Counter(was).items() if line and count == 1 == now.count(line)}
    places |= {at: now.index(line) + 1 for at, line in enumerate(was, 1) if line in once}
    outlines = Outline(tree), Outline(ast.parse(after))

    def functions(line: int) -> list[str]:
        found = [outline.function_at(at) for outline, at in zip(outlines, (line, places[line]), strict=True)]
        return [one.qualname if one else "" for one in found]

    def is_replaced(test: ast.expr) -> bool:
        if not places.keys() >= set(range(test.lineno, (test.end_lineno or test.lineno) + 1)):
            return True
        here, place = functions(test.lineno), places[test.lineno]
        across = (line for line, at in places.items() if old[line - 1].strip() and (line < test.lineno) != (at < place))
        return bool(here[0]) and any(line != test.lineno and functions(line) == here for line in across)

    nodes = [one.node for one in tested_expressions(tree)]
    found = [node for node in nodes if not asks_for_compiling(node) and is_replaced(node)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _parsed(text: str) -> ast.Module:
    """The tree of a text without the options of ``torch.compile`` with which a program computes the same."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("compile"):
            node.keywords = [one for one in node.keywords if one.arg not in _OPTIONS]
    return tree


def statement_around(text: str, test: ast.expr) -> range:
    """Returns the lines of the innermost statement of a text around a tested expression of it."""
    statements = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt))
    *_, inner = (one for one in statements if one.lineno <= test.lineno <= (one.end_lineno or one.lineno))
    return range(inner.lineno, (inner.end_lineno or inner.lineno) + 1)
