"""Writes ``torch_api/<version>.json`` from the stubs of an installed torch: ``python -m
breakscan.analysis.generate_torch_api [FOLDER OF torch]``.

Reads ``.pyi`` and ``.py`` files only; torch is never imported.  What stubs do not say (which dtype class a
function returns) is not in the file.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

TENSOR_ANNOTATIONS = {"Tensor", "torch.Tensor", "Self", "Parameter"}
CONTAINERS = {"Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"}
PYTHON_ANNOTATIONS = {"_bool", "_int", "_float", "bool", "int", "float", "str", "Number", "complex", "SymInt"}


# Written in Python without a return annotation.
UNANNOTATED = {
    "atleast_1d": "tensor",
    "atleast_2d": "tensor",
    "atleast_3d": "tensor",
    "block_diag": "tensor",
    "broadcast_tensors": "tensors",
    "cdist": "tensor",
    "chain_matmul": "tensor",
    "istft": "tensor",
    "lu": "tensors",
    "norm": "tensor",
    "split": "tensors",
    "stft": "tensor",
    "tensordot": "tensor",
    "unique": "tensor",
    "unique_consecutive": "tensor",
    "share_memory_": "tensor",
}


def annotation_kind(node: ast.expr | None) -> str:
    """``tensor``, ``tensors`` (a tuple or list of them), ``size``, ``python`` (a number, text or flag) or ``other``."""
    if node is None:
        return "other"
    text = ast.unparse(node)
    if text in TENSOR_ANNOTATIONS:
        return "tensor"
    if text == "Size":
        return "size"
    if text in PYTHON_ANNOTATIONS:
        return "python"
    if text.startswith("torch.return_types.") or ("Tensor" in text and text.lower().startswith(("tuple[", "list["))):
        return "tensors"
    return "other"


def returns(body: list[ast.stmt]) -> Iterator[tuple[str, str, bool]]:
    """``(name, kind, is_property)`` for every public function or property of a body."""
    for node in body:
        if isinstance(node, ast.FunctionDef) and public(node.name):
            decorators = {ast.unparse(d) for d in node.decorator_list}
            yield node.name, annotation_kind(node.returns), "property" in decorators
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and public(node.target.id):
            yield node.target.id, annotation_kind(node.annotation), True


def public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def grouped(entries: Iterable[tuple[str, str, bool]], properties: bool) -> dict[str, list[str]]:
    """Names by kind.  ``varies`` holds those with overloads that return a tensor, or several."""
    kinds: dict[str, set[str]] = {}
    for name, kind, is_property in entries:
        if is_property is properties:
            kinds.setdefault(name, set()).add(UNANNOTATED.get(name, kind))
    groups: dict[str, list[str]] = {}
    for name, found in sorted(kinds.items()):
        known = found - {"other"}
        kind = "varies" if {"tensor", "tensors"} <= known else min(known, default="other")
        groups.setdefault(kind, []).append(name)
    return groups


def class_body(path: Path, name: str) -> list[ast.stmt]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def module_body(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text(encoding="utf-8")).body


def annotated_assignments(path: Path) -> Iterator[str]:
    """Names that ``torch/linalg/__init__.py`` and its kin define by ``name = _add_docstr(…)``."""
    for node in module_body(path):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            yield from (t.id for t in node.targets if isinstance(t, ast.Name) and public(t.id))


def modules(torch: Path) -> dict[str, list[str]]:
    """Classes of ``torch.nn``: all, and those that make parameters themselves or through a base."""
    bases: dict[str, list[str]] = {}
    makes: set[str] = set()
    for path in sorted((torch / "nn" / "modules").glob("*.py")):
        for node in module_body(path):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [ast.unparse(b).rsplit(".", 1)[-1] for b in node.bases]
                source = ast.unparse(node)
                makers = ("Parameter(", "Linear(", "LayerNorm(", "MultiheadAttention(", "LSTMCell")
                if node.name not in CONTAINERS and any(maker in source for maker in makers):
                    makes.add(node.name)

    def is_module(name: str, seen: frozenset[str] = frozenset()) -> bool:
        return name == "Module" or any(is_module(b, seen | {name}) for b in bases.get(name, []) if b not in seen)

    def has_parameters(name: str, seen: frozenset[str] = frozenset()) -> bool:
        return name in makes or any(has_parameters(b, seen | {name}) for b in bases.get(name, []) if b not in seen)

    found = sorted(name for name in bases if is_module(name) and not name.startswith("_"))
    return {"all": found, "with_parameters": [n for n in found if has_parameters(n)]}


def facts(torch: Path) -> dict[str, object]:
    """The contents of the file, for the torch in that folder."""
    base = class_body(torch / "_C" / "__init__.pyi", "TensorBase")
    own = class_body(torch / "_tensor.py", "Tensor")
    functions = module_body(torch / "_C" / "_VariableFunctions.pyi") + module_body(torch / "functional.py")
    functional = module_body(torch / "nn" / "functional.pyi") + module_body(torch / "nn" / "functional.py")
    return {
        "methods": grouped((e for body in (base, own) for e in returns(body)), properties=False),
        "attributes": grouped((e for body in (base, own) for e in returns(body)), properties=True),
        "functions": grouped(returns(functions), properties=False),
        "functional": grouped(returns(functional), properties=False),
        "namespaces": {
            name: sorted(set(annotated_assignments(torch / name / "__init__.py")))
            for name in ("linalg", "fft", "special")
        },
        "modules": modules(torch),
    }


def main() -> None:
    if len(sys.argv) > 1:
        torch = Path(sys.argv[1])
    else:
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.origin is None:
            sys.exit("torch is not installed: name its folder")
        torch = Path(spec.origin).parent
    version = (torch / "version.py").read_text(encoding="utf-8").split("__version__ = '")[1].split("'")[0]
    short = ".".join(version.split(".")[:2])
    target = Path(__file__).parent / "torch_api" / f"{short}.json"
    target.write_text(json.dumps(facts(torch), indent=0, sort_keys=True) + "\n", encoding="utf-8")
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
