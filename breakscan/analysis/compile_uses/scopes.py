"""The scopes of a file, what binds a name in each, and what compiled thing a binding can hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from breakscan.analysis.project.index import ClassInfo, FunctionInfo
from breakscan.source.walking import FunctionNode, stored_names

# Methods that return the module, or the wrapper, that they are called on.
RETURN_SELF = frozenset("to cuda cpu half float double bfloat16 eval train requires_grad_ share_memory".split())
CUDA_GRAPH_MODES = frozenset({"reduce-overhead", "max-autotune"})


@dataclass(frozen=True, slots=True)
class BoundName:
    """What is compiled: a function, or a module with the class in which it is defined."""

    function: FunctionNode | None = None
    owner: ClassInfo | None = None
    bound: bool = False
    """Whether the function's first parameter is the object itself."""


@dataclass(eq=False, slots=True)
class Compiled:
    """One call to ``torch.compile``, one decorator, or one ``module.compile()``."""

    node: ast.expr
    keywords: dict[str, ast.expr]
    target: BoundName | None
    source: ast.expr | None = None
    """The expression that was compiled."""
    in_place: bool = False

    def option(self, name: str) -> object:
        """The value of an option that is written as a literal, else None."""
        value = self.keywords.get(name)
        return value.value if isinstance(value, ast.Constant) else None

    @property
    def uses_cuda_graphs(self) -> bool:
        if "backend" in self.keywords and self.option("backend") != "inductor":
            return False
        options = self.keywords.get("options")
        if isinstance(options, ast.Dict):
            for key, value in zip(options.keys, options.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "triton.cudagraphs":
                    return isinstance(value, ast.Constant) and value.value is True
        return self.option("mode") in CUDA_GRAPH_MODES


@dataclass(frozen=True, slots=True)
class Binding:
    """One place that binds a name.  ``arms`` are the ``if`` statements around it, each with the arm that holds it."""

    line: int
    statement: ast.AST
    value: ast.expr | None
    compiled: Compiled | None
    arms: tuple[tuple[ast.If, bool], ...] = ()


@dataclass(eq=False, slots=True)
class Scope:
    """The top level of the file, or a function.  ``owner`` is the class whose method it is."""

    node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
    parent: Scope | None
    info: FunctionInfo | None
    owner: ClassInfo | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    outer_names: set[str] = field(default_factory=set)
    """The names that it declares ``global`` or ``nonlocal``."""
    inner: dict[str, FunctionNode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """A compiled thing under a name; ``condition`` is the test under which alone it is compiled."""

    compiled: Compiled
    condition: str | None = None


def definitions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """The functions and classes that stand in a block, in the blocks within it too."""
    for statement, _ in own_statements(body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement


def own_statements(
    body: list[ast.stmt], arms: tuple[tuple[ast.If, bool], ...] = ()
) -> Iterator[tuple[ast.stmt, tuple[tuple[ast.If, bool], ...]]]:
    """The statements of a scope in the order of the text, with the ``if`` statements around each."""
    for statement in body:
        yield statement, arms
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(statement, ast.If):
            yield from own_statements(statement.body, (*arms, (statement, True)))
            yield from own_statements(statement.orelse, (*arms, (statement, False)))
            continue
        for name in ("body", "handlers", "cases", "orelse", "finalbody"):
            for inner in getattr(statement, name, None) or ():
                if isinstance(inner, ast.stmt):
                    yield from own_statements([inner], arms)
                else:
                    yield from own_statements(inner.body, arms)


def bound_in_head(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds in its own line: of a loop, a ``with``, an import, ``x += 1``."""
    if isinstance(statement, ast.For | ast.AsyncFor | ast.AugAssign):
        yield from stored_names(statement.target)
    elif isinstance(statement, ast.With | ast.AsyncWith):
        for item in statement.items:
            if item.optional_vars is not None:
                yield from stored_names(item.optional_vars)
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.split(".")[0] for alias in statement.names)
