"""The uses of ``torch.compile`` and ``Module.compile`` themselves: in a region or out of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from breakscan.analysis.index import FunctionInfo, walk
from breakscan.analysis.program import Program
from breakscan.analysis.values import Sort
from breakscan.findings import Place
from breakscan.rulebook.events import Argument, Event, EventKind


def compile_events(program: Program, compiled: set[FunctionInfo]) -> Iterator[tuple[FunctionInfo | None, Event]]:
    """An event for each call to ``torch.compile``, with the function that holds it.

    ``compiled`` are the functions in a region.
    """
    if "compile" in program.module.text:
        yield from _Finder(program, compiled).block(program.index.tree.body, None, Place.PLAIN)


class _Finder:
    def __init__(self, program: Program, compiled: set[FunctionInfo]) -> None:
        self.program = program
        self.compiled = compiled
        self.rebound: set[ast.stmt] = set()
        """Assignments to a loop's own variable that nothing reads before the next round binds it anew."""
        self.changing: list[set[str]] = []
        """The names that each enclosing loop binds, of the function at hand."""

    def block(
        self, body: list[ast.stmt], function: FunctionInfo | None, place: Place
    ) -> Iterator[tuple[FunctionInfo | None, Event]]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                outer, self.changing = self.changing, []
                yield from self.block(node.body, self.program.info_of(node), Place.PLAIN)
                self.changing = outer
            elif isinstance(node, ast.ClassDef):
                yield from self.block(node.body, function, Place.PLAIN)
            else:
                yield from self.statement(node, function, place)

    def statement(
        self, node: ast.stmt, function: FunctionInfo | None, place: Place
    ) -> Iterator[tuple[FunctionInfo | None, Event]]:
        inside = Place.LOOP if isinstance(node, ast.For | ast.AsyncFor | ast.While) else place
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            self.rebound |= _last_rebinding(node.body, node.target.id)
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            self.changing.append(_bound_in(node))
            yield from self.children(node, function, inside)
            self.changing.pop()
        else:
            yield from self.children(node, function, inside)

    def children(
        self, node: ast.stmt, function: FunctionInfo | None, inside: Place
    ) -> Iterator[tuple[FunctionInfo | None, Event]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from self.block([child], function, inside)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                yield from self.block(child.body, function, inside)
            else:
                for call in walk(child):
                    callee = self.compiler(call, function) if isinstance(call, ast.Call) else None
                    if callee is not None:
                        assert isinstance(call, ast.Call)
                        yield function, self.event(call, callee, self.form(node, call, callee), function, inside)

    def compiler(self, call: ast.Call, function: FunctionInfo | None) -> str | None:
        """``torch.compile``, or ``torch.nn.Sequential.compile`` for a module of torch's own; None for other calls."""
        if self.program.index.dotted(call.func) == "torch.compile":
            return "torch.compile"
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "compile":
            return None
        owner = call.func.value
        value = None
        if isinstance(owner, ast.Name):
            value = self.program.look_up_global(owner.id)
        elif isinstance(owner, ast.Attribute) and ast.unparse(owner.value) == "self" and function and function.owner:
            value = self.program.stored(function.owner, owner.attr)
        if value is None or value.sort is not Sort.MODULE or value.name not in self.program.api.modules:
            return None
        return f"{value.name}.compile"

    def form(self, statement: ast.stmt, call: ast.Call, callee: str) -> str:
        if callee != "torch.compile":
            return "used"
        if isinstance(statement, ast.Expr) and statement.value is call:
            return "discarded"
        if isinstance(statement, ast.Assign) and statement.value is call:
            targets = [t.id for t in statement.targets if isinstance(t, ast.Name)]
            argument = call.args[0] if call.args else None
            if statement in self.rebound:
                return "discarded"
            if targets == ["self"] and isinstance(argument, ast.Name) and argument.id == "self":
                return "rebound-self"
        return "repeated" if self.unchanged(call) else "used"

    def unchanged(self, call: ast.Call) -> bool:
        """Whether the call stands in a loop of its function that binds no name of what is compiled."""
        if not self.changing or not call.args:
            return False
        names = {node.id for node in walk(call.args[0]) if isinstance(node, ast.Name)}
        makes = any(isinstance(node, ast.Lambda | ast.Call) for node in walk(call.args[0]))
        return not makes and names.isdisjoint(self.changing[-1])

    def event(self, call: ast.Call, callee: str, form: str, function: FunctionInfo | None, place: Place) -> Event:
        line, column, end_line, end_column = self.program.span(call)
        arguments = [Argument(i, None, _literal(value)) for i, value in enumerate(call.args)]
        arguments += [Argument(None, k.arg, _literal(k.value)) for k in call.keywords if k.arg]
        return Event(
            kind=EventKind.COMPILE,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            form=form,
            callee=callee,
            arguments=tuple(arguments),
            place=place,
            in_region=function in self.compiled,
            text=self.program.text_of(call),
        )


def _bound_in(loop: ast.For | ast.AsyncFor | ast.While) -> set[str]:
    """Every name that the loop binds, in its head or its body."""
    return {node.id for node in walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _literal(node: ast.expr) -> frozenset[str]:
    """The operand word of a literal: what is passed under a name may be None."""
    if isinstance(node, ast.Constant):
        return frozenset({"none" if node.value is None else "constant"})
    return frozenset({"container" if isinstance(node, ast.Dict | ast.List | ast.Tuple) else "unknown"})


def _last_rebinding(body: list[ast.stmt], name: str) -> set[ast.stmt]:
    """The statement of a loop's body that assigns the loop's variable and behind which the body never reads it."""
    for i, node in enumerate(body):
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == [name]:
            reads = [n for later in body[i + 1 :] for n in walk(later) if isinstance(n, ast.Name) and n.id == name]
            return set() if reads else {node}
    return set()
