"""Applies edits to the text of a file, and records where the new lines come from.  No comment is lost."""

from __future__ import annotations

import io
import tokenize
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from breakscan.fix.imports import with_imports
from breakscan.fix.source_map import ChangedLines, RegionsDoNotFit, SourceMap
from breakscan.fix.support.context import FileTree
from breakscan.fix.support.edit import Edit, Replacement
from breakscan.fix.support.layout import fitted


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


@dataclass(frozen=True, slots=True)
class AppliedText:
    """A text with edits applied, and where its lines come from."""

    text: str
    lines: SourceMap


class _Replacer(cst.CSTTransformer):
    """Puts the new nodes into the tree. ``sizes`` are the numbers of lines that each of ``units`` takes afterwards.

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
        self.moves_comments = False
        self.tree = tree
        self.module = tree.module
        self.replace = replace
        self.sizes: dict[cst.CSTNode, int] = dict.fromkeys(units, 0)

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> cst.CSTNode:  # type: ignore[override]
        # libcst's types do not allow a visitor to replace a node by one of another type, although this works.
        made = self._made(original_node, updated_node)
        if original_node in self.sizes:
            made = self._with_comments(original_node, made)
            indent = self.tree.span(original_node)[1] - 1
            made = [
                fitted(one, indent, self.tree.text, self.module) if isinstance(one, cst.BaseStatement) else one
                for one in made
            ]
            self.sizes[original_node] = sum(_size(self.module, one) for one in made)
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
        self.moves_comments = True
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
        self.moves_comments = True
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


def applied(tree: FileTree, edits: Sequence[Edit], imports: Sequence[str]) -> AppliedText:
    """Returns the text with the edits and the imports that the new code needs. The edits must not overlap.

    Raises ValueError if libcst would change code that no edit is about.
    """
    before = tree.module.code
    if before != tree.text:
        raise ValueError("libcst does not reproduce the text of this file")
    replace = {node: new for edit in edits for node, new in edit.replace.items()}
    units = _units(tree, replace)
    replacer = _Replacer(tree, replace, units, Counter())
    module = tree.module.visit(replacer)
    if lost := _comments(before) - _comments(module.code):
        replacer = _Replacer(tree, replace, units, lost)
        module = tree.module.visit(replacer)
    regions = [
        ChangedLines(_first_line(tree, one), _size(tree.module, one), size) for one, size in replacer.sizes.items()
    ]
    text = module.code
    lines = SourceMap.of_one_change(before, text) if replacer.moves_comments else _source_map(before, text, regions)
    added = with_imports(module, imports)
    if added is not module:
        lines, text = lines.then(SourceMap.of_one_change(text, added.code)), added.code
    return AppliedText(text, lines)


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


def _source_map(before: str, after: str, regions: Sequence[ChangedLines]) -> SourceMap:
    try:
        return SourceMap.of_regions(before, after, regions)
    except RegionsDoNotFit:
        # A block that loses its last statement gets a ``pass``, which the statements do not include.
        return SourceMap.of_one_change(before, after)


def _units(tree: FileTree, replaced: Iterable[cst.CSTNode]) -> list[cst.CSTNode]:
    """Returns the outermost statements, on lines not shared with others, that hold the replaced nodes."""
    holding = {_with_lines(tree, node) for node in replaced}
    return [one for one in holding if not any(above in holding for above in _above(tree, one))]


def _with_lines(tree: FileTree, node: cst.CSTNode) -> cst.CSTNode:
    for one in (node, *_above(tree, node)):
        if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            return one
    return node


def _above(tree: FileTree, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    while (above := tree.parents.get(node)) is not None:
        yield above
        node = above


def _size(module: cst.Module, node: cst.CSTNode) -> int:
    """Returns the number of lines of a statement, including the comments that belong to it."""
    return module.code_for_node(node).count("\n")


def _first_line(tree: FileTree, node: cst.CSTNode) -> int:
    """Returns the first line of a statement, counted from 0, including the comments that belong to it."""
    start = node
    if isinstance(node, cst.FunctionDef | cst.ClassDef) and node.decorators:
        start = node.decorators[0]
    leading = sum(len(getattr(one, "leading_lines", ())) for one in {node, start})
    return tree.span(start)[0] - 1 - leading
