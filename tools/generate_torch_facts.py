"""Writes ``breakscan/rulebook/torch_facts/data/<version>.json`` from an installed torch: ``python -m
tools.generate_torch_facts [FOLDER OF torch]``.

Which functions there are and what kind of thing they return is read off the stubs; what stubs do not say, such as
dtype classes, ``measure_torch_facts.py`` sees by running the operators.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.measure_torch_facts import Measured, measured, measured_factories

TENSOR_ANNOTATIONS = {"Tensor", "torch.Tensor", "Self", "Parameter"}
CONTAINERS = {"Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"}
PYTHON_ANNOTATIONS = {"_bool", "_int", "_float", "bool", "int", "float", "str", "Number", "complex", "SymInt"}


# Neither annotated nor in the tests of operators.
UNANNOTATED = {"chain_matmul": "tensor", "istft": "tensor", "lu": "tensors", "share_memory_": "tensor"}

# Modules of functions besides torch itself, with the file that defines them.
NAMESPACES = {
    "fft": "fft/__init__.py",
    "linalg": "linalg/__init__.py",
    "nested": "nested/__init__.py",
    "nn.init": "nn/init.py",
    "nn.utils.rnn": "nn/utils/rnn.py",
    "signal.windows": "signal/windows/windows.py",
    "sparse": "sparse/__init__.py",
    "special": "special/__init__.py",
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
        if isinstance(node, ast.If):
            yield from returns(node.body)
            yield from returns(node.orelse)
        elif isinstance(node, ast.FunctionDef) and public(node.name):
            yield node.name, annotation_kind(node.returns), "property" in decorators(node)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and public(node.target.id):
            yield node.target.id, annotation_kind(node.annotation), True


def public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def grouped(
    entries: Iterable[tuple[str, str, bool]], properties: bool = False, run: dict[str, Measured] | None = None
) -> dict[str, list[str]]:
    """Names by kind.  ``varies`` holds those with overloads that return a tensor, or several; ``run`` has those
    that no stub has."""
    kinds: dict[str, set[str]] = {}
    for name, kind, is_property in entries:
        if is_property is properties:
            kinds.setdefault(name, set()).add(UNANNOTATED.get(name, kind))
    for name, one in (run or {}).items():
        if not kinds.setdefault(name, set()) - {"other"}:
            kinds[name] |= one.kinds
    groups: dict[str, list[str]] = {}
    for name, found in sorted(kinds.items()):
        others = found - {"other"}
        kind = "varies" if {"tensor", "tensors"} <= others else min(others, default="other")
        groups.setdefault(kind, []).append(name)
    return groups


def class_body(path: Path, name: str) -> list[ast.stmt]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def module_body(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text(encoding="utf-8")).body


def documented(body: list[ast.stmt]) -> Iterator[tuple[str, str, bool]]:
    """The functions that ``torch/linalg/__init__.py`` and its kin define by ``name = _add_docstr(…)``."""
    for node in body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if ast.unparse(node.value.func) == "_add_docstr":
            yield from ((t.id, "tensor", False) for t in node.targets if isinstance(t, ast.Name) and public(t.id))


def imported(body: list[ast.stmt], sources: dict[str, dict[str, str]]) -> Iterator[tuple[str, str, bool]]:
    """The names that a stub imports from those of ``sources``: module → name → kind."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module in sources:
            for alias in node.names:
                if kind := sources[node.module].get(alias.name):
                    yield alias.asname or alias.name, kind, False


def exported(body: list[ast.stmt]) -> list[ast.stmt]:
    """The functions that ``__all__`` names."""
    names = {
        constant.value
        for node in body
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and "__all__" in ast.unparse(node).split("=")[0]
        for constant in ast.walk(node)
        if isinstance(constant, ast.Constant)
    }
    return [node for node in body if isinstance(node, ast.FunctionDef) and node.name in names]


def kinds_of(body: list[ast.stmt]) -> dict[str, str]:
    return {name: kind for kind, names in grouped(returns(body)).items() for name in names}


def dispatched(body: list[ast.stmt]) -> tuple[list[tuple[str, str, bool]], dict[str, set[str]]]:
    """Functions that ``boolean_dispatch`` makes of two: their kinds, and the flags that choose."""
    annotations = {node.name: annotation_kind(node.returns) for node in body if isinstance(node, ast.FunctionDef)}
    calls: dict[str, dict[str, ast.expr]] = {}
    for node in body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if ast.unparse(node.value.func) == "boolean_dispatch":
            calls[ast.unparse(node.targets[0])] = {k.arg: k.value for k in node.value.keywords if k.arg}

    def kinds(name: str) -> set[str]:
        if name in calls:
            return kinds(ast.unparse(calls[name]["if_true"])) | kinds(ast.unparse(calls[name]["if_false"]))
        return {annotations.get(name, "other")}

    found = [(name, kind, False) for name in calls if public(name) for kind in sorted(kinds(name))]
    flags: dict[str, set[str]] = {}
    for given in calls.values():
        flags.setdefault(ast.literal_eval(given["func_name"]), set()).add(ast.literal_eval(given["arg_name"]))
    return found, flags


def choosers(body: list[ast.stmt]) -> dict[str, set[str]]:
    """For functions that return one tensor or several, by overload: the arguments that make it several."""
    overloads: dict[str, dict[str, list[set[str]]]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and (kind := annotation_kind(node.returns)) in ("tensor", "tensors"):
            overloads.setdefault(node.name, {"tensor": [], "tensors": []})[kind].append(needed(node.args))
    return {
        name: set[str]().union(*found["tensors"]).difference(*found["tensor"])
        for name, found in overloads.items()
        if found["tensor"] and found["tensors"]
    }


def needed(arguments: ast.arguments) -> set[str]:
    """The parameters that a call of this overload must give."""
    positional = [*arguments.posonlyargs, *arguments.args]
    required = positional[: len(positional) - len(arguments.defaults)]
    required += [a for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is None]
    return {a.arg for a in required}


def result_fields(torch: Path) -> dict[str, str]:
    """The named results of functions, in their order, such as ``max`` → ``values indices``."""
    found = {}
    for node in module_body(torch / "return_types.pyi"):
        if isinstance(node, ast.ClassDef) and public(node.name):
            name = node.name.replace("linalg_", "linalg.", 1)
            fields = [n.name for n in node.body if isinstance(n, ast.FunctionDef) and "property" in decorators(n)]
            found[name] = " ".join(fields)
    return found


def decorators(node: ast.FunctionDef) -> set[str]:
    return {ast.unparse(d) for d in node.decorator_list}


def variadic(body: list[ast.stmt]) -> set[str]:
    """Functions that return as many tensors as the call decides; those without an annotation may."""
    found = set()
    for node in body:
        if isinstance(node, ast.If):
            found |= variadic(node.body) | variadic(node.orelse)
        elif isinstance(node, ast.FunctionDef):
            text = "..." if node.returns is None else ast.unparse(node.returns).lower()
            if "..." in text or text == "none" or text.startswith("list["):
                found.add(node.name)
    return found


def several(name: str, one: Measured, loose: set[str]) -> list[str]:
    """The dtype classes of its results, a word each; one word with a star where their number varies."""
    texts = one.several()
    words = {word for text in texts for word in text.split()}
    return [f"{words.pop()}*"] if name in loose and len(words) == 1 else texts


def by_value(facts: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Names by what is true of them."""
    groups: dict[str, list[str]] = {}
    for name, value in sorted(facts):
        groups.setdefault(value, []).append(name)
    return groups


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
    run = measured()
    plain = {name: one for name, one in run.items() if "." not in name}
    base = class_body(torch / "_C" / "__init__.pyi", "TensorBase")
    own = class_body(torch / "_tensor.py", "Tensor")
    variable = module_body(torch / "_C" / "_VariableFunctions.pyi")
    native = module_body(torch / "_C" / "_nn.pyi")
    composed = module_body(torch / "functional.py")
    functions = [*variable, *composed, *module_body(torch / "_C" / "__init__.pyi")]
    for name in ("__init__", "random", "_lowrank", "_lobpcg"):
        functions += exported(module_body(torch / f"{name}.py"))
    described = module_body(torch / "nn" / "functional.py")
    functional = module_body(torch / "nn" / "functional.pyi") + described
    sources = {"torch": kinds_of(variable), "torch._C._nn": kinds_of(native)}
    unions, flags = dispatched(composed)
    pools, pool_flags = dispatched(described)
    kinds = grouped([*returns(functions), *unions], run={n: one for n, one in plain.items() if one.is_function})
    tensors = sorted(set(kinds["tensor"]) - set(plain))
    patterns = {name: pattern for name, one in run.items() if (pattern := one.pattern())}
    loose = variadic([*base, *own, *functions])
    choices = choosers([*base, *variable]) | flags | pool_flags
    return {
        "methods": grouped(
            (e for body in (base, own) for e in returns(body)),
            run={n: one for n, one in plain.items() if one.is_method},
        ),
        "attributes": grouped((e for body in (base, own) for e in returns(body)), properties=True),
        "functions": known(kinds),
        "functional": known(
            grouped(
                [*returns(functional), *documented(described), *imported(functional, sources), *pools],
                run=inside(run, "nn.functional"),
            )
        ),
        "namespaces": {name: namespace(torch / path, inside(run, name)) for name, path in NAMESPACES.items()},
        "modules": modules(torch),
        "several_when": by_value((name, " ".join(sorted(chosen))) for name, chosen in choices.items() if chosen),
        "fields": by_value(result_fields(torch).items()),
        "dtypes": by_value((patterns | measured_factories(tensors)).items()),
        "dtypes_of_several": by_value((name, text) for name, one in run.items() for text in several(name, one, loose)),
        "whole": by_value(
            (name, str(count)) for name, one in run.items() for count, seen in one.whole.items() if seen == {True}
        ),
        "broadcasts": sorted(name for name, one in run.items() if one.broadcasts == {True}),
    }


def known(kinds: dict[str, list[str]]) -> dict[str, list[str]]:
    """Without those of which nothing is said."""
    return {kind: names for kind, names in kinds.items() if kind != "other"}


def inside(run: dict[str, Measured], namespace: str) -> dict[str, Measured]:
    names = [name for name in run if name.rpartition(".")[0] == namespace]
    return {name.rpartition(".")[2]: run[name] for name in names}


def namespace(path: Path, run: dict[str, Measured]) -> dict[str, list[str]]:
    body = module_body(path)
    unmeasured = [entry for entry in documented(body) if entry[0] not in run]
    return known(grouped([*returns(body), *unmeasured], run=run))


def main() -> None:
    if len(sys.argv) > 1:
        torch = Path(sys.argv[1]).resolve()
        sys.path.insert(0, str(torch.parent))
    else:
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.origin is None:
            sys.exit("torch is not installed: name its folder")
        torch = Path(spec.origin).parent
    version = (torch / "version.py").read_text(encoding="utf-8").split("__version__ = '")[1].split("'")[0]
    short = ".".join(version.split(".")[:2])
    target = Path(__file__).parents[1] / "breakscan" / "rulebook" / "torch_facts" / "data" / f"{short}.json"
    target.write_text(json.dumps(facts(torch), indent=0, sort_keys=True) + "\n", encoding="utf-8")
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
