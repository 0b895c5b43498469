"""The scopes of a file, with what binds names and attributes, and the functions and modules that it compiles: their
options, their names, and the calls of them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from breakscan.check.interpreter.values import has_outcome
from breakscan.check.project.imports import Project
from breakscan.check.project.index import ClassInfo, FunctionInfo, ModuleIndex
from breakscan.check.project.roots import COMPILE, Method, RootFinder, Spot, is_compiler
from breakscan.model.findings import Condition, Place
from breakscan.rulebook.events import Argument, EventKind
from breakscan.rulebook.torch_facts.not_measured import RETURN_THE_MODULE
from breakscan.source.walking import FunctionNode, Loop, is_name, stored_names, walk

ScopeNode = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
Arm = tuple[ast.If, bool]
"""An ``if`` statement, and whether its body holds a statement rather than its ``else``."""


@dataclass(frozen=True, slots=True)
class Step:
    """A statement with its block, and the arms, loops and ``with`` items around it in its scope, outermost first."""

    scope: "Scope"
    statement: ast.stmt
    block: list[ast.stmt]
    arms: tuple[Arm, ...] = ()
    loops: tuple[Loop, ...] = ()
    contexts: tuple[ast.expr, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """One place that binds a name or an attribute.  ``value`` is the assigned expression, if it is bound as a whole."""

    line: int
    statement: ast.AST
    value: ast.expr | None
    arms: tuple[Arm, ...] = ()


@dataclass(eq=False, slots=True)
class Scope:
    """The top level of the file, or a function.  ``owner`` is the class of which it is a method."""

    node: ScopeNode
    parent: "Scope | None"
    info: FunctionInfo | None
    owner: ClassInfo | None
    steps: list[Step] = field(default_factory=list)
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    outer_names: set[str] = field(default_factory=set)
    """The names that it declares ``global`` or ``nonlocal``."""
    inner: dict[str, FunctionNode] = field(default_factory=dict)
    """The functions that it defines, by name."""


class Scopes:
    """All scopes of a file, an enclosing one before those in it."""

    def __init__(self, index: ModuleIndex) -> None:
        self.index = index
        self.scopes: list[Scope] = []
        self.class_steps: list[Step] = []
        """The statements of class bodies.  Their scope is that in which the class is defined."""
        self.attributes: dict[tuple[ClassInfo, str], list[Binding]] = {}
        """The values that the methods of a class assign to attributes of ``self``."""
        self.of_function: dict[ast.AST, Scope] = {}
        self.made_by: dict[ast.stmt, list[Binding]] = {}
        """The bindings that each statement makes."""
        self._define(index.tree, None, None)

    def _define(self, node: ScopeNode, parent: Scope | None, owner: ClassInfo | None) -> None:
        info = None if isinstance(node, ast.Module) else self.index.all_functions.get(node)
        scope = Scope(node, parent, info, owner)
        self.scopes.append(scope)
        self.of_function[node] = scope
        if not isinstance(node, ast.Module):
            for argument in walk(node.args):
                if isinstance(argument, ast.arg):
                    scope.bindings[argument.arg] = [Binding(node.lineno, argument, None)]
        scope.steps = list(_steps(scope, node.body))
        for step in scope.steps:
            self._bind(step)
        for step in scope.steps:
            if isinstance(step.statement, ast.ClassDef):
                self._define_class(step.statement, scope)
            elif isinstance(step.statement, ast.FunctionDef | ast.AsyncFunctionDef):
                scope.inner[step.statement.name] = step.statement
                self._define(step.statement, scope, None)

    def _define_class(self, node: ast.ClassDef, scope: Scope) -> None:
        known = self.index.classes.get(node.name)
        owner = known if known is not None and known.node is node else None
        for step in _steps(scope, node.body):
            self.class_steps.append(step)
            if isinstance(step.statement, ast.ClassDef):
                self._define_class(step.statement, scope)
            elif isinstance(step.statement, ast.FunctionDef | ast.AsyncFunctionDef):
                self._define(step.statement, scope, owner)

    def _bind(self, step: Step) -> None:
        scope, statement = step.scope, step.statement
        if isinstance(statement, ast.Global | ast.Nonlocal):
            scope.outer_names.update(statement.names)
        for target, value in _bound_by(statement):
            binding = Binding(statement.lineno, statement, value, step.arms)
            self.made_by.setdefault(statement, []).append(binding)
            if isinstance(target, str):
                scope.bindings.setdefault(target, []).append(binding)
            elif scope.owner is not None:
                self.attributes.setdefault((scope.owner, target.attr), []).append(binding)


def own_parts(step: Step) -> Iterator[tuple[ast.AST, Step]]:
    """The parts of a statement outside the blocks in it, each with what encloses it.  Those of a definition, which run
    in the scope around it, are left out."""
    if isinstance(step.statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for name, part in ast.iter_fields(step.statement):
        for child in part if isinstance(part, list) else [part]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                again = name == "test" and isinstance(step.statement, ast.While)
                # The test of a loop runs in every iteration.
                yield child, replace(step, loops=(*step.loops, step.statement)) if again else step  # type: ignore[arg-type]


def _steps(
    scope: Scope,
    block: list[ast.stmt],
    arms: tuple[Arm, ...] = (),
    loops: tuple[Loop, ...] = (),
    contexts: tuple[ast.expr, ...] = (),
) -> Iterator[Step]:
    """The statements of a block and of the blocks in it, in source order."""
    for statement in block:
        yield Step(scope, statement, block, arms, loops, contexts)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(statement, ast.If):
            yield from _steps(scope, statement.body, (*arms, (statement, True)), loops, contexts)
            yield from _steps(scope, statement.orelse, (*arms, (statement, False)), loops, contexts)
            continue
        inner_loops = (*loops, statement) if isinstance(statement, Loop) else loops
        entered = statement.items if isinstance(statement, ast.With | ast.AsyncWith) else []
        inner_contexts = (*contexts, *(item.context_expr for item in entered))
        yield from _steps(scope, getattr(statement, "body", []), arms, inner_loops, inner_contexts)
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _steps(scope, part.body, arms, loops, contexts)
        for name in ("orelse", "finalbody"):
            yield from _steps(scope, getattr(statement, name, []), arms, loops, contexts)


def _bound_by(statement: ast.stmt) -> Iterator[tuple[str | ast.Attribute, ast.expr | None]]:
    """The names, and the attributes of ``self``, that a statement binds in its own line, with the value if known."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name, None
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            if isinstance(target, ast.Name) and statement.value is not None:
                yield target.id, statement.value
            elif isinstance(target, ast.Attribute) and statement.value is not None:
                if is_name(target.value, "self"):
                    yield target, statement.value
            else:
                yield from ((name, None) for name in stored_names(target))
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name.split(".")[0], None) for alias in statement.names)
    else:
        entered = (item.optional_vars for item in getattr(statement, "items", ()))
        for one in (getattr(statement, "target", None), *entered):
            yield from ((name, None) for name in (stored_names(one) if one is not None else ()))


Target = FunctionInfo | Method | ClassInfo
"""A compiled function, method or module, of which the class is known."""


def owner_of(target: Target | None) -> ClassInfo | None:
    """The class of a compiled module, or of the object whose method is compiled."""
    return target.receiver if isinstance(target, Method) else target if isinstance(target, ClassInfo) else None


@dataclass(eq=False, slots=True)
class Compiled:
    """One call to ``torch.compile``, one decorator, or one ``module.compile()``."""

    node: ast.expr
    keywords: dict[str, ast.expr]
    target: Target | None
    source: ast.expr | None = None
    """The expression that was compiled."""
    in_place: bool = False

    def option(self, name: str) -> object:
        """The value of an option that is written as a literal, else None."""
        value = self.keywords.get(name)
        return value.value if isinstance(value, ast.Constant) else None


@dataclass(frozen=True, slots=True)
class Hit:
    """Something compiled under a name.  ``condition`` is the test under which it is compiled, if there is one."""

    compiled: Compiled
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """A call of something compiled."""

    call: ast.Call
    compiled: Compiled
    step: Step


@dataclass(frozen=True, slots=True)
class Found:
    """An event to emit, in a function.  ``name`` is what it is about: a variable, an attribute, a method."""

    kind: EventKind
    node: ast.AST
    function: FunctionInfo | None
    form: str = ""
    name: str | None = None
    condition: Condition | None = None
    callee: str | None = None
    operands: frozenset[str] = frozenset()
    arguments: tuple[Argument, ...] = ()
    in_region: bool = False
    place: Place = Place.PLAIN


class Survey:
    """All calls and statements of a file, the bindings that hold something compiled, and the calls of that."""

    def __init__(self, project: Project, scopes: Scopes) -> None:
        self.project = project
        self.index: ModuleIndex = scopes.index
        self.text = self.index.module.text
        self.scopes = scopes
        self.compiled: dict[Binding, Compiled] = {}
        self.finder = RootFinder(project)
        self._in_place: dict[tuple[Scope | ClassInfo, str], list[Binding]] = {}
        """Statements such as ``model.compile()``, by the name or attribute that holds something compiled from there."""
        self.steps = [step for scope in scopes.scopes for step in scope.steps]
        for step in self.steps:
            self._read(step)
        parts = (part for step in self.steps for part in own_parts(step))
        self.calls = [(call, step) for part, step in parts for call in _calls(part)]
        hits = ((call, step, self.hit(call.func, step.scope, call.lineno)) for call, step in self.calls)
        self.uses = [Use(call, hit.compiled, step) for call, step, hit in hits if hit is not None]

    def _read(self, step: Step) -> None:
        scope, statement = step.scope, step.statement
        for binding in self.scopes.made_by.get(statement, ()):
            compiled = None
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                mark = next((one for one in statement.decorator_list if is_compiler(self.index, one)), None)
                if mark is not None:
                    compiled = Compiled(mark, _options(mark), self.index.all_functions[statement])
            elif binding.value is not None:
                compiled = self.made_by(binding.value, scope, statement.lineno)
            if compiled is not None:
                self.compiled[binding] = compiled
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            self._hold_in_place(step, self._compiled_in_place(statement.value, scope))
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                # `model.forward = torch.compile(model.forward)` compiles the module in place.
                held = target.value if isinstance(target, ast.Attribute) and target.attr == "forward" else None
                made = self.made_by(statement.value, scope, statement.lineno) if isinstance(held, ast.Name) else None
                if held is not None and made is not None and not is_name(held, "self"):
                    known = self._target(held, scope)
                    self._hold_in_place(step, Compiled(made.node, made.keywords, known, held, in_place=True))

    def _hold_in_place(self, step: Step, compiled: Compiled | None) -> None:
        if compiled is None:
            return
        held, scope = compiled.source, step.scope
        binding = Binding(step.statement.lineno, step.statement, None, step.arms)
        if isinstance(held, ast.Name):
            self._in_place.setdefault((scope, held.id), []).append(binding)
        elif isinstance(held, ast.Attribute) and is_name(held.value, "self") and scope.owner is not None:
            self._in_place.setdefault((scope.owner, held.attr), []).append(binding)
        self.compiled[binding] = compiled

    # -- what an expression makes ------------------------------------------------------------------------------

    def made_by(self, value: ast.expr, scope: Scope, line: int) -> Compiled | None:
        """The thing that an expression compiles, or the compiled thing that it passes on under another name."""
        if isinstance(value, ast.IfExp):
            return self.made_by(value.body, scope, line) or self.made_by(value.orelse, scope, line)
        if isinstance(value, ast.Name | ast.Attribute):
            hit = self.hit(value, scope, line)
            return hit.compiled if hit and not hit.compiled.in_place else None
        if not isinstance(value, ast.Call):
            return None
        if self.index.dotted(value.func) == COMPILE:
            keywords = _options(value)
            given = value.args[0] if value.args else keywords.get("model")
            if given is None or isinstance(given, ast.Starred):
                return None
            return Compiled(value, keywords, self._target(given, scope), given)
        if isinstance(value.func, ast.Call) and value.args and is_compiler(self.index, value.func):
            return Compiled(value, _options(value.func), self._target(value.args[0], scope), value.args[0])
        if isinstance(value.func, ast.Attribute) and value.func.attr in RETURN_THE_MODULE:
            return self.made_by(value.func.value, scope, line)
        return None

    def _compiled_in_place(self, call: ast.Call, scope: Scope) -> Compiled | None:
        """The module that ``module.compile()`` compiles; the owner of ``re.compile`` is imported."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "compile" or call.args:
            return None
        owner = call.func.value
        root = owner
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self.index.imports:
            return None
        return Compiled(call, _options(call), self._target(owner, scope), owner, in_place=True)

    def _target(self, node: ast.expr, scope: Scope) -> Target | None:
        """The function, or the class of the module, that an expression is: the last one that its name is bound to."""
        if isinstance(node, ast.Lambda):
            return FunctionInfo(node, "<lambda>", self.index)
        found = self.finder.resolve(node, Spot(self.index, scope.info))[-1:]
        return next((one for one in found if isinstance(one, Target)), None)

    def compiled_apart(self) -> Iterator[tuple[ClassInfo, FunctionInfo]]:
        """The classes whose objects are compiled one by one, with the method that runs: by a decorator or in a loop."""
        for info in self.index.all_functions.values():
            decorators = getattr(info.node, "decorator_list", [])
            if info.owner is not None and any(is_compiler(self.index, one) for one in decorators):
                yield info.owner, info
        for call, step in self.calls:
            target = call.args[0] if call.args and self.index.dotted(call.func) == COMPILE else None
            if isinstance(call.func, ast.Attribute) and call.func.attr == "compile" and not call.args:
                target = call.func.value
            if target is None:
                continue
            if step.loops or any(isinstance(n, ast.comprehension) for n in walk(step.statement)):
                for held in self.finder.resolve(target, Spot(self.index, step.scope.info)):
                    forward = self.project.method(held, "forward") if isinstance(held, ClassInfo) else None
                    if isinstance(held, ClassInfo) and forward is not None:
                        yield held, forward

    # -- looking up -------------------------------------------------------------------------------------------

    def hit(self, node: ast.expr, scope: Scope, line: int) -> Hit | None:
        """The compiled thing that a name or an attribute of ``self`` refers to at a line of a scope."""
        if isinstance(node, ast.Attribute):
            owner = scope.owner or (scope.parent.owner if scope.parent else None)
            if owner is None or not is_name(node.value, "self"):
                return None
            return self._hit_among(self.attribute_bindings(owner, node.attr), line, of_name=False)
        if not isinstance(node, ast.Name):
            return None
        where = self._scope_of(node.id, scope)
        if where is None:
            return None
        bindings = self._bindings_in(where, node.id)
        bindings = [b for b in bindings if b.line < line] if where is scope else bindings
        return self._hit_among(bindings, line, of_name=True)

    def bindings_of(self, name: str, scope: Scope) -> list[Binding]:
        """All bindings of a name, in the scope that binds it as it is seen from another."""
        where = self._scope_of(name, scope)
        return self._bindings_in(where, name) if where is not None else []

    def bound_before(self, name: str, scope: Scope, loop: Loop) -> Binding | None:
        """The last binding of a name before a loop."""
        return next((b for b in reversed(self.bindings_of(name, scope)) if b.line < loop.lineno), None)

    def bound_in(self, name: str, scope: Scope, loop: Loop) -> list[Binding]:
        """The bindings of a name in the head or the body of a loop."""
        end = loop.end_lineno or loop.lineno
        return [b for b in self.bindings_of(name, scope) if loop.lineno <= b.line <= end]

    def attribute_bindings(self, owner: ClassInfo, name: str) -> list[Binding]:
        return self._merged(self.scopes.attributes.get((owner, name), []), owner, name)

    def _scope_of(self, name: str, scope: Scope) -> Scope | None:
        where: Scope | None = scope
        while where is not None:
            if name not in where.outer_names and self._bindings_in(where, name):
                return where
            where = where.parent
        return None

    def _bindings_in(self, scope: Scope, name: str) -> list[Binding]:
        return self._merged(scope.bindings.get(name, []), scope, name)

    def _merged(self, bindings: list[Binding], place: Scope | ClassInfo, name: str) -> list[Binding]:
        in_place = self._in_place.get((place, name))
        return sorted([*bindings, *in_place], key=lambda binding: binding.line) if in_place else bindings

    def _hit_among(self, bindings: list[Binding], line: int, *, of_name: bool) -> Hit | None:
        """The last of some bindings that holds something compiled: of a name, the last of all, or one in another arm of
        its ``if``; an attribute may be set by several methods."""
        for binding in reversed(bindings):
            compiled, last = self.compiled.get(binding), bindings[-1]
            same = binding.arms and last.arms and binding.arms[-1][0] is last.arms[-1][0]
            if compiled is not None and (binding is last or same or not of_name):
                return Hit(compiled, _condition(binding, line))
        return None


def _options(compiler: ast.expr) -> dict[str, ast.expr]:
    """The arguments of a call that have names."""
    return {k.arg: k.value for k in compiler.keywords if k.arg} if isinstance(compiler, ast.Call) else {}


def _condition(binding: Binding, line: int) -> Condition | None:
    """The test under which a name is bound so; None if the line that reads it is under the same test."""
    if not binding.arms:
        return None
    test, holds = binding.arms[-1]
    if test.lineno <= line <= (test.end_lineno or line) or any(is_name(node, "__name__") for node in walk(test.test)):
        return None
    return has_outcome(test.test, holds)


def _calls(node: ast.AST) -> list[ast.Call]:
    """The calls in an expression in source order, without those in a lambda, which run elsewhere."""
    found, stack = [], [node]
    while stack:
        current = stack.pop()
        if isinstance(current, ast.Call):
            found.append(current)
        if not isinstance(current, ast.Lambda):
            stack.extend(ast.iter_child_nodes(current))
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))
