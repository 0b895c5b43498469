"""What stands at a recorded place in the user's source: its span, its function, the form of a branch."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from breakscan.findings import Place, Site
from breakscan.source.module import SourceProblem
from breakscan.source.remembered import source_text

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(slots=True)
class SourceMap:
    """Reads each file once.  A file that is gone, or is not Python, is a file of which nothing is known.

    ``show`` turns the recorded path into the one that reports show.  ``texts`` are lines as they were, by path and
    number: a file that has others there now is not the one that ran, and counts as gone.
    """

    show: Callable[[str], str]
    texts: Mapping[tuple[str, int], str] = field(default_factory=dict)
    _files: dict[str, _File | None] = field(default_factory=dict)

    def site(
        self,
        path: str,
        line: int,
        column: int | None = None,
        end_column: int | None = None,
        *,
        is_branch: bool = False,
    ) -> Site:
        """The span of the code there: that of the expression that starts at ``column``, else of the statement.

        Columns in UTF-8 bytes from 0, as CPython counts them; the site's are characters from 1.  For a branch
        within ``and`` or ``or`` it is the span of all operands: Python 3.11 gives some of them the place of others.
        """
        file = self._file(path)
        node = file.node_at(line, column, end_column, is_branch) if file else None
        if file is None or node is None:
            first = (column or 0) + 1
            return Site(self.show(path), line, first, line, max(first, end_column or 0) + 1)
        node = _test_of(node)
        return Site(self.show(path), *file.span(file.operation_around(node) if is_branch else node))

    def has(self, path: str) -> bool:
        """Whether the file that ran can be read."""
        return self._file(path) is not None

    def code(self, path: str, line: int, column: int | None = None, end_column: int | None = None) -> str:
        """The source of the statement around a place, of a compound one its head, and last that of the expression.
        Empty where it is not known."""
        file = self._file(path)
        node = file.node_at(line, column, end_column) if file else None
        return f"{file.statement(node)}\n{file.text(node)}" if file and node else self.texts.get((path, line), "")

    def line(self, path: str, line: int) -> str | None:
        """The text of a line, without the blanks around it; None where it is not known."""
        file = self._file(path)
        known = self.texts.get((path, line))
        return file.lines[line - 1].strip() if file and 1 <= line <= len(file.lines) else known

    def function(self, path: str, line: int) -> str | None:
        """The qualified name of the function around a line, or None at the top of a module."""
        file = self._file(path)
        return file.qualified_name(line) if file else None

    def form(self, path: str, line: int, column: int | None, end_column: int | None) -> str | None:
        """The form of the branch there, in the words of ``rulebook.events``; None where there is none."""
        file = self._file(path)
        node = file.node_at(line, column, end_column, is_branch=True) if file else None
        return _form(file, node) if file and node else None

    def places(self, path: str, line: int, column: int | None = None) -> frozenset[Place]:
        """What encloses the code there within its function."""
        file = self._file(path)
        node = file.node_at(line, column, None) if file else None
        found = set()
        for parent, child in file.parents(node) if file and node else ():
            if isinstance(parent, _FUNCTIONS):
                break
            if isinstance(parent, _LOOPS) and child is not getattr(parent, "iter", None):
                found.add(Place.LOOP)
            if isinstance(parent, ast.Try) and child not in parent.orelse:
                found.add(Place.TRY)
            if isinstance(parent, ast.With | ast.AsyncWith) and isinstance(child, ast.stmt):
                found.add(Place.WITH)
        return frozenset(found)

    def parameter(self, path: str, line: int, name: str) -> Site | None:
        """Where the function that starts at a line takes a parameter; None where it takes none of that name."""
        file = self._file(path)
        return (
            next(
                (
                    Site(self.show(path), *file.span(argument))
                    for function in file.functions_at(line)
                    for argument in _arguments(function)
                    if argument.arg == name
                ),
                None,
            )
            if file
            else None
        )

    def _file(self, path: str) -> _File | None:
        if path not in self._files:
            file = _read(path)
            self._files[path] = file if file and self._is_the_one_that_ran(file, path) else None
        return self._files[path]

    def _is_the_one_that_ran(self, file: _File, path: str) -> bool:
        known = ((line, text) for (of, line), text in self.texts.items() if of == path)
        return all(line <= len(file.lines) and file.lines[line - 1].strip() == text for line, text in known)


class _File:
    """The tree of a file, with what encloses what."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.tree = ast.parse(text)
        self._nodes = [node for node in ast.walk(self.tree) if isinstance(node, ast.expr | ast.stmt)]
        self._found: dict[tuple[int, int | None, int | None, bool], ast.expr | ast.stmt | None] = {}
        self._parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def node_at(
        self, line: int, column: int | None, end_column: int | None, is_branch: bool = False
    ) -> ast.expr | ast.stmt | None:
        """The outermost node that starts there and ends in that column, else the innermost around the place.

        Without a column the statement, or the test of the one branch that it holds, where a branch is meant.
        """
        key = line, column, end_column, is_branch
        if key not in self._found:
            self._found[key] = self._find(*key)
        return self._found[key]

    def _find(
        self, line: int, column: int | None, end_column: int | None, is_branch: bool
    ) -> ast.expr | ast.stmt | None:
        around = [node for node in self._nodes if node.lineno <= line <= (node.end_lineno or node.lineno)]
        if column is None:
            statement = max((n for n in around if isinstance(n, ast.stmt)), key=lambda n: n.lineno, default=None)
            tests = list(_inner_tests(statement)) if statement and is_branch else []
            return tests[0] if len(tests) == 1 else statement
        exact = [n for n in around if (n.lineno, n.col_offset, n.end_col_offset) == (line, column, end_column)]
        if exact:
            return exact[0]
        holding = [n for n in around if (n.lineno, n.col_offset) <= (line, column) <= (n.end_lineno, n.end_col_offset)]
        return holding[-1] if holding else None

    def parents(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Each enclosing node with the child that leads to the node, from the inside out."""
        while (parent := self._parents.get(node)) is not None:
            yield parent, node
            node = parent

    def statement(self, node: ast.expr | ast.stmt) -> str:
        """The source of the statement that a node stands in."""
        while not isinstance(node, ast.stmt) and (parent := self._parents.get(node)) is not None:
            node = parent  # type: ignore[assignment]
        return self.text(node)

    def text(self, node: ast.expr | ast.stmt) -> str:
        line, column, end_line, end_column = self.span(node)
        lines = self.lines[line - 1 : end_line]
        lines[-1] = lines[-1][: end_column - 1]
        return "\n".join([lines[0][column - 1 :], *lines[1:]])

    def operation_around(self, node: ast.expr | ast.stmt) -> ast.expr | ast.stmt:
        """The outermost ``and`` or ``or`` that the node is an operand of, else the node."""
        found = node
        for parent, _ in self.parents(node):
            if isinstance(parent, ast.BoolOp):
                found = parent
            elif not (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)):
                break
        return found

    def qualified_name(self, line: int) -> str | None:
        names: list[str] = []
        inside = False
        node: ast.AST = self.tree
        while scope := next((n for n in _scopes_within(node) if _first_line(n) <= line <= (n.end_lineno or 0)), None):
            names.append(scope.name)
            inside = inside or not isinstance(scope, ast.ClassDef)
            node = scope
        return ".".join(names) if inside else None

    def functions_at(self, line: int) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]:
        return [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, _FUNCTIONS) and line in (node.lineno, _first_line(node))
        ]

    def span(self, node: ast.expr | ast.stmt | ast.arg) -> tuple[int, int, int, int]:
        """Line, column, end line and end column; columns are characters from 1."""
        if isinstance(node, ast.stmt) and getattr(node, "body", None):
            return self._head_span(node)
        end_line = node.end_lineno or node.lineno
        end_column = node.end_col_offset if node.end_col_offset is not None else node.col_offset + 1
        return (
            node.lineno,
            self._column(node.lineno, node.col_offset),
            end_line,
            self._column(end_line, end_column),
        )

    def _head_span(self, node: ast.stmt) -> tuple[int, int, int, int]:
        """Of a compound statement all up to the colon; of a definition the whole line that it ends in."""
        blocks = [block for name in ("body", "orelse", "finalbody", "handlers") for block in getattr(node, name, ())]
        heads = [child for child in ast.iter_child_nodes(node) if child not in blocks]
        parts = [part for head in heads for part in ast.walk(head) if isinstance(part, ast.expr | ast.arg)]
        end = max(((p.end_lineno or 0, p.end_col_offset or 0) for p in parts), default=(0, 0))
        end_line = max(end[0], node.lineno)
        is_definition = isinstance(node, _SCOPES) or end[0] < node.lineno
        end_column = len(self.lines[end_line - 1].rstrip()) + 1 if is_definition else self._column(end_line, end[1])
        return node.lineno, self._column(node.lineno, node.col_offset), end_line, end_column

    def _column(self, line: int, offset: int) -> int:
        return len(self.lines[line - 1].encode()[:offset].decode(errors="replace")) + 1


def _read(path: str) -> _File | None:
    try:
        return _File(source_text(path))
    except (OSError, SourceProblem, SyntaxError, ValueError, RecursionError):
        return None


def _scopes_within(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """The functions and classes right below a node, however deep in statements."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _SCOPES):
            yield child
        else:
            yield from _scopes_within(child)


def _first_line(node: ast.expr | ast.stmt) -> int:
    """That of the first decorator, as code objects have it."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    taken = function.args
    rest = [argument for argument in (taken.vararg, taken.kwarg) if argument]
    return [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, *rest]


def _inner_tests(statement: ast.stmt) -> Iterator[ast.expr]:
    """What a statement that is no branch itself branches on within."""
    if isinstance(statement, ast.If | ast.While | ast.Assert) or getattr(statement, "body", None):
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.IfExp):
            yield node.test
        elif isinstance(node, ast.BoolOp):
            yield node
        elif isinstance(node, ast.comprehension):
            yield from node.ifs


def _test_of(node: ast.expr | ast.stmt) -> ast.expr | ast.stmt:
    """A jump carries the place of its whole statement: what matters is the test."""
    return node.test if isinstance(node, ast.If | ast.While | ast.Assert) else node


def _form(file: _File, node: ast.expr | ast.stmt) -> str | None:
    if isinstance(node, ast.If | ast.While | ast.Assert):
        if isinstance(node.test, ast.BoolOp) and not isinstance(node, ast.Assert):
            return _word(node.test)
        return _form_of_test(node)
    if isinstance(node, ast.BoolOp):
        return _word(node)
    if isinstance(node, ast.IfExp):
        return "ternary"
    if isinstance(node, ast.Call) and any(isinstance(a, ast.GeneratorExp) and a.generators[0].ifs for a in node.args):
        return "filter"  # Dynamo places it at the call that draws from the generator
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        # `a < x < b` asks for the truth of `a < x` first.
        asserted = next((p for p, child in file.parents(node) if isinstance(p, ast.Assert) and child is p.test), None)
        return "and" if asserted is None else _form_of_test(asserted)
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        return "in"
    within: ast.expr | ast.stmt = node
    for parent, child in file.parents(node):
        if isinstance(parent, ast.BoolOp):
            return _word(parent)
        if isinstance(parent, ast.If | ast.While | ast.Assert | ast.IfExp) and child is parent.test:
            return _form_of_test(parent)
        if isinstance(parent, ast.comprehension):
            return "filter" if child in parent.ifs else None
        if not (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)):
            break
        within = parent
    if isinstance(within, ast.UnaryOp) and isinstance(within.op, ast.Not):
        return "not"
    return None


def _word(node: ast.BoolOp) -> str:
    return "and" if isinstance(node.op, ast.And) else "or"


def _form_of_test(node: ast.If | ast.While | ast.Assert | ast.IfExp) -> str:
    if isinstance(node, ast.While):
        return "while"
    if isinstance(node, ast.IfExp):
        return "ternary"
    if isinstance(node, ast.Assert):
        return "assert-message" if _has_formatted_message(node) else "assert"
    only_raises = not node.orelse and isinstance(node.body[-1], ast.Raise) and len(node.body) <= 2
    return "guard" if only_raises else "if"


def _has_formatted_message(node: ast.stmt) -> bool:
    """Whether an assert's message is more than a constant text."""
    if not isinstance(node, ast.Assert) or node.msg is None:
        return False
    return not (isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str))
