"""The code at a recorded position in the user's source: its span, its function, the form of a branch."""

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from breakscan.model.findings import Place, Site
from breakscan.model.words import grouped
from breakscan.recording.records import StackFrame
from breakscan.rulebook.document import Rule
from breakscan.rulebook.remedies import remedies_at
from breakscan.source.module import SourceModule, SourceProblem, parse_module
from breakscan.source.source_files import SourceFiles
from breakscan.source.spans import Outline, head_span, span, without_locals
from breakscan.source.walking import form_of_test

Node = ast.expr | ast.stmt
Parents = Callable[[ast.AST], Iterator[tuple[ast.AST, ast.AST]]]  # enclosing nodes, with the child, inside out


def inner_tests(statement: ast.stmt) -> Iterator[ast.expr]:
    """The tests inside a statement that is not a branch itself."""
    if isinstance(statement, ast.If | ast.While | ast.Assert) or getattr(statement, "body", None):
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.IfExp):
            yield node.test
        elif isinstance(node, ast.BoolOp):
            yield node
        elif isinstance(node, ast.comprehension):
            yield from node.ifs


def _form_of_node(node: Node, parents: Parents) -> str | None:
    """The form, where the node itself shows it."""
    if isinstance(node, ast.If | ast.While | ast.Assert):
        if isinstance(node.test, ast.BoolOp) and not isinstance(node, ast.Assert):
            return _word(node.test)
        return form_of_test(node)
    if isinstance(node, ast.BoolOp):
        return _word(node)
    if isinstance(node, ast.IfExp):
        return "ternary"
    if isinstance(node, ast.Call) and any(isinstance(a, ast.GeneratorExp) and a.generators[0].ifs for a in node.args):
        return "filter"  # Dynamo places it at the call that draws from the generator
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        # Python tests the truth of `a < x` first in `a < x < b`.
        asserted = next((p for p, child in parents(node) if isinstance(p, ast.Assert) and child is p.test), None)
        return "and" if asserted is None else form_of_test(asserted)
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        return "in"
    return None


def _form_around(node: Node, parents: Parents) -> str | None:
    """The form, where what encloses an operand shows it."""
    within: ast.AST = node
    for parent, child in parents(node):
        if isinstance(parent, ast.BoolOp):
            return _word(parent)
        if isinstance(parent, ast.If | ast.While | ast.Assert | ast.IfExp) and child is parent.test:
            return form_of_test(parent)
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


_ADDING = ("append", "appendleft", "extend", "insert", "add")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(slots=True)
class UserSource:
    """Parses each file once.  Nothing is known of a file that may not be read or is not Python.  ``show`` turns the
    recorded path into the path that reports show."""

    show: Callable[[str], str]
    files: SourceFiles
    _files: "dict[str, _File | None]" = field(default_factory=dict)

    def site(
        self, path: str, line: int, column: int | None = None, end_column: int | None = None, *, is_branch: bool = False
    ) -> Site:
        """The span of the code there: that of the expression that starts at ``column``, else of the statement.  Columns
        in UTF-8 bytes from 0, as CPython counts them; the site's are characters from 1.  For a branch within ``and`` or
        ``or`` it is the span of all operands: Python 3.11 gives some of them the place of others."""
        file, node = self._node(path, line, column, end_column, is_branch=is_branch)
        if file is None or node is None:
            first = (column or 0) + 1
            return Site(self.show(path), line, first, line, max(first, end_column or 0) + 1)
        # Dynamo places a jump at its whole statement.
        node = node.test if isinstance(node, ast.If | ast.While | ast.Assert) else node
        return Site(self.show(path), *file.span(file.operation_around(node) if is_branch else node))

    def code(self, path: str, line: int, column: int | None = None, end_column: int | None = None) -> str:
        """The source of the statement around a position (or its head), then of the expression; empty where unknown."""
        file, node = self._node(path, line, column, end_column)
        if file and node:
            return f"{file.statement(node)}\n{file.text(node)}"
        return self.files.known_line(path, line) or ""

    def line(self, path: str, line: int) -> str | None:
        """The text of a line, stripped; None if it is not known."""
        file = self._file(path)
        if file and 1 <= line <= len(file.module.lines):
            return file.module.lines[line - 1].strip()
        return self.files.known_line(path, line)

    def function(self, path: str, line: int) -> str | None:
        """The qualified name of the function around a line, or None at the top of a module."""
        file = self._file(path)
        scope = file.outline.function_at(line) if file else None
        return without_locals(scope.qualname) if scope else None

    def form(self, path: str, line: int, column: int | None, end_column: int | None) -> str | None:
        """The form of the branch there, as ``rulebook.events`` names it; None if there is no branch."""
        file, node = self._node(path, line, column, end_column, is_branch=True)
        return _form_of_node(node, file.parents) or _form_around(node, file.parents) if file and node else None

    def places(self, path: str, line: int, column: int | None = None) -> frozenset[Place]:
        """The statements that enclose the code there within its function."""
        found = set()
        for parent, child in self._around(*self._node(path, line, column)):
            if isinstance(parent, _FUNCTIONS):
                break
            if isinstance(parent, _LOOPS) and child is not getattr(parent, "iter", None):
                found.add(Place.LOOP)
            if isinstance(parent, ast.Try) and child not in parent.orelse:
                found.add(Place.TRY)
            if isinstance(parent, ast.With | ast.AsyncWith) and isinstance(child, ast.stmt):
                found.add(Place.WITH)
        return frozenset(found)

    def remedies_at(self, rule: Rule, path: str, site: Site, *, returns: bool) -> tuple[str, ...]:
        """As the function of that name, for a site of a file by its recorded path."""
        file = self._file(path)
        return remedies_at(rule, file.module, site, returns=returns) if file else ()

    def defined_at(self, path: str, name: str) -> int | None:
        """The line of the only function of that qualified name in a file."""
        scopes = file.outline.scopes if (file := self._file(path)) else ()
        lines = [one.node.lineno for one in scopes if without_locals(one.qualname) == name]
        return lines[0] if len(lines) == 1 else None

    def keeps(self, path: str, line: int) -> bool:
        """Return whether the function that starts at a line adds to what an attribute holds, or changes one."""
        nodes = self._function_nodes(path, line)
        called = (one.func for one in nodes if isinstance(one, ast.Call))
        added = (one.value for one in called if isinstance(one, ast.Attribute) and one.attr in _ADDING)
        changed = (one.target for one in nodes if isinstance(one, ast.AugAssign))
        return any(isinstance(one, ast.Attribute) for one in (*added, *changed))

    def _function_nodes(self, path: str, line: int) -> list[ast.AST]:
        file = self._file(path)
        return [node for one in (file.outline.functions_from(line) if file else ()) for node in ast.walk(one)]

    def is_whole_body(self, at: StackFrame) -> bool:
        """Return whether the expression there is all that its function does."""
        parents = (parent for parent, _ in self._around(*self._node(at.path, at.line, at.column, at.end_column)))
        around = next((parent for parent in parents if not isinstance(parent, ast.Expr)), None)
        return isinstance(around, ast.Lambda) or (isinstance(around, ast.FunctionDef) and len(around.body) == 1)

    def loop_over(self, path: str, line: int, names: Collection[str]) -> int | None:
        """The line of a ``for`` loop over a range of one of the names, in the function that starts at a line."""
        nodes = self._function_nodes(path, line)
        loops = (one for one in nodes if isinstance(one, ast.For) and _calls(one.iter, ("range",)))
        inner = ((one, part) for one in loops for part in ast.walk(one.iter))
        return next((one.lineno for one, part in inner if isinstance(part, ast.Name) and part.id in names), None)

    def selected(self, path: str, line: int, number: str) -> tuple[str, str] | None:
        """The index at a line that has a number next to others, as ``x[:, n]``, and what takes it by ``select``."""
        file = self._file(path)
        nodes = file.at(line) if file else ()
        found = ((one, with_select(one, number)) for one in nodes if isinstance(one, ast.Subscript))
        return next(((ast.unparse(one), made) for one, made in found if made), None)

    def switch(self, path: str, line: int, names: Sequence[str]) -> int | None:
        """The line of the innermost ``with`` or decorator around a line that is one of these calls, else of the last of
        them before it in the same function.  A name means it with any arguments."""
        file, node = self._node(path, line)
        for parent in (node, *(parent for parent, _ in self._around(file, node))):
            entered = [item.context_expr for item in getattr(parent, "items", ())]
            body = getattr(parent, "body", None)
            lines = [one for one in body if one.lineno < line] if isinstance(body, list) else []
            before = [one.value for one in reversed(lines) if isinstance(one, ast.Expr)]
            around: list[ast.expr] = [*entered, *getattr(parent, "decorator_list", ()), *before]
            if found := next((one.lineno for one in around if _calls(one, names)), None):
                return found
        return None

    def only_call(self, path: str, names: Sequence[str]) -> int | None:
        """The line of the call of one of these functions, if the file has a single one."""
        file = self._file(path)
        nodes = ast.walk(file.module.tree) if file and names else ()
        lines = [node.lineno for node in nodes if isinstance(node, ast.Call) and _calls(node, names)]
        return lines[0] if len(lines) == 1 else None

    def stored(self, path: str, attribute: str) -> tuple[int, bool] | None:
        """The line that sets an attribute of that name, in ``__init__`` if any there does; and whether it keeps a value
        there until what it is for changes: in an ``if`` that compares what is set there with something else."""
        file = self._file(path)
        nodes = (node for node in ast.walk(file.module.tree) if isinstance(node, ast.Attribute)) if file else ()
        places = []
        for node in nodes:
            if node.attr == attribute and isinstance(node.ctx, ast.Store) and file:
                parents = [(parent, child) for parent, child in file.parents(node)]
                function = next((parent for parent, _ in parents if isinstance(parent, _FUNCTIONS)), None)
                around = (parent for parent, child in parents if isinstance(parent, ast.If) and child in parent.body)
                is_kept = any(_compares_own(one) for one in around)
                places.append((not is_kept, getattr(function, "name", "") != "__init__", node.lineno))
        return (min(places)[2], not min(places)[0]) if places else None

    def calls_parameter(self, path: str, line: int) -> bool:
        """Return whether the statement at a line calls what its function was given as an argument."""
        calls = self._calls(path, line)
        around = [one for one, _ in self._around(*self._node(path, line)) if isinstance(one, _FUNCTIONS)]
        given = {argument.arg for function in around for argument in _arguments(function)}
        return any(isinstance(one.func, ast.Name) and one.func.id in given for one in calls)

    def passes_on(self, path: str, line: int) -> bool:
        """Return whether the statement at a line passes on the ``*args`` of its function."""
        functions = (one for one, _ in self._around(*self._node(path, line)) if isinstance(one, _FUNCTIONS))
        rest = getattr(getattr(next(functions, None), "args", None), "vararg", None)
        parts = (part.value for call in self._calls(path, line) for part in call.args if isinstance(part, ast.Starred))
        return rest is not None and any(isinstance(one, ast.Name) and one.id == rest.arg for one in parts)

    def compares(self, path: str, line: int) -> bool:
        """Return whether the statement at a line compares what two functions return for the same arguments."""
        _, node = self._node(path, line)
        for one in ast.walk(node) if node else ():
            match one:
                case (
                    ast.BinOp(left=ast.Call(func=f, args=first), op=ast.Sub(), right=ast.Call(func=g, args=second))
                    | ast.Call(args=[ast.Call(func=f, args=first), ast.Call(func=g, args=second), *_])
                ) if first and ast.unparse(f) != ast.unparse(g):
                    return [*map(ast.unparse, first)] == [*map(ast.unparse, second)]
        return False

    def called(self, path: str, line: int) -> str | None:
        """The expression that the statement at a line calls, if it is the only one besides functions of torch."""
        called = [text for one in self._calls(path, line) if not (text := ast.unparse(one.func)).startswith("torch.")]
        return called[0] if len(called) == 1 else None

    def _calls(self, path: str, line: int) -> list[ast.Call]:
        _, node = self._node(path, line)
        return [one for one in ast.walk(node) if isinstance(one, ast.Call)] if node else []

    def keyword(self, at: StackFrame, name: str) -> str | None:
        """The keyword argument of that name in a call, if it is computed."""
        _, node = self._node(at.path, at.line, at.column, at.end_column)
        given = (one for one in ast.walk(node) if isinstance(one, ast.keyword) and one.arg == name) if node else ()
        return next((ast.unparse(one.value) for one in given if isinstance(one.value, ast.Compare)), None)

    def passed(self, call: StackFrame, path: str, line: int, parameter: str) -> str | None:
        """The name or attribute that a call passes for a parameter of the function that starts at a line of a file."""
        callee = self._file(path)
        function = next(iter(callee.outline.functions_from(line)), None) if callee else None
        caller = self._file(call.path)
        if caller is None or function is None:
            return None
        names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        names = names[1:] if names[:1] == ["self"] else names
        calls = [one for one in caller.at(call.line) if isinstance(one, ast.Call) and (one.args or one.keywords)]
        calls = [one for one in calls if not ast.unparse(one.func).startswith("torch.")]
        # The call goes by the name of the function, or is the only one: not that of a method of what another returned.
        named = [one for one in calls if ast.unparse(one.func).rpartition(".")[2] == getattr(function, "name", None)]
        others = [one for one in calls if not isinstance(getattr(one.func, "value", None), ast.Call)]
        calls = named[:1] or (others if len(others) == 1 else [])
        given = [
            *(value for made in calls for name, value in zip(names, made.args, strict=False) if name == parameter),
            *(keyword.value for made in calls for keyword in made.keywords if keyword.arg == parameter),
        ]
        return next((ast.unparse(one) for one in given if isinstance(one, ast.Name | ast.Attribute)), None)

    def loop(self, path: str, line: int) -> Site | None:
        """The head of the innermost ``for`` or ``while`` statement of the same function around the code at a line."""
        file, node = self._node(path, line)
        for parent, child in self._around(file, node):
            if isinstance(parent, _FUNCTIONS):
                return None
            if file and isinstance(parent, ast.For | ast.While) and child in parent.body:
                return Site(self.show(path), *file.span(parent))
        return None

    def parameter(self, path: str, line: int, name: str) -> Site | None:
        """The site of a parameter of the function that starts at a line; None if it has no parameter of that name."""
        file = self._file(path)
        functions = file.outline.functions_from(line) if file else ()
        named = (one for function in functions for one in _arguments(function) if one.arg == name)
        return next((Site(self.show(path), *span(file.module, one)) for one in named if file), None)

    def _node(
        self, path: str, line: int, column: int | None = None, end_column: int | None = None, is_branch: bool = False
    ) -> "tuple[_File | None, Node | None]":
        """The file, and the node as of :meth:`_File.node_at`."""
        file = self._file(path)
        return file, file.node_at(line, column, end_column, is_branch) if file else None

    def _around(self, file: "_File | None", node: ast.AST | None) -> Iterable[tuple[ast.AST, ast.AST]]:
        return file.parents(node) if file and node else ()

    def _file(self, path: str) -> "_File | None":
        if path not in self._files:
            text = self.files.text(path)
            self._files[path] = None
            with suppress(SourceProblem, RecursionError):
                self._files[path] = None if text is None else _File(parse_module(text, Path(path), path))
        return self._files[path]


class _File:
    """A file with its outline and the parents of its nodes."""

    def __init__(self, module: SourceModule) -> None:
        self.module = module
        self.outline = Outline(module.tree)
        nodes = [node for node in ast.walk(self.module.tree) if isinstance(node, Node)]
        lines = ((line, one) for one in nodes for line in range(one.lineno, (one.end_lineno or one.lineno) + 1))
        self._on_line = grouped(lines)
        self._decorators = {
            line
            for scope in self.outline.scopes
            if not isinstance(scope.node, ast.Lambda)
            for line in range(scope.first_line, scope.node.lineno)
        }
        self._parents = {child: node for node in ast.walk(self.module.tree) for child in ast.iter_child_nodes(node)}

    def at(self, line: int) -> Sequence[Node]:
        """The nodes at a line."""
        return self._on_line.get(line, ())

    def node_at(self, line: int, column: int | None, end_column: int | None, is_branch: bool) -> Node | None:
        """The outermost node that starts there and ends in that column, else the innermost around the position.
        Without a column it is the statement, or, if a branch is wanted, the test of the only branch in it."""
        around = self.at(line)
        if column is None:
            if line in self._decorators:
                return None  # where a function begins, as in ``co_firstlineno``: not a part of what is around it
            statement = max((n for n in around if isinstance(n, ast.stmt)), key=lambda n: n.lineno, default=None)
            tests = list(inner_tests(statement)) if statement and is_branch else []
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

    def statement(self, node: Node) -> str:
        while not isinstance(node, ast.stmt) and (parent := self._parents.get(node)) is not None:
            node = parent  # type: ignore[assignment]
        return self.text(node)

    def text(self, node: Node) -> str:
        """The source of a node, of a compound statement that of its head."""
        return self.module.segment(Site(self.module.display, *self.span(node)))

    def span(self, node: Node) -> tuple[int, int, int, int]:
        """Line, column, end line and end column, of a compound statement those of its head."""
        return head_span(self.module, node) if isinstance(node, ast.stmt) else span(self.module, node)

    def operation_around(self, node: Node) -> Node:
        """The outermost ``and`` or ``or`` that the node is an operand of, else the node."""
        found = node
        for parent, _ in self.parents(node):
            if isinstance(parent, ast.BoolOp):
                found = parent
            elif not (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)):
                break
        return found


def with_select(index: ast.Subscript, number: str) -> str | None:
    """``x.select(1, n)`` in place of ``x[:, n]``; None for an index without slices, as that of a dictionary may be."""
    parts = index.slice.elts if isinstance(index.slice, ast.Tuple) else []
    texts = list(map(ast.unparse, parts))
    named = re.compile(rf"(?<![\w.]){re.escape(number)}(?![\w.(])")
    at = next((n for n, part in enumerate(parts) if not isinstance(part, ast.Slice) and named.search(texts[n])), None)
    if at is None or "None" in texts or not ("..." in texts or any(isinstance(one, ast.Slice) for one in parts)):
        return None
    dimension = at - len(parts) if "..." in texts[:at] else at
    del texts[at]
    while texts and texts[-1] in (":", "..."):
        texts.pop()
    rest = texts or (["..."] if isinstance(index.ctx, ast.Store) else [])
    chosen = f"{ast.unparse(index.value)}.select({dimension}, {ast.unparse(parts[at])})"
    return f"{chosen}[{', '.join(rest)}]" if rest else chosen


def _compares_own(branch: ast.If) -> bool:
    """Return whether the test asks if an attribute that the branch sets is another than something, or less than what
    it is set to."""
    inner = [node for statement in branch.body for node in ast.walk(statement)]
    set_there = {node.attr for node in inner if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    assigned = {ast.unparse(node) for node in inner if isinstance(node, ast.Assign)}
    for one in (node for node in ast.walk(branch.test) if isinstance(node, ast.Compare)):
        sides = (one.left, *one.comparators)
        own = [side for side in sides if isinstance(side, ast.Attribute) and side.attr in set_there]
        becomes = {f"{ast.unparse(side)} = {ast.unparse(other)}" for side in own for other in sides}
        if own and (isinstance(one.ops[0], ast.NotEq) or becomes & assigned):
            return True
    return False


def _calls(node: ast.expr, names: Sequence[str]) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    name = getattr(called, "attr", getattr(called, "id", ""))
    arguments = ", ".join(map(ast.unparse, node.args)) if isinstance(node, ast.Call) else ""
    return name in names or f"{name}({arguments})" in names


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    taken = function.args
    rest = [argument for argument in (taken.vararg, taken.kwarg) if argument]
    return [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, *rest]
