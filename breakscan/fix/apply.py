"""Applies edits to the text of a file, with the imports that they need.

No comment is lost.  Calls are spread over several lines where a line would be wider than the file."""

import io
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import Edit, FileTree, Replacement
from breakscan.fix.support.walking import code_children


def overlap(tree: FileTree, one: Edit, other: Edit) -> bool:
    """Returns whether two edits touch the same statement, so that the second must be planned again after the first."""
    kinds = (cst.BaseSmallStatement, cst.BaseCompoundStatement, cst.SimpleStatementLine)
    own, others = ([tree.span(_innermost(tree, node, *kinds)) for node in edit.replace] for edit in (one, other))
    return any(at[:2] < span[2:] and span[:2] < at[2:] for at in own for span in others)


def _innermost(tree: FileTree, node: cst.CSTNode, *kinds: type[object]) -> cst.CSTNode:
    """The innermost node of some kinds that contains a node, or is that node; the node itself if there is none."""
    return next((one for one in (node, *tree.around(node)) if isinstance(one, kinds)), node)


class _Replacer(cst.CSTTransformer):
    """Puts the new nodes into the tree, within the statements ``units``.

    ``lost`` are comments that no new code holds: they go above the code that replaces theirs, or that follows it."""

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
        new = self.replace.get(original_node, updated_node)
        made: list[cst.CSTNode] = [new] if isinstance(new, cst.CSTNode) else list(new or ())
        if original_node in self.units:
            made = self._with_comments(original_node, made)
            indent = self.tree.span(original_node)[1] - 1
            fit = partial(fitted, indent=indent, text=self.tree.text, module=self.module)
            made = [fit(one) if isinstance(one, cst.BaseStatement) else one for one in made]
        elif self.left_over:
            made = self._with_left_over(original_node, made)
        if not made:
            return cst.RemoveFromParent()  # type: ignore[return-value]
        return made[0] if len(made) == 1 else cst.FlattenSentinel(made)  # type: ignore[return-value]

    def _with_comments(self, original: cst.CSTNode, made: list[cst.CSTNode]) -> list[cst.CSTNode]:
        """New statements with the lost comments of the old one."""
        comments = self.left_over.pop(self.tree.parents.get(original), []) if made else []
        for comment in _comments(self.module.code_for_node(original)).elements() if self.lost else ():
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


def applied(tree: FileTree, edits: Sequence[Edit], imports: Sequence[str]) -> str:
    """Returns the text with the edits and the imports that the new code needs. The edits must not overlap.

    Raises ValueError if libcst would change code that no edit is about."""
    before = tree.module.code
    if before != tree.text:
        raise ValueError("libcst does not reproduce the text of this file")
    replace = {node: new for edit in edits for node, new in edit.replace.items()}
    holding = {_innermost(tree, node, cst.SimpleStatementLine, cst.BaseCompoundStatement) for node in replace}
    units = {one for one in holding if holding.isdisjoint(tree.around(one))}
    module = tree.module.visit(_Replacer(tree, replace, units, Counter()))
    if lost := _comments(before) - _comments(module.code):
        module = tree.module.visit(_Replacer(tree, replace, units, lost))
    return with_imports(module, imports).code


def _comments(text: str) -> Counter[str]:
    if "#" not in text:
        return Counter()
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):  # text that is no Python is refused later
        return Counter()
    return Counter(one.string.rstrip() for one in tokens if one.type == tokenize.COMMENT)


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


def fitted(statement: cst.BaseStatement, indent: int, text: str, module: cst.Module) -> cst.BaseStatement:
    """A new statement of a file with the old ``text``, at an indentation in columns.  Lines that the file has are left
    as they are."""
    file = text.splitlines()
    longest = max(map(len, file), default=0)
    width = next((width for width in _WIDTHS if longest <= width + (width == _WIDTHS[0])), _WIDTHS[-1])
    width = (width if len(file) >= _ENOUGH_LINES else max(width, _USUAL)) - indent
    old = {line.strip() for line in file if len(line) > width + indent}

    def is_wide(line: str) -> bool:
        return len(line.split("  # ")[0]) > width and line.strip() not in old and not line.lstrip().startswith("#")

    for _ in range(_MOST_STEPS):
        lines = module.code_for_node(statement).splitlines()
        if len(lines) == 1 and not is_wide(lines[0]):
            break
        for node, depth in _calls_in(statement, 0):
            code = module.code_for_node(node)
            spaces = [node.whitespace_before_args, *(getattr(one.comma, "whitespace_after", None) for one in node.args)]
            is_spread = any(isinstance(one, cst.ParenthesizedWhitespace) for one in spaces)
            # Of several arguments in one line, one has several lines.
            holds_lines = "\n" in code and len(node.args) > 1 and not is_spread
            first = next((line for line in lines if code.partition("\n")[0] in line), "")
            if code not in text and (holds_lines or ("\n" not in code and is_wide(first))):
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
        for child in code_children(node):
            yield from _calls_in(child, depth + isinstance(node, cst.IndentedBlock))


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
