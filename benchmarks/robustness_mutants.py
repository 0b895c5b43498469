"""Damaged and twisted Python files, made from real ones: the same ones for the same corpus, seed and Python."""

from __future__ import annotations

import ast
import io
import random
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

MOST_LINES = 120
"""Of one mutant.  Many small files meet more code than few large ones in the same time."""
LARGEST_SOURCE = 400_000
OPENERS = (
    "if x:", "for i in x:", "while x.any():", "with torch.no_grad():", "try:", "def inner(x):", "class Inner:",
)  # fmt: skip
WRAPPERS = (
    ("(", ")"), ("[", "]"), ("(", ",)"), ("f(", ")"), ("torch.relu(", ")"), ("-", ""), ("not ", ""), ("lambda: ", ""),
    ("(x + ", ")"), ("", ".T"), ("", "()"), ("", "[0]"), ("{0: ", "}"), ("[", " for i in x]"), ("(y := ", ")"),
    ("x if x.any() else ", ""), ("x and ", ""), ("*", ""), ("await ", ""), ("(yield ", ")"),
)  # fmt: skip
LAYOUT = {tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER}

Span = tuple[int, int]


class Corpus:
    """Small programs cut out of the Python files below a folder: imports, and some functions, classes or methods."""

    def __init__(self, folder: Path) -> None:
        self.files = [
            path
            for path in sorted(folder.rglob("*.py"))
            if path.is_file() and path.stat().st_size <= LARGEST_SOURCE and b"torch" in path.read_bytes()
        ]

    def program(self, rng: random.Random) -> str:
        """A program that parses."""
        while True:
            path = rng.choice(self.files)
            imports, parts = _parts(path)
            if parts:
                break
        first = rng.randrange(len(parts))
        chosen: list[str] = []
        for part in parts[first : first + rng.randint(1, 4)]:
            if chosen and sum(text.count("\n") for text in [*chosen, part]) > MOST_LINES:
                break
            chosen.append(part)
        return "\n\n".join([imports, *chosen]) + "\n"


@lru_cache(maxsize=4096)
def _parts(path: Path) -> tuple[str, list[str]]:
    """The imports of a file, and its functions and classes; of a long class its methods, in a class each."""
    try:
        text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return "", []
    lines = text.split("\n")

    def source(node: ast.stmt) -> str:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)])
        return "\n".join(lines[first - 1 : node.end_lineno])

    imports = [source(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    parts = []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.ClassDef) and (node.end_lineno or node.lineno) - node.lineno > MOST_LINES:
            header = "\n".join(lines[node.lineno - 1 : node.body[0].lineno - 1])
            methods = [member for member in node.body if isinstance(member, ast.FunctionDef)]
            parts += [f"{header}\n{source(member)}" for member in methods if _parses(f"{header}\n{source(member)}")]
        else:
            parts.append(source(node))
    return "\n".join(["import torch", *imports[:20]]), [part for part in parts if part.count("\n") <= 3 * MOST_LINES]


def mutants(corpus: Corpus, seed: int, count: int) -> Iterator[str]:
    """Programs with one to four mutations each, most of which still parse."""
    names = list(MUTATIONS)
    weights = [weight for weight, _ in MUTATIONS.values()]
    for number in range(count):
        rng = random.Random(f"{seed}:{number}")
        text = corpus.program(rng)
        for name in rng.choices(names, weights, k=rng.choice((1, 1, 2, 3, 4))):
            text = MUTATIONS[name][1](text, rng, corpus)
        yield text


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Offsets:
    """From lines and UTF-8 columns to offsets in a text."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def of_node(self, node: ast.expr) -> Span:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        text = self.lines[line - 1]
        return self.starts[line - 1] + (column if text.isascii() else len(text.encode()[:column].decode()))


def _expressions(text: str) -> list[Span]:
    """The spans of what a program reads.  Parts of f-strings are left out: older Pythons misplace them."""
    tree = _tree(text)
    if tree is None:
        return []
    offsets = _Offsets(text)
    spans = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            spans.append(offsets.of_node(node))
        if not isinstance(node, ast.JoinedStr):
            waiting += ast.iter_child_nodes(node)
    return sorted(set(spans))


def _statements(text: str) -> list[Span]:
    """The lines of each statement below the top level, as numbers from 0 and one past the last."""
    tree = _tree(text)
    if tree is None:
        return []
    return sorted(
        {
            (node.lineno - 1, node.end_lineno or node.lineno)
            for node in ast.walk(tree)
            if isinstance(node, ast.stmt) and node.col_offset
        }
    )


def _tokens(text: str) -> list[tuple[int, int, int]]:
    """Kind, start and end of each token that is no layout."""
    starts = _Offsets(text).starts
    found = []
    try:
        for kind, string, (first, left), (last, right), _ in tokenize.generate_tokens(io.StringIO(text).readline):
            if kind not in LAYOUT and string:
                found.append((kind, starts[first - 1] + left, starts[last - 1] + right))
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


def _exchange(text: str, one: Span, other: Span, brackets: str = "%s") -> str:
    """The text with two spans that do not overlap exchanged."""
    (a, b), (c, d) = sorted((one, other))
    return text[:a] + brackets % text[c:d] + text[b:c] + brackets % text[a:b] + text[d:]


def _swap_subtrees(text: str, rng: random.Random, _: Corpus) -> str:
    spans = _expressions(text)
    for _try in range(10):
        one, other = rng.choice(spans or [(0, 0)]), rng.choice(spans or [(0, 0)])
        if one[1] <= other[0] or other[1] <= one[0]:
            return _exchange(text, one, other, "(%s)")
    return text


def _graft_subtree(text: str, rng: random.Random, corpus: Corpus) -> str:
    """An expression of this program or of another one in the place of an expression."""
    donor = corpus.program(rng) if rng.random() < 0.5 else text
    here, there = _expressions(text), _expressions(donor)
    if not here or not there:
        return text
    (a, b), (c, d) = rng.choice(here), rng.choice(there)
    return f"{text[:a]}({donor[c:d]}){text[b:]}"


def _wrap_deep(text: str, rng: random.Random, _: Corpus) -> str:
    spans = _expressions(text)
    if not spans:
        return text
    a, b = rng.choice(spans)
    before, behind = rng.choice(WRAPPERS)
    depth = rng.choice((1, 3, 20, 60, 150, 400))
    return f"{text[:a]}({before * depth}{text[a:b]}{behind * depth}){text[b:]}"


def _indented(lines: list[str], depth: int) -> list[str]:
    return [" " * depth + line if line.strip() else line for line in lines]


def _nest_block(text: str, rng: random.Random, _: Corpus) -> str:
    """A statement inside a tower of blocks."""
    spans = _statements(text)
    if not spans:
        return text
    first, end = rng.choice(spans)
    lines = text.split("\n")
    body = lines[first:end]
    indent = len(body[0]) - len(body[0].lstrip())
    depth = rng.choice((1, 2, 4, 8, 15))
    tower, tail = [], []
    for level in range(depth):
        opener = rng.choice(OPENERS)
        tower.append(" " * (indent + level) + opener)
        if opener == "try:":
            tail.append([" " * (indent + level) + "finally:", " " * (indent + level) + " pass"])
    closing = [line for lines_of_one in reversed(tail) for line in lines_of_one]
    return "\n".join([*lines[:first], *tower, *_indented(body, depth), *closing, *lines[end:]])


def _edit_statements(text: str, rng: random.Random, corpus: Corpus) -> str:
    """A statement deleted, doubled, exchanged with another one, or put in from elsewhere."""
    spans = _statements(text)
    if not spans:
        return text
    lines = text.split("\n")
    first, end = rng.choice(spans)
    indent = len(lines[first]) - len(lines[first].lstrip())
    what = rng.randrange(4)
    if what == 0:
        return "\n".join([*lines[:first], " " * indent + "pass", *lines[end:]])
    if what == 1:
        return "\n".join([*lines[:end], *lines[first:end] * rng.choice((1, 3, 10)), *lines[end:]])
    donor = corpus.program(rng) if what == 2 else text
    others = _statements(donor)
    if not others:
        return text
    c, d = rng.choice(others)
    graft = textwrap.dedent("\n".join(donor.split("\n")[c:d])).split("\n")
    return "\n".join([*lines[:first], *_indented(graft, indent), *lines[end:]])


def _same_kind(text: str, rng: random.Random, _corpus: Corpus) -> str:
    """Tokens exchanged with others of their kind: names with names, numbers with numbers."""
    tokens = _tokens(text)
    for _try in range(rng.choice((1, 3, 10))):
        if not tokens:
            break
        kind, a, b = rng.choice(tokens)
        _, c, d = rng.choice([token for token in tokens if token[0] == kind])
        if b <= c or d <= a:
            text = _exchange(text, (a, b), (c, d))
            tokens = _tokens(text)
    return text


def _any_token(text: str, rng: random.Random, _corpus: Corpus) -> str:
    """A token deleted, doubled, exchanged with any other, or put in anywhere."""
    tokens = _tokens(text)
    if not tokens:
        return text
    _, a, b = rng.choice(tokens)
    _, c, d = rng.choice(tokens)
    what = rng.randrange(4)
    if what == 0:
        return text[:a] + text[b:]
    if what == 1:
        return f"{text[:b]} {text[a:b]}{text[b:]}"
    if what == 2:
        return _exchange(text, (a, b), (c, d)) if b <= c or d <= a else text
    return f"{text[:a]}{text[c:d]} {text[a:]}"


def _lines(text: str, rng: random.Random, _: Corpus) -> str:
    """Lines deleted, doubled, exchanged or moved sideways."""
    lines = text.split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    what = rng.randrange(4)
    if what == 0:
        del lines[i]
    elif what == 1:
        lines.insert(i, lines[i])
    elif what == 2:
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines[i] = rng.choice((" ", "\t", "    ")) + lines[i]
    return "\n".join(lines)


def _splice(text: str, rng: random.Random, corpus: Corpus) -> str:
    """The head of this program and the tail of another one, cut between top-level statements or anywhere."""
    other = corpus.program(rng)
    if rng.random() < 0.7:
        return f"{text}\n{other}"
    here, there = rng.randrange(len(text)), rng.randrange(len(other))
    return text[:here] + other[there:]


def _characters(text: str, rng: random.Random, _: Corpus) -> str:
    """A character lost, or a strange one put in."""
    at = rng.randrange(len(text))
    strange = rng.choice(("", "\x0c", "\t", "\\", "é", "\u2028", "\ufeff", "𝐱", "'", '"""', "#", "{", "}", ":", "@"))
    return text[:at] + strange + text[at + rng.randrange(2) :]


MUTATIONS: dict[str, tuple[float, Callable[[str, random.Random, Corpus], str]]] = {
    "swap subtrees": (18, _swap_subtrees),
    "graft a subtree": (18, _graft_subtree),
    "wrap deep": (10, _wrap_deep),
    "nest in blocks": (10, _nest_block),
    "edit statements": (16, _edit_statements),
    "tokens of one kind": (10, _same_kind),
    "any token": (8, _any_token),
    "lines": (4, _lines),
    "splice": (4, _splice),
    "characters": (3, _characters),
}
"""The weight of each mutation, and its function."""
