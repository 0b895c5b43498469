"""No dataclass has a field that nothing reads.

A field counts as read if an attribute of its name is loaded anywhere, so a field that is found is unread for certain.
"""

import ast
from collections.abc import Iterable, Iterator

from tests.trees import trees

READ_ELSEWHERE = {
    "Calls.total_seconds": "report/explain/json.py, with all fields",
    "Graph.split_by_ddp": "the page of the HTML report",
    "Manifest.breakscan": "written to the recording, for people",
    "RewriteOffer.safety": "report/findings.py, with all fields",
}
"""Each with who reads it.  A field that is read must be removed here."""


def is_dataclass(node: ast.ClassDef) -> bool:
    names = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    return any(isinstance(name, ast.Name) and name.id == "dataclass" for name in names)


def is_command(node: ast.ClassDef) -> bool:
    """Whether a worker answers it: its fields become the arguments of the function that does."""
    return any(isinstance(b, ast.Subscript) and ast.unparse(b.value) == "Command" for b in node.bases)


def fields(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The fields of dataclasses, each with its class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and is_dataclass(node) and not is_command(node):
            for one in node.body:
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                    yield node.name, one.target.id


def unread(trees: Iterable[ast.Module]) -> set[str]:
    kept = list(trees)
    nodes = [node for tree in kept for node in ast.walk(tree)]
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    read |= {name for node in nodes if isinstance(node, ast.MatchClass) for name in node.kwd_attrs}
    picked = (node.args[1:] for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "picked")
    read |= {name for given in picked for one in given for name in str(getattr(one, "value", "")).split()}
    return {f"{owner}.{name}" for tree in kept for owner, name in fields(tree) if name not in read}


def test_every_field_is_read() -> None:
    assert unread(trees().values()) == READ_ELSEWHERE.keys()


def test_an_unread_field_is_found() -> None:
    tree = ast.parse(
        "@dataclass(frozen=True)\nclass Point:\n    x: int\n    y: int\n    z: int\n"
        "@dataclass\nclass Move(Command[None]):\n    path: str\n"
        "def f(p):\n    match p:\n        case Point(x=0):\n            p.y = p.y + 1\n"
    )
    assert unread([tree]) == {"Point.z"}
