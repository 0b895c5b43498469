"""The uses of ``torch.compile`` and ``Module.compile`` themselves: in a region or out of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from breakscan.analysis.compile_uses.use_events import use_events
from breakscan.analysis.interpreter.program import Program
from breakscan.analysis.interpreter.values import Sort
from breakscan.analysis.project.entry_points import is_compiler
from breakscan.analysis.project.index import FunctionInfo
from breakscan.findings import Place
from breakscan.rulebook.events import Argument, Event, EventKind
from breakscan.source.spans import span, text_of
from breakscan.source.walking import own_nodes, stored_names, walk


def compile_events(program: Program, compiled: set[FunctionInfo]) -> Iterator[tuple[FunctionInfo | None, Event]]:
    """An event for each call to ``torch.compile`` and each hazard in the use of what it returns, with the function
    that holds it.

    ``compiled`` are the functions in a region.
    """
    if "compile" in program.module.text:
        yield from _Finder(program, compiled).block(program.index.tree.body, None, Place.PLAIN)
    yield from use_events(program, compiled)


_MODES = frozenset({"default", "lite", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"})


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
                yield from self.decorators(node, function, place)
                outer, self.changing = self.changing, []
                yield from self.block(node.body, self.program.index.all_functions[node], Place.PLAIN)
                self.changing = outer
            elif isinstance(node, ast.ClassDef):
                yield from self.block(node.body, function, Place.PLAIN)
            else:
                yield from self.statement(node, function, place)

    def decorators(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, function: FunctionInfo | None, place: Place
    ) -> Iterator[tuple[FunctionInfo | None, Event]]:
        for decorator in node.decorator_list:
            if is_compiler(self.program.index, decorator):
                keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
                form = self.flaw(keywords, self.program.index.all_functions[node])
                if form is not None:
                    yield function, self.event(decorator, "torch.compile", form, function, place)

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
                        yield (
                            function,
                            self.event(call, callee, self.form(node, call, callee, function), function, inside),
                        )

    def compiler(self, call: ast.Call, function: FunctionInfo | None) -> str | None:
        """``torch.compile``, or ``torch.nn.Sequential.compile`` for a module of torch's own; None for other calls."""
        if self.program.index.dotted(call.func) == "torch.compile":
            return "torch.compile"
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "compile":
            return None
        owner = call.func.value
        value = None
        if isinstance(owner, ast.Name):
            value = self.program.names.look_up(owner.id, self.program.index)
        elif isinstance(owner, ast.Attribute) and ast.unparse(owner.value) == "self" and function and function.owner:
            value = self.program.attributes.stored(function.owner, owner.attr)
        if value is None or value.sort is not Sort.MODULE or value.name not in self.program.api.modules:
            return None
        return f"{value.name}.compile"

    def form(self, statement: ast.stmt, call: ast.Call, callee: str, function: FunctionInfo | None) -> str:
        if callee != "torch.compile":
            return "used"
        if isinstance(statement, ast.Expr) and statement.value is call:
            return "discarded"
        argument = call.args[0] if call.args else None
        if isinstance(statement, ast.Assign) and statement.value is call:
            targets = [t.id for t in statement.targets if isinstance(t, ast.Name)]
            if statement in self.rebound:
                return "discarded"
            if targets == ["self"] and isinstance(argument, ast.Name) and argument.id == "self":
                return "rebound-self"
            alone = function is not None and len(targets) == len(statement.targets) == 1
            if alone and function is not None and _never_read(function, statement, targets[0]):
                return "discarded"
        named = self.program.index.functions.get(argument.id) if isinstance(argument, ast.Name) else None
        return self.flaw(call.keywords, named) or ("repeated" if self.unchanged(call) else "used")

    def flaw(self, keywords: list[ast.keyword], function: FunctionInfo | None) -> str | None:
        """What is wrong with the options, or with the function that they are for."""
        given = {k.arg: k.value.value for k in keywords if isinstance(k.value, ast.Constant)}
        if isinstance(given.get("mode"), str) and given["mode"] not in _MODES and "backend" not in given:
            return "unknown-mode"
        return "generator" if function is not None and function.is_generator else None

    def unchanged(self, call: ast.Call) -> bool:
        """Whether the call stands in a loop of its function that binds no name of what is compiled."""
        if not self.changing or not call.args:
            return False
        names = {node.id for node in walk(call.args[0]) if isinstance(node, ast.Name)}
        makes = any(isinstance(node, ast.Lambda | ast.Call) for node in walk(call.args[0]))
        return not makes and names.isdisjoint(self.changing[-1])

    def event(self, call: ast.expr, callee: str, form: str, function: FunctionInfo | None, place: Place) -> Event:
        arguments = []
        if isinstance(call, ast.Call):
            arguments += [Argument(i, None, _literal(value)) for i, value in enumerate(call.args)]
            arguments += [Argument(None, k.arg, _literal(k.value)) for k in call.keywords if k.arg]
        return Event(
            EventKind.COMPILE,
            *span(self.program.module, call),
            form=form,
            callee=callee,
            arguments=tuple(arguments),
            place=place,
            in_region=function in self.compiled,
            text=text_of(self.program.module, call),
        )


def _bound_in(loop: ast.For | ast.AsyncFor | ast.While) -> set[str]:
    """Every name that the loop binds, in its head or its body."""
    return set(stored_names(loop))


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


def _never_read(function: FunctionInfo, statement: ast.stmt, name: str) -> bool:
    """Whether a function binds a name and nothing reads it: in it behind the statement, or in its loop before."""
    body = function.node.body if isinstance(function.node.body, list) else []
    around = list(own_nodes(function.node))
    if any(isinstance(n, ast.Global | ast.Nonlocal) and name in n.names for n in around):
        return False
    if any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ("locals", "vars") for n in around
    ):
        return False
    loops = [n for n in around if isinstance(n, ast.For | ast.AsyncFor | ast.While)]
    end = statement.end_lineno or statement.lineno
    start = min((n.lineno for n in loops if n.lineno <= end <= (n.end_lineno or end)), default=end + 1)
    for node in (n for s in body for n in walk(s)):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            inside = statement.lineno <= node.lineno <= end
            if node.lineno >= start and not inside:
                return False
        # A function or a lambda made before may run later.
        if isinstance(node, ast.FunctionDef | ast.Lambda) and any(
            isinstance(n, ast.Name) and n.id == name for n in walk(node)
        ):
            return False
    return True
