"""Applies edits to the text of a file, with the imports that they need.

No comment is lost.  Calls are spread over several lines where a line would be wider than the file.
"""

from __future__ import annotations

import io
import tokenize
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import Edit, FileTree, Replacement
from breakscan.fix.support.walking import children


def overlap(tree: FileTree, one: Edit, other: Edit) -> bool:
    """Returns whether two edits touch the same statement, so that the second must be planned again after the first."""
    spans = [tree.span(_statement(tree, node)) for node in other.replace]
    for node in one.replace:
        start, end = (at := tree.span(_statement(tree, node)))[:2], at[2:]
        if any(start < (span[2:]) and span[:2] < end for span in spans):
            return True
    return False


def _statement(tree: FileTree, node: cst.CSTNode) -> cst.CSTNode:
    while not isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement | cst.SimpleStatementLine):
        above = tree.parents.get(node)
        if above is None:
            return node
        node = above
    return node


class _Replacer(cst.CSTTransformer):
    """Puts the new nodes into the tree, within the statements ``units``.

    ``lost`` are comments that no new code holds: they go above the code that replaces theirs, or that follows it.
    """

    def __init__(
        self,
        tree: FileTree,
        replace: Mapping[cst.CSTNode, Replacement],
        units: Collection[cst.CSTNode],
        lost: Counter[str],
    ) -> None:
        super().__init__()
        self.lost = lost
        self.left_over: dict[cst.CSTNode | None, list[cst.EmptyLine]] = {}
        """Comments of a statement that goes, by the block that it was in."""
        self.tree = tree
        self.module = tree.module
        self.replace = replace
        self.units = units

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> cst.CSTNode:  # type: ignore[override]
        # libcst's types do not allow a visitor to replace a node by one of another type, although this works.
        made = self._made(original_node, updated_node)
        if original_node in self.units:
            made = self._with_comments(original_node, made)
            indent = self.tree.span(original_node)[1] - 1
            made = [
                fitted(one, indent, self.tree.text, self.module) if isinstance(one, cst.BaseStatement) else one
                for one in made
            ]
        elif self.left_over:
            made = self._with_left_over(original_node, made)
        if not made:
            return cst.RemoveFromParent()  # type: ignore[return-value]
        return made[0] if len(made) == 1 else cst.FlattenSentinel(made)  # type: ignore[return-value]

    def _with_comments(self, original: cst.CSTNode, made: list[cst.CSTNode]) -> list[cst.CSTNode]:
        """New statements with the lost comments of the old one."""
        comments = self.left_over.pop(self.tree.parents.get(original), []) if made else []
        for comment in _comments_in(original) if self.lost else ():
            if self.lost[comment] > 0:
                self.lost[comment] -= 1
                comments.append(cst.EmptyLine(comment=cst.Comment(comment)))
        if not comments:
            return made
        if not made:
            self.left_over.setdefault(self.tree.parents.get(original), []).extend(comments)
            return made
        first, *others = made
        lines = [*getattr(first, "leading_lines", ()), *comments]
        return [first.with_changes(leading_lines=lines), *others]

    def _with_left_over(self, original: cst.CSTNode, made: list[cst.CSTNode]) -> list[cst.CSTNode]:
        """A statement below the comments of one before it that went, or a block that ends with them."""
        block = isinstance(original, cst.IndentedBlock | cst.Module)
        is_statement = isinstance(original, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        above = original if block else self.tree.parents.get(original)
        if not made or not (block or is_statement) or above not in self.left_over:
            return made
        comments = self.left_over.pop(above)
        first = made[0]
        if block:
            return [first.with_changes(footer=[*comments, *first.footer])]  # type: ignore[attr-defined]
        return [first.with_changes(leading_lines=[*comments, *first.leading_lines]), *made[1:]]  # type: ignore[attr-defined]

    def _made(self, original: cst.CSTNode, updated: cst.CSTNode) -> list[cst.CSTNode]:
        if original not in self.replace:
            return [updated]
        new = self.replace[original]
        if new is None:
            return []
        return [new] if isinstance(new, cst.CSTNode) else list(new)


def applied(tree: FileTree, edits: Sequence[Edit], imports: Sequence[str]) -> str:
    """Returns the text with the edits and the imports that the new code needs. The edits must not overlap.

    Raises ValueError if libcst would change code that no edit is about.
    """
    before = tree.module.code
    if before != tree.text:
        raise ValueError("libcst does not reproduce the text of this file")
    replace = {node: new for edit in edits for node, new in edit.replace.items()}
    units = _units(tree, replace)
    module = tree.module.visit(_Replacer(tree, replace, units, Counter()))
    if lost := _comments(before) - _comments(module.code):
        module = tree.module.visit(_Replacer(tree, replace, units, lost))
    return with_imports(module, imports).code


def _comments(text: str) -> Counter[str]:
    """The comments of a text, and how often each occurs."""
    if "#" not in text:
        return Counter()
    try:
        found = [
            one.string for one in tokenize.generate_tokens(io.StringIO(text).readline) if one.type == tokenize.COMMENT
        ]
    except (tokenize.TokenError, SyntaxError):  # text that is no Python is refused later
        return Counter()
    return Counter(one.rstrip() for one in found)


def _comments_in(node: cst.CSTNode) -> list[str]:
    """The comments of a statement, in order."""
    found: list[str] = []

    class Comments(cst.CSTVisitor):
        def visit_Comment(self, node: cst.Comment) -> None:
            found.append(node.value.rstrip())

    node.visit(Comments())
    return found


def _units(tree: FileTree, replaced: Iterable[cst.CSTNode]) -> set[cst.CSTNode]:
    """Returns the outermost statements, on lines not shared with others, that hold the replaced nodes."""
    holding = {_with_lines(tree, node) for node in replaced}
    return {one for one in holding if not any(above in holding for above in _above(tree, one))}


def _with_lines(tree: FileTree, node: cst.CSTNode) -> cst.CSTNode:
    for one in (node, *_above(tree, node)):
        if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            return one
    return node


def _above(tree: FileTree, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    while (above := tree.parents.get(node)) is not None:
        yield above
        node = above


_DOCSTRING = m.SimpleStatementLine([m.Expr(m.SimpleString() | m.ConcatenatedString())])


def with_imports(module: cst.Module, names: Sequence[str]) -> cst.Module:
    """The module with ``import name`` for each name: before the first import of that package, else after the first
    imports, else below the docstring."""
    for name in names:
        lines = list(module.body)
        packages = list(map(_package, lines))
        new = cst.SimpleStatementLine([cst.Import([cst.ImportAlias(cst.Name(name))])])
        if name in packages:
            place = packages.index(name)
            there = cst.ensure_type(lines[place], cst.SimpleStatementLine)
            new = new.with_changes(leading_lines=there.leading_lines)
            lines[place] = there.with_changes(leading_lines=[])
        else:
            place = int(bool(lines) and m.matches(lines[0], _DOCSTRING))
            while place < len(lines) and packages[place]:
                place += 1
            if place and packages[place - 1] in (None, "__future__"):
                new = new.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
        lines.insert(place, new)
        module = module.with_changes(body=lines)
    return module


def _package(line: cst.CSTNode) -> str | None:
    """The top-level package that a line imports; None for relative imports and other code."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if isinstance(small, cst.Import):
        return small.names[0].evaluated_name.split(".")[0]
    if isinstance(small, cst.ImportFrom) and small.module is not None and not small.relative:
        return cst.Module([]).code_for_node(small.module).split(".")[0]
    return None


_WIDTHS = (79, 88, 100, 120)
_USUAL = 88
_ENOUGH_LINES = 60
"""The lines from which on the longest line of a file shows the width that it is wrapped at."""
_MOST_STEPS = 20


def width_of(text: str) -> int:
    """The width at which a file is wrapped, as its longest line shows."""
    lines = text.splitlines()
    longest = max(map(len, lines), default=0)
    found = next((width for width in _WIDTHS if longest <= width + (width == _WIDTHS[0])), _WIDTHS[-1])
    return found if len(lines) >= _ENOUGH_LINES else max(found, _USUAL)


def fitted(statement: cst.BaseStatement, indent: int, text: str, module: cst.Module) -> cst.BaseStatement:
    """A new statement of a file with the old ``text``, at an indentation in columns.  Lines that the file has are left
    as they are."""
    width = width_of(text) - indent
    old = {line.strip() for line in text.splitlines() if len(line) > width + indent}

    def is_wide(line: str) -> bool:
        return len(line.split("  # ")[0]) > width and line.strip() not in old and not line.lstrip().startswith("#")

    for _ in range(_MOST_STEPS):
        lines = module.code_for_node(statement).splitlines()
        if len(lines) == 1 and not is_wide(lines[0]):
            break
        for node, depth in _calls_in(statement, 0):
            code = module.code_for_node(node)
            first = next((line for line in lines if code.partition("\n")[0] in line), "")
            if code not in text and (_holds_lines(node, code) or ("\n" not in code and is_wide(first))):
                base = first[: len(first) - len(first.lstrip())][len(module.default_indent) * depth :]
                made = statement.deep_replace(node, _spread(node, base, module.default_indent))
                assert isinstance(made, cst.BaseStatement)
                statement = made
                break
        else:
            break
    return statement


def _calls_in(node: cst.CSTNode, depth: int) -> Iterator[tuple[cst.Call, int]]:
    """The calls with arguments, the outer ones first, each with the number of blocks of the statement around it."""
    if isinstance(node, cst.Call) and node.args and not isinstance(node.args[0].value, cst.GeneratorExp):
        yield node, depth
    if not isinstance(node, cst.FormattedString):  # before Python 3.12, its fields have one line
        for child in children(node):
            yield from _calls_in(child, depth + isinstance(node, cst.IndentedBlock))


def _holds_lines(node: cst.Call, code: str) -> bool:
    """True if an argument of a call with several, all in one line, has several lines."""
    spaces = [node.whitespace_before_args, *(getattr(one.comma, "whitespace_after", None) for one in node.args)]
    return (
        "\n" in code and len(node.args) > 1 and not any(isinstance(one, cst.ParenthesizedWhitespace) for one in spaces)
    )


def _spread(node: cst.Call, base: str, unit: str) -> cst.Call:
    """A call with one argument per line."""
    inside, after = _newline(base + unit), _newline(base)
    args = [cst.ensure_type(arg.visit(_Deeper(unit)), cst.Arg) for arg in node.args]
    if len(args) == 1:
        only = args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=after)
        return node.with_changes(args=[only], whitespace_before_args=inside)
    ends = [*[inside] * (len(args) - 1), after]
    args = [one.with_changes(comma=cst.Comma(whitespace_after=end)) for one, end in zip(args, ends, strict=True)]
    return node.with_changes(args=args, whitespace_before_args=inside)


class _Deeper(cst.CSTTransformer):
    """Indents the lines inside an expression by one more level."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def leave_ParenthesizedWhitespace(
        self, _: cst.ParenthesizedWhitespace, new: cst.ParenthesizedWhitespace
    ) -> cst.ParenthesizedWhitespace:
        lines = [one.with_changes(whitespace=self._deeper(one.whitespace)) for one in new.empty_lines if one.comment]
        return new.with_changes(last_line=self._deeper(new.last_line), empty_lines=lines)

    def _deeper(self, whitespace: cst.SimpleWhitespace) -> cst.SimpleWhitespace:
        return cst.SimpleWhitespace(self.unit + whitespace.value)


def _newline(indent: str) -> cst.ParenthesizedWhitespace:
    return cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(indent))
