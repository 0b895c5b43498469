"""Nothing decides by comparing English: code that knows a kind has an enum or a field for it."""

import ast
from collections.abc import Iterator

from tests.trees import PACKAGE, trees

PARSERS = ("recording/parsers/", "recording/traced.py", "recording/tracelog.py")
"""What reads the text that torch writes."""
LEFT = {
    "rulebook/document.py": "Python code in examples",
    "source/toml_text.py": "the line of an error in tomllib's message",
    "explanation/problems.py": "types of breaks and hints, as torch writes them",
    "report/fix.py": "heads of hunks of a diff",
    "report/printable.py": "annotations of fields",
    "explanation/context.py": "reprs of Python in the text of torch",
    "explanation/graphs.py": "reasons of torch, without their beginning and their stack; comments of Inductor's code",
    "recording/hooks/profile.py": "torch's names in a profile",
    "explanation/recompiles.py": "guards, as torch writes them",
    "source/python_text.py": "errors of tokenize",
    "prove/rewrites.py": "the headers of a patch",
    "fix/planner.py": "the comment at the top of a file that a program writes",
}
"""Further files that compare with text, each with the reason.  A file that no longer does must be removed here."""

METHODS = frozenset(
    "startswith endswith removeprefix removesuffix partition rpartition index find rfind split rsplit count".split()
)
METHODS_OF_RE = frozenset("compile match search fullmatch findall finditer split sub".split())


def literals(node: ast.expr) -> Iterator[str]:
    """The strings that an operand consists of: a literal, or a tuple, list or set of them; of an f-string its text."""
    for inner in node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]:
        if isinstance(inner, ast.JoinedStr):
            yield "…".join(part.value for part in inner.values if isinstance(part, ast.Constant))
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def compared(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines and texts of the literals that something is compared with, also by the name of a constant: the keys of
    a dict as well."""
    statements = getattr(tree, "body", [])
    assigned = [node for node in statements if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
    constants = {node.targets[0].id: node.value for node in assigned}
    for node in ast.walk(tree):
        operands: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            operands = [node.value]
        elif isinstance(node, ast.Dict):
            operands = [key for key in node.keys if key is not None]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if node.func.attr in METHODS or (of_re and node.func.attr in METHODS_OF_RE):
                operands = node.args[:1]
        for operand in operands:
            named = constants.get(operand.id, operand) if isinstance(operand, ast.Name) else operand
            yield from ((operand.lineno, text) for text in literals(named))


def is_prose(text: str) -> bool:
    """Whether a text holds a blank between words."""
    return " " in text.strip() and any(character.isalpha() for character in text)


def test_nothing_decides_by_comparing_english() -> None:
    found: dict[str, list[tuple[int, str]]] = {}
    for path, tree in trees().items():
        name = path.relative_to(PACKAGE).as_posix()
        prose = [(line, text) for line, text in compared(tree) if is_prose(text)]
        if prose and not name.startswith(PARSERS):
            found[name] = prose
    assert found.keys() == LEFT.keys(), {name: found.get(name) for name in found.keys() ^ LEFT.keys()}


def test_a_comparison_with_english_is_found() -> None:
    tree = ast.parse(
        'a == "is off"; b.endswith((" a tensor", "x")); re.match("rest of", c); d == "name"\n'
        're.compile("left out"); e.split(" is a "); {"is on": 1}[f]; g == f"{h} is unchanged"'
    )
    found = [text for _, text in compared(tree) if is_prose(text)]
    assert sorted(found) == sorted(["is off", " a tensor", "rest of", "left out", " is a ", "is on", " is unchanged"])
