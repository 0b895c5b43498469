"""Reads the Python that Inductor generates: which kernels it calls, and where it says that they come from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum


class KernelKind(str, Enum):
    """The origin of a kernel."""

    TRITON = "triton"
    CPP = "cpp"
    EXTERN = "extern"
    """A library's, such as a matrix product."""
    FALLBACK = "fallback"
    """An operator that Inductor has no kernel for: torch's own eager one, or one of the program's own."""
    OTHER = "other"
    """Generated in another language, such as CUTLASS or Metal."""


_ORIGINS = re.compile(r"# .*?Source Nodes: \[(?P<nodes>.*?)\], Original ATen: \[(?P<operators>.*?)\]")
_MAPPED = re.compile(r"^#   (?P<node>\S+) => (?P<mapped>.+)$")
_RUNNING = re.compile(r"call$|partition_\d+$")
"""The functions that are run, once for each run of the graph."""
_KINDS = {"triton": KernelKind.TRITON, "multi_kernel": KernelKind.TRITON}
_ALIASES = {"aten": "torch.ops.aten", "inductor_ops": "torch.ops.inductor", "_quantized": "torch.ops._quantized"}
"""Names that the code gives to namespaces of operators."""


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of a kernel: the names of the nodes that it does the work of, in Dynamo's graph or AOTAutograd's, those in
    AOTAutograd's graph alone where the code names them, and the ATen operators that they come from."""

    kernel: str
    kind: KernelKind
    nodes: tuple[str, ...]
    autograd_nodes: tuple[str, ...]
    operators: tuple[str, ...]


def kernel_calls(code: str) -> Iterator[KernelCall]:
    """The calls of kernels in one run of the code, in their order; none where the code is not Python, or cut off."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = code.split("\n")
    defined = dict(_definitions(tree))
    for function in _running(tree):
        comments = _Comments(lines, function)
        for node in _calls_in_order(function):
            named = _kernel(node, defined)
            if named is None:
                continue
            kernel, kind = named
            nodes, operators = ((), ()) if kind is KernelKind.CPP else comments.before(node.lineno)
            mapping = _mapping(lines, defined[kernel][1]) if kernel in defined else {}
            if kind in (KernelKind.EXTERN, KernelKind.FALLBACK):
                nodes, operators = _of_one_operator(kernel, nodes, operators)
            mapped = tuple(name for node_name in nodes for name in mapping.get(node_name, ()))
            yield KernelCall(kernel, kind, nodes, mapped, operators)


def _definitions(tree: ast.Module) -> Iterator[tuple[str, tuple[KernelKind, int]]]:
    """The kernels that the module defines, each with its kind and its line."""
    for node in tree.body:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        compiler = _dotted(node.value.func)
        if compiler and compiler.startswith("async_compile.") and isinstance(node.targets[0], ast.Name):
            language = compiler.partition(".")[2]
            kind = KernelKind.CPP if language.startswith("cpp") else _KINDS.get(language, KernelKind.OTHER)
            yield node.targets[0].id, (kind, node.lineno)


def _running(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    for body in bodies:
        for node in body:
            if isinstance(node, ast.FunctionDef) and _RUNNING.match(node.name):
                yield node


def _calls_in_order(function: ast.FunctionDef) -> list[ast.Call]:
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    return sorted(calls, key=lambda node: (node.lineno, node.col_offset))


def _kernel(call: ast.Call, defined: Mapping[str, tuple[KernelKind, int]]) -> tuple[str, KernelKind] | None:
    """The name and kind of the kernel that is called."""
    name = _dotted(call.func)
    if name is None:
        return None
    own = name.removesuffix(".run")
    if own in defined:
        return own, defined[own][0]
    head, _, rest = name.partition(".")
    name = f"{_ALIASES[head]}.{rest}" if head in _ALIASES and rest else name
    if name.startswith("extern_kernels."):
        return name, KernelKind.EXTERN
    if name.startswith("torch.ops.") and "_alloc_from_pool" not in name:
        return name, KernelKind.FALLBACK
    return None


def _dotted(node: ast.expr) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


class _Comments:
    """The comments in a function, each about the call that follows it."""

    def __init__(self, lines: list[str], function: ast.FunctionDef) -> None:
        self._found = [
            (number, found)
            for number in range(function.lineno, (function.end_lineno or function.lineno) + 1)
            if (found := _ORIGINS.search(lines[number - 1]))
        ]

    def before(self, line: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The nodes and operators of the comment before a call, which no call before it has taken."""
        taken = None
        while self._found and self._found[0][0] < line:
            taken = self._found.pop(0)[1]
        return (_items(taken["nodes"]), _items(taken["operators"])) if taken else ((), ())


def _items(text: str) -> tuple[str, ...]:
    return tuple(item for item in text.split(", ") if item)


def _of_one_operator(
    kernel: str, nodes: tuple[str, ...], operators: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The comment on a library's kernel also names what its operands come from; what it does itself comes last."""
    parts = kernel.removeprefix("torch.ops.").split(".")
    own = f"aten.{parts[1]}" if parts[0] == "extern_kernels" else ".".join(parts[:2])
    return nodes[-1:], (own,) if own in operators or parts[0] != "extern_kernels" else operators[-1:]


def _mapping(lines: list[str], line: int) -> dict[str, tuple[str, ...]]:
    """The nodes of AOTAutograd's graph that each node is, by the comment above the definition at a line."""
    found: dict[str, tuple[str, ...]] = {}
    for text in reversed(lines[: line - 1]):
        if not text.startswith("#"):
            break
        if mapped := _MAPPED.match(text):
            found[mapped["node"]] = _items(mapped["mapped"])
    return found
