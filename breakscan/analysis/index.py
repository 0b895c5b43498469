"""The index of a file: its imports, classes and functions, and how they hang together.  Reads an ast, runs nothing."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field

BUILTINS = frozenset(dir(builtins))
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(eq=False, slots=True)
class FunctionInfo:
    """A function or method of the file.  ``qualname`` is as Python would give it; ``evidence`` is what
    ``parameters`` gathers of its body, once."""

    node: FunctionNode
    qualname: str
    owner: ClassInfo | None = None
    decorators: tuple[str, ...] = ()
    nested: bool = False
    evidence: object | None = field(default=None, repr=False)
    yields: bool | None = None

    @property
    def name(self) -> str:
        return self.qualname.rsplit(".", 1)[-1]

    @property
    def is_static(self) -> bool:
        return "staticmethod" in self.decorators

    @property
    def is_property(self) -> bool:
        return any(d in ("property", "functools.cached_property") for d in self.decorators)

    @property
    def defaults(self) -> dict[str, ast.expr]:
        """The default of each parameter that has one."""
        given = self.node.args
        names = [a.arg for a in (*given.posonlyargs, *given.args)]
        found = dict(zip(names[::-1], given.defaults[::-1], strict=False))
        found |= {a.arg: d for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is not None}
        return found

    @property
    def is_generator(self) -> bool:
        if self.yields is None:
            self.yields = any(isinstance(n, ast.Yield | ast.YieldFrom) for n in own_nodes(self.node))
        return self.yields


@dataclass(eq=False, slots=True)
class ClassInfo:
    """A class of the file.  ``bases`` are dotted names, ``methods`` those that it defines itself."""

    node: ast.ClassDef
    qualname: str
    bases: tuple[str, ...]
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    decorators: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class ModuleIndex:
    """All that a file defines.  ``imports`` maps a local name to the dotted name that it stands for."""

    tree: ast.Module
    imports: dict[str, str] = field(default_factory=dict)
    functions: dict[str, FunctionInfo] = field(default_factory=dict)
    classes: dict[str, ClassInfo] = field(default_factory=dict)
    all_functions: list[FunctionInfo] = field(default_factory=list)

    def dotted(self, node: ast.expr) -> str | None:
        """The import-resolved dotted name of ``a.b.c``: ``torch.nn.functional.relu`` for ``F.relu``."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        head = self.imports.get(node.id, node.id)
        return canonical(".".join([head, *reversed(parts)]))

    def bases_of(self, info: ClassInfo) -> list[ClassInfo]:
        """The class and those of its bases that the file defines, in the order in which methods are looked up."""
        found: list[ClassInfo] = []
        queue = [info]
        while queue:
            current = queue.pop(0)
            if current not in found:
                found.append(current)
                queue += [self.classes[b] for b in current.bases if b in self.classes]
        return found

    def method(self, info: ClassInfo, name: str) -> FunctionInfo | None:
        for owner in self.bases_of(info):
            if name in owner.methods:
                return owner.methods[name]
        return None

    def is_module(self, info: ClassInfo) -> bool:
        """Whether the class is, or very likely is, an ``nn.Module``.

        A class with a ``forward`` and a base from elsewhere counts: nearly all such bases are modules.
        """
        chain = self.bases_of(info)
        outside = [b for c in chain for b in c.bases if b not in self.classes and b not in BUILTINS]
        if any(b.startswith(NOT_MODULES) for b in outside):
            return False
        if any(b.startswith("torch.nn.") for b in outside):
            return True
        return bool(outside) and self.method(info, "forward") is not None


NOT_MODULES = ("torch.autograd.", "typing.", "abc.", "enum.", "dataclasses.", "collections.")

_ALIASES = (
    ("torch.nn.modules.module.Module", "torch.nn.Module"),
    ("torch.functional.", "torch."),
    ("torch._tensor.Tensor", "torch.Tensor"),
    ("torch.nn.parameter.", "torch.nn."),
)


def canonical(dotted: str) -> str:
    """One spelling for names that torch offers under several."""
    for alias, name in _ALIASES:
        if dotted.startswith(alias):
            return name + dotted[len(alias) :]
    if dotted.startswith("torch.nn.modules.") and dotted.count(".") == 4:
        return "torch.nn." + dotted.rsplit(".", 1)[-1]
    return dotted


def build_index(tree: ast.Module) -> ModuleIndex:
    """The index of a parsed file."""
    index = ModuleIndex(tree)
    _define(index, tree.body, "", None, nested=False)
    return index


def _define(index: ModuleIndex, body: list[ast.stmt], prefix: str, owner: ClassInfo | None, nested: bool) -> None:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            _import(index, node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            info = FunctionInfo(node, prefix + node.name, owner, decorator_names(index, node.decorator_list), nested)
            index.all_functions.append(info)
            if owner is not None:
                # A property's setter would hide its getter.
                if not any(d.endswith((".setter", ".deleter")) for d in info.decorators):
                    owner.methods[node.name] = info
            elif not nested:
                index.functions[node.name] = info
            _define(index, node.body, f"{prefix}{node.name}.<locals>.", None, nested=True)
        elif isinstance(node, ast.ClassDef):
            bases = tuple(index.dotted(b) or "?" for b in node.bases if not isinstance(b, ast.Starred))
            made = ClassInfo(node, prefix + node.name, bases, {}, decorator_names(index, node.decorator_list))
            if not nested:
                index.classes[node.name] = made
            _define(index, node.body, f"{prefix}{node.name}.", made, nested)
        else:
            for inner in blocks(node):
                _define(index, inner, prefix, owner, nested)


def _import(index: ModuleIndex, node: ast.Import | ast.ImportFrom) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            name = alias.asname or alias.name.split(".")[0]
            index.imports[name] = alias.name if alias.asname else name
        return
    base = "." * node.level + (node.module or "")
    joint = "" if base.endswith(".") or not base else "."
    for alias in node.names:
        index.imports[alias.asname or alias.name] = f"{base}{joint}{alias.name}"


def blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists inside an ``if``, ``try``, ``with`` or loop."""
    found = [
        getattr(node, name) for name in ("body", "orelse", "finalbody") if isinstance(getattr(node, name, None), list)
    ]
    found.extend(handler.body for handler in getattr(node, "handlers", []))
    found.extend(case.body for case in getattr(node, "cases", []))
    return found


def decorator_names(index: ModuleIndex, decorators: list[ast.expr]) -> tuple[str, ...]:
    """The dotted names of decorators; one that is called by the name of what is called."""
    return tuple(index.dotted(d.func if isinstance(d, ast.Call) else d) or "?" for d in decorators)


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """As :func:`ast.walk`, in another order and three times as fast."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        _push_children(stack, current)


def own_nodes(node: FunctionNode) -> Iterator[ast.AST]:
    """All nodes of a function's body but those inside functions and classes in it."""
    stack: list[ast.AST] = list(node.body) if isinstance(node.body, list) else [node.body]
    while stack:
        current = stack.pop()
        yield current
        if not isinstance(current, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            _push_children(stack, current)


def _push_children(stack: list[ast.AST], node: ast.AST) -> None:
    for name in node._fields:
        child = getattr(node, name, None)
        if isinstance(child, ast.AST):
            stack.append(child)
        elif isinstance(child, list):
            stack.extend([item for item in child if isinstance(item, ast.AST)])
