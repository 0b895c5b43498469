"""What a file compiles, and under which names it goes in which scope."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from breakscan.analysis.compile_uses.scopes import (
    RETURN_SELF,
    Binding,
    BoundName,
    Compiled,
    Hit,
    Scope,
    bound_in_head,
    definitions,
    own_statements,
)
from breakscan.analysis.project.index import ClassInfo, FunctionInfo, ModuleIndex
from breakscan.source.walking import stored_names, walk

COMPILE = "torch.compile"


class Names:
    """The scopes of a file, and what compiled thing a name stands for in each."""

    def __init__(self, index: ModuleIndex) -> None:
        self.index = index
        self.scopes: list[Scope] = []
        self.attributes: dict[tuple[ClassInfo, str], list[Binding]] = {}
        self.of_function: dict[ast.AST, Scope] = {}
        self._define(index.tree, None, None, None)
        for scope in self.scopes:
            self._bind(scope)

    @property
    def any_compiled(self) -> bool:
        """Whether anything that the file compiles goes by a name."""
        everywhere = [*(b for s in self.scopes for b in s.bindings.values()), *self.attributes.values()]
        return any(binding.compiled is not None for bindings in everywhere for binding in bindings)

    # -- scopes -----------------------------------------------------------------------------------------------

    def _define(
        self,
        node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef,
        parent: Scope | None,
        info: FunctionInfo | None,
        owner: ClassInfo | None,
    ) -> None:
        scope = Scope(node, parent, info, owner)
        self.scopes.append(scope)
        self.of_function[node] = scope
        for inner in definitions(node.body):
            if isinstance(inner, ast.ClassDef):
                made = self.index.classes.get(inner.name)
                made = made if made is not None and made.node is inner else None
                for method in definitions(inner.body):
                    if not isinstance(method, ast.ClassDef):
                        self._define(method, scope, self._info(method), made)
            else:
                scope.inner[inner.name] = inner
                self._define(inner, scope, self._info(inner), None)

    def _info(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> FunctionInfo | None:
        return self.index.all_functions.get(node)

    def _bind(self, scope: Scope) -> None:
        if not isinstance(scope.node, ast.Module):
            for argument in walk(scope.node.args):
                if isinstance(argument, ast.arg):
                    scope.bindings[argument.arg] = [Binding(scope.node.lineno, argument, None, None)]
        for statement, arms in own_statements(scope.node.body):
            for target, value, compiled in self._bound_by(statement, scope):
                binding = Binding(statement.lineno, statement, value, compiled, arms)
                if isinstance(target, str):
                    scope.bindings.setdefault(target, []).append(binding)
                elif scope.owner is not None:
                    self.attributes.setdefault((scope.owner, target.attr), []).append(binding)

    def _bound_by(
        self, statement: ast.stmt, scope: Scope
    ) -> Iterator[tuple[str | ast.Attribute, ast.expr | None, Compiled | None]]:
        """What a statement binds: names, and attributes of ``self``."""
        if isinstance(statement, ast.Global | ast.Nonlocal):
            scope.outer_names.update(statement.names)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement.name, None, self._decorated(statement)
        elif isinstance(statement, ast.ClassDef):
            yield statement.name, None, None
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name | ast.Attribute) and statement.value is not None:
                    compiled = self.made_by(statement.value, scope, statement.lineno)
                    if isinstance(target, ast.Name):
                        yield target.id, statement.value, compiled
                    elif _is_self(target.value):
                        yield target, statement.value, compiled
                    elif compiled is not None and target.attr == "forward" and isinstance(target.value, ast.Name):
                        owner = self._target(target.value, scope, statement.lineno)
                        whole = Compiled(compiled.node, compiled.keywords, owner, target.value, in_place=True)
                        yield target.value.id, None, whole
                else:
                    yield from ((name, None, None) for name in stored_names(target))
        else:
            compiled = None
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                compiled = self._in_place(statement.value, scope)
                held = compiled.source if compiled else None
                if isinstance(held, ast.Name):
                    yield held.id, None, compiled
                elif isinstance(held, ast.Attribute) and _is_self(held.value):
                    yield held, None, compiled
            yield from ((name, None, None) for name in bound_in_head(statement))

    # -- what an expression makes ------------------------------------------------------------------------------

    def made_by(self, value: ast.expr, scope: Scope, line: int) -> Compiled | None:
        """The compiled thing that an expression makes, or that it hands on under another name."""
        if isinstance(value, ast.IfExp):
            return self.made_by(value.body, scope, line) or self.made_by(value.orelse, scope, line)
        if isinstance(value, ast.Name | ast.Attribute):
            hit = self.hit(value, scope, line)
            return hit.compiled if hit and not hit.compiled.in_place else None
        if not isinstance(value, ast.Call):
            return None
        if self.index.dotted(value.func) == COMPILE:
            keywords = {k.arg: k.value for k in value.keywords if k.arg}
            given = value.args[0] if value.args else keywords.get("model")
            if given is None or isinstance(given, ast.Starred):
                return None
            return Compiled(value, keywords, self._target(given, scope, line), given)
        if isinstance(value.func, ast.Call) and value.args and self.index.dotted(value.func.func) == COMPILE:
            keywords = {k.arg: k.value for k in value.func.keywords if k.arg}
            return Compiled(value, keywords, self._target(value.args[0], scope, line), value.args[0])
        if isinstance(value.func, ast.Attribute) and value.func.attr in RETURN_SELF:
            return self.made_by(value.func.value, scope, line)
        return None

    def _decorated(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Compiled | None:
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
            if isinstance(decorator, ast.Call) and self.index.dotted(called) == "functools.partial" and decorator.args:
                called = decorator.args[0]
            if self.index.dotted(called) == COMPILE:
                return Compiled(decorator, {k.arg: k.value for k in keywords if k.arg}, BoundName(node))
        return None

    def _in_place(self, call: ast.Call, scope: Scope) -> Compiled | None:
        """``module.compile()``; ``re.compile`` and its like belong to something imported."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "compile" or call.args:
            return None
        owner = call.func.value
        root = owner
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self.index.imports:
            return None
        keywords = {k.arg: k.value for k in call.keywords if k.arg}
        return Compiled(call, keywords, self._target(owner, scope, call.lineno), owner, in_place=True)

    def _target(self, node: ast.expr, scope: Scope, line: int, deep: int = 0) -> BoundName | None:
        if deep > 5:
            return None
        if isinstance(node, ast.Lambda):
            return BoundName(node)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in RETURN_SELF:
                return self._target(node.func.value, scope, line, deep + 1)
            made = self._class(node.func)
            if made is None and isinstance(node.func, ast.Attribute):
                holder = self._class(node.func.value)
                maker = self.method(holder, node.func.attr) if holder is not None else None
                made = holder if maker is not None and "classmethod" in maker.decorators else None
            return BoundName(owner=made) if made is not None else None
        if isinstance(node, ast.Attribute):
            if _is_self(node.value) and scope.owner is not None:
                method = self.method(scope.owner, node.attr)
                if method is not None:
                    return BoundName(method.node, scope.owner, bound=not method.is_static)
                return self._value_target(self.attributes.get((scope.owner, node.attr), []), scope, line, deep)
            held = self._target(node.value, scope, line, deep + 1)
            if held is None or held.owner is None or held.function is not None:
                return None
            method = self.method(held.owner, node.attr)
            return BoundName(method.node, held.owner, bound=not method.is_static) if method is not None else None
        if isinstance(node, ast.Name):
            where: Scope | None = scope
            while where is not None:
                if node.id in where.inner:
                    return BoundName(where.inner[node.id])
                if node.id in where.bindings:
                    return self._value_target(where.bindings[node.id], where, line if where is scope else 0, deep)
                where = where.parent
        return None

    def _class(self, node: ast.expr) -> ClassInfo | None:
        dotted = self.index.dotted(node)
        return self.index.class_named(dotted) if dotted is not None else None

    def _value_target(self, bindings: list[Binding], scope: Scope, line: int, deep: int) -> BoundName | None:
        known = [b for b in bindings if not line or b.line < line]
        if not known or known[-1].value is None:
            return None
        return self._target(known[-1].value, scope, known[-1].line, deep + 1)

    # -- looking up -------------------------------------------------------------------------------------------

    def hit(self, node: ast.expr, scope: Scope, line: int) -> Hit | None:
        """The compiled thing that a name or an attribute of ``self`` stands for at a line of a scope."""
        if isinstance(node, ast.Attribute):
            if not _is_self(node.value):
                return None
            owner = scope.owner or (scope.parent.owner if scope.parent else None)
            return _agreed(self.attributes.get((owner, node.attr), []), line) if owner is not None else None
        if not isinstance(node, ast.Name):
            return None
        where: Scope | None = scope
        while where is not None:
            if node.id in where.bindings and node.id not in where.outer_names:
                bindings = where.bindings[node.id]
                return _latest([b for b in bindings if b.line < line] if where is scope else bindings, line)
            where = where.parent
        return None

    def bindings_of(self, name: str, scope: Scope) -> list[Binding]:
        """All bindings of a name, in the scope that binds it as seen from another."""
        where: Scope | None = scope
        while where is not None:
            if name in where.bindings and name not in where.outer_names:
                return where.bindings[name]
            where = where.parent
        return []

    def method(self, owner: ClassInfo, name: str) -> FunctionInfo | None:
        """A method of a class, or of those of its bases that the project holds."""
        queue, seen = [owner], set()
        while queue:
            current = queue.pop(0)
            if current in seen:
                continue
            seen.add(current)
            if name in current.methods:
                return current.methods[name]
            bases = [current.index.class_named(base) for base in current.bases]
            queue += [base for base in bases if base is not None]
        return None


def _latest(bindings: list[Binding], line: int) -> Hit | None:
    """What the last of some bindings holds; where that one stands in the other arm of an ``if``, what both may."""
    if not bindings:
        return None
    last = bindings[-1]
    for binding in reversed(bindings):
        same = binding.arms and last.arms and binding.arms[-1][0] is last.arms[-1][0]
        if binding.compiled is not None and (binding is last or same):
            return Hit(binding.compiled, _condition(binding, line))
    return None


def _agreed(bindings: list[Binding], line: int) -> Hit | None:
    """What an attribute holds that several methods may set."""
    compiled = [b for b in bindings if b.compiled is not None]
    if not compiled or compiled[-1].compiled is None:
        return None
    return Hit(compiled[-1].compiled, _condition(compiled[-1], line))


def _condition(binding: Binding, line: int) -> str | None:
    """The test under which alone a name is bound so; None where whoever reads it stands under it too."""
    if not binding.arms:
        return None
    test, holds = binding.arms[-1]
    text = ast.unparse(test.test)
    if test.lineno <= line <= (test.end_lineno or line) or "__name__" in text:
        return None
    return text if holds else f"not ({text})"


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
