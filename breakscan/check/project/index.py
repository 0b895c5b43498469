"""The index of a file: its imports, classes and functions.  Reads an ast, runs nothing."""

import ast
import builtins
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Protocol, TypeVar

from breakscan.model.observations import FunctionSeen
from breakscan.source.module import SourceModule
from breakscan.source.walking import FunctionNode, blocks, is_name, own_nodes, walk

BUILTINS = frozenset(dir(builtins))
_STORE = r"{0}\.\w+(?:[^=\n(]*(?<![=!])=(?!=)| *: *[^\s]| in )|\bas\s{0}\."
"""A line that may assign an attribute of a name; the others that may are continued, or end a target of many lines."""
_STORE_OF_LINES = re.compile(r"\\\n|\n\s*[)\]]+\s*=(?!=)|\bas\s\(")

Answer = TypeVar("Answer")


class Resolver(Protocol):
    """The questions of a file about other files; ``imports.Project`` implements it."""

    def find(self, dotted: str, index: "ModuleIndex") -> "Definition | None": ...
    def star(self, index: "ModuleIndex", name: str) -> str | None: ...
    def is_module(self, info: "ClassInfo") -> bool: ...
    def bases_of(self, info: "ClassInfo") -> "Sequence[ClassInfo]": ...
    def once(self, key: object, index: "ModuleIndex", find: Callable[[], Answer]) -> Answer: ...
    def seen_in(self, index: "ModuleIndex") -> Mapping[str, FunctionSeen]: ...


@dataclass(eq=False)
class FunctionInfo:
    """A function or method of a file.  ``qualname`` is as Python would give it; ``evidence`` is what
    ``parameters`` gathers of its body, once."""

    node: FunctionNode
    qualname: str
    index: "ModuleIndex" = field(repr=False)
    owner: "ClassInfo | None" = None
    name: str = field(init=False)
    decorators: tuple[str, ...] = ()
    nested: bool = False
    evidence: object | None = field(default=None, repr=False)
    small: bool | None = None

    def __post_init__(self) -> None:
        self.name = self.qualname.rsplit(".", 1)[-1]

    @cached_property
    def own_nodes(self) -> tuple[ast.AST, ...]:
        """The nodes of its body, without the bodies of functions and classes in it: many questions walk over them."""
        return tuple(own_nodes(self.node))

    @cached_property
    def own_calls(self) -> tuple[ast.Call, ...]:
        return tuple(node for node in self.own_nodes if isinstance(node, ast.Call))

    @cached_property
    def stored_attributes(self) -> frozenset[str]:
        """The attributes, of any object, that the function assigns or deletes."""
        nodes = (one for one in self.own_nodes if isinstance(one, ast.Attribute) and not isinstance(one.ctx, ast.Load))
        return frozenset(one.attr for one in nodes)

    @cached_property
    def own_attributes(self) -> frozenset[str]:
        """The attributes of its object that a method assigns."""
        receiver = self.receiver
        text = "\n".join(self.index.module.lines[self.node.lineno - 1 : self.node.end_lineno])
        if receiver is None or not (re.search(_STORE.format(receiver), text) or _STORE_OF_LINES.search(text)):
            return frozenset()  # nearly all: to walk over them takes long
        attributes = (one for one in self.own_nodes if isinstance(one, ast.Attribute))
        return frozenset(a.attr for a in attributes if isinstance(a.ctx, ast.Store) and is_name(a.value, receiver))

    @cached_property
    def free_names(self) -> frozenset[str]:
        """The names that it uses, without its parameters and those of functions in it."""
        nodes = list(walk(self.node))
        used = {n.id for n in nodes if isinstance(n, ast.Name)}
        return frozenset(used - {a.arg for a in nodes if isinstance(a, ast.arg)})

    @property
    def first_parameter(self) -> str | None:
        given = [*self.node.args.posonlyargs, *self.node.args.args]
        return given[0].arg if given else None

    def argument(self, name: str) -> ast.arg | None:
        given = self.node.args
        return next((a for a in (*given.posonlyargs, *given.args, *given.kwonlyargs) if a.arg == name), None)

    @property
    def is_static(self) -> bool:
        return "staticmethod" in self.decorators

    @cached_property
    def receiver(self) -> str | None:
        """The name of the object, or of the class, that a method is called on."""
        return None if self.owner is None or self.is_static else self.first_parameter

    @property
    def is_property(self) -> bool:
        return any(d in ("property", "functools.cached_property") for d in self.decorators)

    @cached_property
    def defaults(self) -> dict[str, ast.expr]:
        given = self.node.args
        names = [a.arg for a in (*given.posonlyargs, *given.args)]
        found = dict(zip(names[::-1], given.defaults[::-1], strict=False))
        return found | {a.arg: d for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is not None}

    @cached_property
    def is_generator(self) -> bool:
        found = (isinstance(node, ast.Yield | ast.YieldFrom) for node in self.own_nodes)
        return "yield" in self.index.module.text and any(found)


@dataclass(eq=False, slots=True)
class ClassInfo:
    """A class of a file.  ``bases`` are dotted names, ``methods`` those that it defines itself."""

    node: ast.ClassDef
    qualname: str
    index: "ModuleIndex" = field(repr=False)
    bases: tuple[str, ...]
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    decorators: tuple[str, ...] = ()
    setters: dict[str, list[FunctionInfo]] | None = field(default=None, repr=False)


@dataclass(eq=False, slots=True)
class ModuleIndex:
    """All that a file defines.  ``name`` is the dotted name by which other files import it, ``roots`` the folders from
    which it imports.  ``imports`` maps a local name to its dotted name, ``stars`` are the modules that it imports with
    ``*``, ``assigned`` the names that its top level assigns."""

    module: SourceModule
    name: str
    is_package: bool
    roots: tuple[str, ...]
    project: Resolver = field(repr=False)
    imports: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    assigned: set[str] = field(default_factory=set)
    functions: dict[str, FunctionInfo] = field(default_factory=dict)
    classes: dict[str, ClassInfo] = field(default_factory=dict)
    all_functions: dict[FunctionNode, FunctionInfo] = field(default_factory=dict)
    remembered: dict[object, object] = field(default_factory=dict, repr=False)
    """Results about the file, its functions and its classes, cached for all files that import it."""
    answers: dict[object, Any] = field(default_factory=dict, repr=False)
    """The answers to questions about the file with what they loaded, see ``Project.once``."""
    closures: list[dict[str, Any]] = field(default_factory=list, repr=False)
    """The names that functions in ``remembered`` refer to."""

    @property
    def tree(self) -> ast.Module:
        return self.module.tree

    def forget(self) -> None:
        """Drops the results of interpreting the file."""
        for names in self.closures:
            names.clear()
        self.remembered.clear()
        self.closures.clear()

    def release(self) -> None:
        """Frees all that it holds, so that the trees go at once and no collector has to look for them."""
        for info in self.classes.values():
            info.methods.clear()
            info.setters = None
        self.forget()
        for part in (self.functions, self.classes, self.all_functions, self.answers):
            part.clear()
        self.module = SourceModule(self.module.path, self.module.display, "", ast.Module([], []))

    def dotted(self, node: ast.expr) -> str | None:
        """The import-resolved dotted name of ``a.b.c``: ``torch.nn.functional.relu`` for ``F.relu``."""
        rest = ""
        while node.__class__ is ast.Attribute:
            rest = f".{node.attr}{rest}"
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        head = self.imports.get(node.id)
        if head is None:
            head = self._through_star(node.id) if self.stars else node.id
        return canonical(head + rest) if head.startswith("torch") else head + rest

    def _through_star(self, name: str) -> str:
        known = name in self.functions or name in self.classes or name in self.assigned or name in BUILTINS
        found = None if known else self.project.star(self, name)
        if found is not None:
            self.imports[name] = found
        return found or name

    def class_named(self, dotted: str) -> ClassInfo | None:
        """The class of this file, or of one that the project holds, that goes by a dotted name."""
        found = self.classes.get(dotted) or self.project.find(dotted, self)
        return found if isinstance(found, ClassInfo) else None

    def function_named(self, dotted: str) -> FunctionInfo | None:
        """The function of this file, or of one that the project holds, that goes by a dotted name."""
        found = self.functions.get(dotted) or self.project.find(dotted, self)
        return found if isinstance(found, FunctionInfo) else None

    def global_named(self, dotted: str) -> "GlobalName | None":
        """The name at the top level of this file, or of one that the project holds, that goes by a dotted name."""
        found = GlobalName(self, dotted) if dotted in self.assigned else self.project.find(dotted, self)
        return found if isinstance(found, GlobalName) else None


@dataclass(frozen=True, slots=True)
class GlobalName:
    """A name that the top level of a file assigns."""

    index: ModuleIndex
    name: str


Definition = FunctionInfo | ClassInfo | ModuleIndex | GlobalName
MOST_NAMES_KEPT = 4_096
_ALIASES = (
    ("torch.nn.modules.module.Module", "torch.nn.Module"),
    ("torch.functional.", "torch."),
    ("torch._tensor.Tensor", "torch.Tensor"),
    ("torch.nn.parameter.", "torch.nn."),
)


@lru_cache(maxsize=MOST_NAMES_KEPT)
def canonical(dotted: str) -> str:
    """One spelling for names that torch offers under several."""
    if not dotted.startswith("torch."):
        return dotted
    for alias, name in _ALIASES:
        if dotted.startswith(alias):
            return name + dotted[len(alias) :]
    if dotted.startswith("torch.nn.modules."):
        last = dotted.rpartition(".")[2]
        if dotted.count(".") == 4 or (dotted.count(".") == 3 and last[:1].isupper()):
            return f"torch.nn.{last}"
    return dotted


def build_index(
    module: SourceModule, name: str, is_package: bool, roots: tuple[str, ...], project: Resolver
) -> ModuleIndex:
    """The index of a parsed file."""
    index = ModuleIndex(module, name, is_package, roots, project)
    _define(index, module.tree.body, "", None, nested=False)
    return index


def _define(index: ModuleIndex, body: list[ast.stmt], prefix: str, owner: ClassInfo | None, nested: bool) -> None:
    for node in body:
        if node.__class__ in _SIMPLE:
            if owner is None and not nested:
                _assign(index, node)
            _decorate(index, node, body)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            _import(index, node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = decorator_names(index, node.decorator_list)
            info = FunctionInfo(node, prefix + node.name, index, owner, decorators, nested)
            index.all_functions[node] = info
            if owner is not None:
                # A property's setter would hide its getter.
                if not any(d.endswith((".setter", ".deleter")) for d in info.decorators):
                    owner.methods[node.name] = info
            elif not nested:
                index.functions[node.name] = info
            _define(index, node.body, f"{prefix}{node.name}.<locals>.", None, nested=True)
        elif isinstance(node, ast.ClassDef):
            # The name of `Base[int]` is `Base`.
            named = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
            bases = tuple(index.dotted(base) or "?" for base in named if not isinstance(base, ast.Starred))
            made = ClassInfo(node, prefix + node.name, index, bases, {}, decorator_names(index, node.decorator_list))
            if not nested:
                index.classes[node.name] = made
            _define(index, node.body, f"{prefix}{node.name}.", made, nested)
        else:
            if owner is None and not nested:
                _assign(index, node)
            for inner in blocks(node):
                _define(index, inner, prefix, owner, nested)


_SIMPLE = frozenset(
    {ast.Expr, ast.Assign, ast.Return, ast.AugAssign, ast.AnnAssign, ast.Raise, ast.Assert, ast.Pass, ast.Delete}
)
"""Statements that hold no others, and define nothing but names."""


def _decorate(index: ModuleIndex, node: ast.stmt, body: list[ast.stmt]) -> None:
    """Takes ``f = torch.compiler.disable(f)`` for a decorator of the function above it."""
    match node:
        case ast.Assign(targets=[ast.Name(name)], value=ast.Call(func, [ast.Name(given)])) if name == given:
            [made] = decorator_names(index, [func])
            for one in body if made.startswith(("torch.compiler.", "torch._dynamo.")) else ():
                if isinstance(one, ast.FunctionDef) and one.name == name and one in index.all_functions:
                    info = index.all_functions[one]
                    info.decorators = (made, *info.decorators)


def _assign(index: ModuleIndex, node: ast.stmt) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        for part in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
            if isinstance(part, ast.Name):
                index.assigned.add(part.id)


def _import(index: ModuleIndex, node: ast.Import | ast.ImportFrom) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            name = alias.asname or alias.name.split(".")[0]
            index.imports[name] = alias.name if alias.asname else name
        return
    base = _absolute(index, node)
    joint = "" if base.endswith(".") or not base else "."
    for alias in node.names:
        if alias.name == "*":
            index.stars.append(base)
        else:
            index.imports[alias.asname or alias.name] = f"{base}{joint}{alias.name}"


def _absolute(index: ModuleIndex, node: ast.ImportFrom) -> str:
    """The dotted name of the module of a ``from`` import; with its dots where it leads out of the package."""
    if not node.level:
        return node.module or ""
    package = index.name.split(".") if index.name else []
    up = node.level - 1 if index.is_package else node.level
    if up >= len(package) + index.is_package:
        return "." * node.level + (node.module or "")
    kept = package[: len(package) - up]
    return ".".join([*kept, *([node.module] if node.module else [])])


def decorator_names(index: ModuleIndex, decorators: list[ast.expr]) -> tuple[str, ...]:
    """The dotted names of decorators; one that is called by the name of what is called."""
    return tuple(index.dotted(d.func if isinstance(d, ast.Call) else d) or "?" for d in decorators)
