"""Only ``breakscan/rulebook/torch_facts/`` says what torch's functions do: no list of their names stands elsewhere."""

import ast
import builtins
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import breakscan
from breakscan.model.torch_versions import SUPPORTED
from breakscan.rulebook.torch_facts.not_measured import CHANGES_MORE_THAN_IT_RETURNS, TAKES_FUNCTIONS_OR_FLAGS
from breakscan.rulebook.torch_facts.operators import measured
from breakscan.rulebook.torch_facts.table import load_api

ROOT = Path(breakscan.__file__).parent
OTHER_WORDS = frozenset(dir(builtins)).union(*(dir(one) for one in (str, list, dict, set)))
"""Words that are names of torch's, too."""

NOT_OPERATORS = CHANGES_MORE_THAN_IT_RETURNS | TAKES_FUNCTIONS_OR_FLAGS | {"finfo", "iinfo"}

CHOICE = "names the functions that the rule or rewrite speaks of"
LEFT = {
    "check/compile_uses/arguments.py": (2, CHOICE),
    "check/interpreter/attributes.py": (1, CHOICE),
    "fix/rewrites/index_one_element.py": (1, CHOICE),
    "fix/support/purity.py": (1, CHOICE),
    "fix/rewrites/masked_reduction.py": (1, CHOICE),
    "fix/support/masked.py": (1, CHOICE),
    "fix/rewrites/mask_from_nonzero.py": (1, CHOICE),
}
"""How many such lists a file still holds, and why.  Lower the number when you remove one, and never raise it."""


@cache
def torch_names(version: str) -> frozenset[str]:
    api = load_api(version)
    functions = {name.rpartition(".")[2] for name in api.functions}
    last = {name.rpartition(".")[2] for name in measured(version, "operators")["operators"]}
    return frozenset(functions | set(api.methods) | set(api.attributes) | last)


def strings(node: ast.AST) -> list[str]:
    """The texts of a literal collection, or of a text that is split into one."""
    if isinstance(node, ast.Set | ast.Tuple | ast.List):
        elements: list[ast.expr] = list(node.elts)
    elif isinstance(node, ast.Dict):
        elements = [key for key in node.keys if key is not None]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.Add):
        return [*strings(node.left), *strings(node.right)]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        text = node.func.value
        return text.value.split() if isinstance(text, ast.Constant) and isinstance(text.value, str) else []
    else:
        return []
    found = []
    for element in elements:
        if isinstance(element, ast.Starred):
            found += strings(element.value)
        elif isinstance(element, ast.Constant) and isinstance(element.value, str):
            found.append(element.value)
    return found


def lists_of_torch_names(source: str, known: frozenset[str]) -> Iterator[tuple[int, list[str]]]:
    """The line and the names of each literal that holds three names of torch's or more, and little else."""
    inner: set[ast.AST] = set()
    for node in ast.walk(ast.parse(source)):
        found = strings(node)
        if node in inner or not found:
            continue
        inner.update(ast.walk(node))
        last = {name.rpartition(".")[2] for name in found if "." not in name or name.startswith("torch.")}
        ours = sorted(name for name in last if name not in OTHER_WORDS and name in known)
        if len(ours) > 2 and 2 * len(ours) >= len(found):
            yield node.lineno, found


def test_a_list_of_names_is_seen() -> None:
    known = torch_names("2.13")
    assert list(lists_of_torch_names("A = frozenset({*('relu', 'tanh'), 'sqrt'})", known))
    assert list(lists_of_torch_names("A = 'relu tanh softmax'.split()", known))
    assert list(lists_of_torch_names("A = {'relu', 'tanh'} | {'softmax'}", known))
    assert list(lists_of_torch_names("A = {'torch.relu': 1, 'torch.tanh': 2, 'torch.sqrt': 3}", known))
    assert not list(lists_of_torch_names("A = ('max', 'min', 'abs', 'round')", known))


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_list_of_torch_names_stands_outside_torch_facts(path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    if name.startswith("rulebook/torch_facts/"):
        return
    found = list(lists_of_torch_names(path.read_text(encoding="utf-8"), torch_names("2.13")))
    allowed, _ = LEFT.get(name, (0, ""))
    assert len(found) <= allowed, f"ask breakscan.rulebook.torch_facts instead: {found}"
    assert len(found) == allowed, f"LEFT says {allowed}: lower it to {len(found)}"


def test_what_rewrites_name_is_known_of_every_supported_torch() -> None:
    """A name that torch does not have, or that was not measured, would silently never match."""
    for version in SUPPORTED:
        known = torch_names(version)
        for folder in ("fix/support", "fix/rewrites"):
            for path in sorted((ROOT / folder).rglob("*.py")):
                for line, found in lists_of_torch_names(path.read_text(encoding="utf-8"), known):
                    last = {name.rpartition(".")[2] for name in found if not name.startswith("builtins.")}
                    unknown = last - known - OTHER_WORDS - NOT_OPERATORS
                    in_place = {name for name in unknown if f"{name}_" in known}
                    assert not unknown - in_place, f"{path.name}:{line} on torch {version}"
