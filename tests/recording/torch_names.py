"""Finds the private names of torch that a file uses."""

import ast
import re
from collections.abc import Iterator

PRIVATE = re.compile(r"torch(?:\.\w+)*[.:]_(?!_)\w+(?:[.:]\w+)*")


def private_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines and names, such as ``torch._dynamo.eval_frame``: in imports, in attributes, and in whole strings."""
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        found: list[str] = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and id(node) not in inner:
            found = [ast.unparse(node)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = [node.value]
        for name in found:
            if PRIVATE.fullmatch(name):
                yield getattr(node, "lineno", 1), name.replace(":", ".")


def words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines and names of attributes, and the strings that could name one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.lineno, node.value
