"""Where the compiler starts, and what it never enters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from breakscan.analysis.index import ClassInfo, FunctionInfo, ModuleIndex, walk
from breakscan.findings import Region

_COMPILES = re.compile(r"\bcompile\b|\bexport\b|\boptimize\b")
COMPILERS = frozenset({"torch.compile", "torch.export.export", "torch._dynamo.optimize"})
_DISABLING = frozenset({"torch.compiler.disable", "torch._dynamo.disable"})
_UNTRACED = _DISABLING | frozenset(
    {
        "torch._disable_dynamo",
        "torch.jit.ignore",
        "torch.jit.unused",
        "torch.library.custom_op",
        "torch.library.impl",
        "torch.library.register_fake",
        "torch.compiler.assume_constant_result",
        "torch.compiler.allow_in_graph",
        "torch._dynamo.allow_in_graph",
        "torch._dynamo.nonstrict_trace",
        "torch.compiler.nonstrict_trace",
        "triton.jit",
    }
)
# Methods that run while a model is built, saved or shown, not while it computes.
_NEVER_COMPILED = frozenset(
    "__init__ __new__ __repr__ __str__ __len__ __del__ __getstate__ __setstate__ __reduce__ __init_subclass__ "
    "extra_repr reset_parameters _init_weights init_weights from_pretrained save_pretrained state_dict "
    "load_state_dict _load_from_state_dict setUp tearDown".split()
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A function that the compiler is handed, and how.  ``compiled`` tells that the file itself does so."""

    function: FunctionInfo
    region: Region
    compiled: bool = True


def is_untraced(info: FunctionInfo) -> bool:
    """Whether a decorator keeps Dynamo out of the function."""
    return any(name in _UNTRACED or name.endswith((".custom_op", ".register_kernel")) for name in info.decorators)


def disabling_decorator(info: FunctionInfo) -> str | None:
    """The decorator by which the function, when traced code calls it, ends the graph; None without one."""
    return next((name for name in info.decorators if name in _DISABLING), None)


def find_entries(index: ModuleIndex, text: str, path: str, mode: str) -> list[Entry]:
    """The entries of a file.

    ``auto`` takes what the file itself compiles, else every ``nn.Module.forward``; ``roots`` and ``modules``
    take one of the two; ``all`` takes every function that could be compiled.
    """
    roots = _unique(_roots(index, path)) if mode != "modules" and _COMPILES.search(text) else []
    if mode == "roots" or (mode == "auto" and roots):
        return roots
    if mode == "all":
        return _unique([*roots, *_everything(index, path)])
    return _unique(_forwards(index, path))


def _unique(entries: Iterator[Entry] | list[Entry]) -> list[Entry]:
    found: dict[FunctionInfo, Entry] = {}
    for entry in entries:
        if not is_untraced(entry.function):
            found.setdefault(entry.function, entry)
    return list(found.values())


def _forwards(index: ModuleIndex, path: str) -> Iterator[Entry]:
    for owner in index.classes.values():
        forward = owner.methods.get("forward")
        if forward is not None and index.is_module(owner):
            yield Entry(forward, Region(path, forward.node.lineno, "nn.Module.forward"), compiled=False)


def _everything(index: ModuleIndex, path: str) -> Iterator[Entry]:
    for info in index.all_functions:
        if not info.nested and info.name not in _NEVER_COMPILED:
            yield Entry(info, Region(path, info.node.lineno, "any function"), compiled=False)


def _roots(index: ModuleIndex, path: str) -> Iterator[Entry]:
    for info in index.all_functions:
        node = info.node
        assert not isinstance(node, ast.Lambda)
        for decorator in node.decorator_list:
            if is_compiler(index, decorator):
                yield Entry(info, Region(path, decorator.lineno, "@torch.compile"))
    for owner in index.classes.values():
        for decorator in owner.node.decorator_list:
            forward = index.method(owner, "forward")
            if forward is not None and is_compiler(index, decorator):
                yield Entry(forward, Region(path, decorator.lineno, "@torch.compile"))
    variables = _variables(index)
    for call in walk(index.tree):
        if isinstance(call, ast.Call):
            for info in _compiled_by(index, call, variables):
                yield Entry(info, Region(path, call.lineno, _spelling(call)))


def is_compiler(index: ModuleIndex, decorator: ast.expr) -> bool:
    """Whether a decorator is ``torch.compile``, with or without arguments, or a partial of it."""
    if isinstance(decorator, ast.Call):
        name = index.dotted(decorator.func)
        if name == "functools.partial" and decorator.args:
            return index.dotted(decorator.args[0]) == "torch.compile"
        return name == "torch.compile" and not decorator.args
    return index.dotted(decorator) == "torch.compile"


def _spelling(node: ast.Call) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:39] + "…"


def _compiled_by(
    index: ModuleIndex, node: ast.Call, variables: dict[str, ClassInfo | FunctionInfo]
) -> Iterator[FunctionInfo]:
    """The functions of the file that a call hands to the compiler."""
    target: ast.expr | None = None
    if index.dotted(node.func) in COMPILERS:
        keywords = {k.arg: k.value for k in node.keywords}
        target = node.args[0] if node.args else keywords.get("model", keywords.get("mod"))
    elif isinstance(node.func, ast.Call) and is_compiler(index, node.func) and node.args:
        target = node.args[0]
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "compile":
        # `model.compile()`; re.compile and the like name no module of the file.
        found = _resolve(index, node.func.value, variables)
        if isinstance(found, ClassInfo) and index.is_module(found):
            forward = index.method(found, "forward")
            if forward is not None:
                yield forward
        return
    if target is None:
        return
    found = _resolve(index, target, variables)
    if isinstance(found, FunctionInfo):
        yield found
    elif found is not None:
        forward = index.method(found, "forward") or index.method(found, "__call__")
        if forward is not None:
            yield forward


def _variables(index: ModuleIndex) -> dict[str, ClassInfo | FunctionInfo]:
    """Names and ``self`` attributes that are assigned an instance of a class of the file, or a function."""
    found: dict[str, ClassInfo | FunctionInfo] = {}
    for node in walk(index.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            key = ast.unparse(node.targets[0]) if isinstance(node.targets[0], ast.Name | ast.Attribute) else ""
            value = _resolve(index, node.value, found)
            if key and value is not None:
                found.setdefault(key, value)
    return found


def _resolve(
    index: ModuleIndex, node: ast.expr, variables: dict[str, ClassInfo | FunctionInfo]
) -> ClassInfo | FunctionInfo | None:
    """The class (of an instance) or function that an expression stands for."""
    if isinstance(node, ast.IfExp):
        return _resolve(index, node.body, variables) or _resolve(index, node.orelse, variables)
    if isinstance(node, ast.Call):
        if index.dotted(node.func) in COMPILERS and node.args:
            return _resolve(index, node.args[0], variables)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda", "eval", "train", "cpu", "half"):
            return _resolve(index, node.func.value, variables)
        return index.classes.get(ast.unparse(node.func))
    if isinstance(node, ast.Name):
        return index.functions.get(node.id) or variables.get(node.id)
    if isinstance(node, ast.Attribute):
        text = ast.unparse(node)
        if text in variables:
            return variables[text]
        owner = _resolve(index, node.value, variables)
        if isinstance(owner, ClassInfo):
            return index.method(owner, node.attr)
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            candidates = [c.methods[node.attr] for c in index.classes.values() if node.attr in c.methods]
            return candidates[0] if len(candidates) == 1 else None
    return None
