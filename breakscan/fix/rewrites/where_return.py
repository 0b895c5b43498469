"""``if tensor: return a``, then code and ``return b`` → ``return torch.where(early, value, b)`` behind the code.

For code that :mod:`where` cannot make one choice of: a name is assigned again before the last return, there are Python
branches with returns of their own, or several values are returned.  The test and the first value are computed where
they were.  The code that follows always runs, so it may only assign names and return.  If it goes on behind a Python
branch around the test, the returns there first ask whether the test was made.  Messages of the side stay in eager code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.bool_tensor import truth
from breakscan.fix.support.build import and_list, assignment, call, copied, inverted, or_list, with_leading_lines
from breakscan.fix.support.compiling import and_not_compiling
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, ShowsOnly, differs
from breakscan.fix.support.edit import Declined, Edit, OtherForm, Replacement
from breakscan.fix.support.if_sides import branch_of, tells
from breakscan.fix.support.names import read, written
from breakscan.fix.support.numbers import written_number
from breakscan.fix.support.purity import why_may_raise, why_not_pure
from breakscan.fix.support.reporting_calls import why_missed
from breakscan.fix.support.type_tested import doubtful
from breakscan.fix.support.walking import findall
from breakscan.fix.support.where_builder import REQUIRED, Chooser

_PYTHON_KINDS = ("constant", "number", "shape", "none")


def rewrite(context: RewriteContext) -> Edit:
    """The early return whose test is at the site, as a choice at each return behind it."""
    node = branch_of(context)
    if not isinstance(node, cst.If):
        raise OtherForm("this is not the test of an `if`")
    return _EarlyReturn(context, node).edit()


@dataclass
class _EarlyReturn:
    context: RewriteContext
    node: cst.If
    returns: list[cst.Return] = field(default_factory=list)
    """The returns behind the test."""
    assigned: set[str] = field(default_factory=set)
    """The names that are assigned behind it."""
    around: cst.If | None = None
    """The outermost Python branch behind which the code goes on, if it does not return before."""

    def __post_init__(self) -> None:
        self.chooser = Chooser(self.context, merges=False)

    def edit(self) -> Edit:
        first = self._returned()
        if names := doubtful(self.context, self.node.test):
            raise Declined(f"`{names[0].value}` is not always a tensor")
        tested = truth(self.context, self.node.test)
        if tested.static:
            raise Declined(f"`{self.context.code(tested.static[0])}` is not a tensor, and there is another side")
        if findall(self.context.function.body, m.Yield()):
            raise Declined("the function is a generator")
        following = self._following()
        self.chooser.doubts.update(dict.fromkeys(tested.doubts))
        self.chooser.knows(self.node.test)
        self._read(following)
        if self.assigned:
            # What the names hold at the returns is not what they hold at the test, for which gradients are known.
            self.chooser.doubts[REQUIRED] = None
        early = cst.Name(self._fresh("returns_early"))
        test = inverted(tested.tensor) if tested.opposite else copied(tested.tensor)
        lines: list[cst.BaseStatement] = [*self._message(), assignment(early, test)]
        kept: dict[int, cst.BaseExpression] = {}
        replaced: dict[cst.CSTNode, Replacement] = {}
        sources = _elements(first)
        for one in self.returns:
            assert one.value is not None
            others = _elements(one.value)
            if len(others) != len(sources) or isinstance(first, cst.Tuple) != isinstance(one.value, cst.Tuple):
                raise Declined("the returns have different numbers of values")
            made: list[cst.BaseExpression] = []
            for place, (source, other) in enumerate(zip(sources, others, strict=True)):
                if self._is_same(source, other):
                    made.append(copied(other))
                    continue
                yes, no = self.chooser.value(source), self.chooser.value(other)
                self.chooser.choose(tested, early, yes, no)
                if place not in kept:
                    kept[place] = self._kept(source, yes.made, lines)
                choice: cst.BaseExpression = call(self.context.imported("torch.where"), early, kept[place], no.made)
                if self.around is not None and not self._is_in_branch(one):
                    choice = cst.IfExp(_is_none(early), copied(no.made), choice)
                made.append(choice)
            if isinstance(one.value, cst.Tuple):
                replaced[one.value] = one.value.with_changes(elements=[cst.Element(item) for item in made])
            else:
                replaced[one.value] = made[0]
        above = with_leading_lines(lines[0], self.node)
        lines[0] = above.with_changes(leading_lines=[*above.leading_lines, *self._comments()])  # type: ignore[attr-defined]
        changes: dict[cst.CSTNode, Replacement] = {self.node: lines, **replaced}
        if self.around is not None:
            changes = self._below_a_line(self.around, assignment(early, cst.Name("None")), changes)
        return Edit(changes, list(self.chooser.doubts))

    def _is_in_branch(self, node: cst.CSTNode) -> bool:
        return any(one is self.around for one in self.context.around(node))

    def _below_a_line(
        self, branch: cst.If, line: cst.BaseStatement, changes: dict[cst.CSTNode, Replacement]
    ) -> dict[cst.CSTNode, Replacement]:
        """The changes with a line above a branch."""
        inner = {node: new for node, new in changes.items() if self._is_in_branch(node)}
        new = cst.ensure_type(branch.visit(_Replaced(inner)), cst.If)
        above = with_leading_lines(line, branch)
        apart = {node: new for node, new in changes.items() if node not in inner}
        return {branch: [above, new.with_changes(leading_lines=[])], **apart}

    def _message(self) -> list[cst.BaseStatement]:
        """The messages of the side, which only eager code still reports."""
        body = cst.ensure_type(self.node.body, cst.IndentedBlock)
        lines = [cst.ensure_type(one, cst.SimpleStatementLine) for one in body.body[:-1]]
        for line in lines:
            called = cst.ensure_type(cst.ensure_type(line.body[0], cst.Expr).value, cst.Call)
            code = self.context.code(called.func)
            for part in (self.node.test, *called.args):
                if (reason := why_missed(self.context, part)) is not None:
                    raise Declined(f"compiled code would skip `{code}`, and {reason}")
            said = f"`{code}` is not called in compiled code"
            self.chooser.doubts[differs(said, Effect.OUTPUT, only=ShowsOnly.COMPILED)] = None
        block = cst.IndentedBlock([line.deep_clone() for line in lines], header=body.header.deep_clone())
        return [cst.If(and_not_compiling(self.context, self.node.test), block)] if lines else []

    def _returned(self) -> cst.BaseExpression:
        """The value of the side of the test."""
        body = self.node.body
        if self.node.orelse is not None or isinstance(self.context.parent(self.node), cst.If):
            raise OtherForm("there is another side")
        if not isinstance(body, cst.IndentedBlock) or not all(self._tells(one) for one in body.body[:-1]):
            raise OtherForm("the `if` does more than return a value")
        line = body.body[-1]
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if not isinstance(small, cst.Return) or small.value is None:
            raise OtherForm("the `if` does more than return a value")
        return small.value

    def _tells(self, line: cst.BaseStatement) -> bool:
        """Whether a line only reports a message."""
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        return isinstance(small, cst.Expr) and isinstance(small.value, cst.Call) and tells(self.context, small.value)

    def _comments(self) -> list[cst.EmptyLine]:
        """The comments of the lines that go."""
        body = cst.ensure_type(self.node.body, cst.IndentedBlock)
        line = cst.ensure_type(body.body[-1], cst.SimpleStatementLine)
        inside = [one.comment for one in line.leading_lines]
        header = body.header.comment if len(body.body) == 1 else None
        found = [header, *inside, line.trailing_whitespace.comment]
        return [cst.EmptyLine(comment=one) for one in found if one is not None]

    def _following(self) -> Sequence[cst.BaseStatement]:
        """The code behind the test, which must end in a return."""
        following = [*self.context.behind(self.node)]
        statement = self.node
        while not _ends(following):
            statement = self._branch_around(statement)
            following += self.context.behind(statement)
            self.around = statement
        above = self.context.parent(self.node)
        while above is not self.context.function:
            if isinstance(above, cst.For | cst.While | cst.Try | cst.With):
                raise Declined("the return is in a loop, a `with` or a `try`")
            above = self.context.parent(above) if above is not None else self.context.function
        return following

    def _branch_around(self, statement: cst.If) -> cst.If:
        """The ``if`` in one of whose sides a statement is."""
        block = self.context.parent(statement)
        above = self.context.parent(block) if block is not None else None
        while isinstance(above, cst.Else) or _is_elif(self.context.parent(above) if above else None, above):
            above = self.context.parent(above) if above is not None else None
        if not isinstance(above, cst.If):
            raise Declined("the code that follows does not end in a return")
        for test, _ in _arms(above):
            if test is not None and self._asks_tensors(test):
                raise Declined(f"`{self.context.code(test)}` around it is a branch on a tensor, too")
        return above

    def _asks_tensors(self, test: cst.BaseExpression) -> bool:
        return any(self.context.fact(one).is_tensor for part in or_list(test) for one in and_list(part))

    def _read(self, statements: Sequence[cst.BaseStatement]) -> None:
        """Collects the returns, and declines if it matters that a statement always runs."""
        for statement in statements:
            if isinstance(statement, cst.If):
                for test, body in _arms(statement):
                    if test is not None:
                        if self._asks_tensors(test):
                            raise Declined("the code that follows branches on a tensor, too")
                        self._always_runs(test)
                    self._read(body)
            elif isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self._read_small(small)
            else:
                raise Declined("the code that follows contains a compound statement, and would always run")

    def _read_small(self, small: cst.BaseSmallStatement) -> None:
        if isinstance(small, cst.Return):
            if small.value is None:
                raise Declined("the code that follows returns None")
            self.returns.append(small)
            for one in _elements(small.value):
                self._always_runs(one)
            return
        if isinstance(small, cst.Pass):
            return
        targets: list[cst.BaseExpression] = []
        if isinstance(small, cst.Assign):
            targets = [one.target for one in small.targets]
        elif isinstance(small, cst.AnnAssign) and small.value is not None:
            targets = [small.target]
        elif isinstance(small, cst.AugAssign):
            if self.context.fact(small.target).kind not in _PYTHON_KINDS:
                raise Declined(f"the code that follows changes `{self.context.code(small.target)}` in place")
            targets = [small.target]
        names = [one for target in targets for one in _elements(target)]
        if not names or not all(isinstance(one, cst.Name) for one in names):
            text = self.context.code(small)
            raise Declined(f"`{text if len(text) <= 40 else text[:37] + '...'}` would always run")
        self.assigned |= {one.value for one in names if isinstance(one, cst.Name)}
        if any(isinstance(one, cst.Tuple) for one in targets):
            said = f"`{self.context.code(small)}` may raise even if its side is not chosen"
            self.chooser.doubts[differs(said, Effect.RAISES)] = None
        value = small.value  # type: ignore[attr-defined]
        assert isinstance(value, cst.BaseExpression)
        self._always_runs(value)

    def _always_runs(self, source: cst.BaseExpression) -> None:
        if (reason := why_not_pure(self.context, source) or why_may_raise(self.context, source)) is not None:
            raise Declined(f"the code that follows would always run, and {reason}")
        self.chooser.runs_unchosen(source)

    def _kept(
        self, source: cst.BaseExpression, made: cst.BaseExpression, lines: list[cst.BaseStatement]
    ) -> cst.BaseExpression:
        """A value of the first return, as it is behind the code that follows: a new name if that may change it.

        ``made`` is the code of the value, which is computed in a new line.
        """
        if written_number(source) is not None or (isinstance(source, cst.Name) and source.value not in self.assigned):
            return source
        name = cst.Name(self._fresh("early_value"))
        lines.append(assignment(name, copied(made)))
        self.assigned.add(name.value)
        return name

    def _is_same(self, source: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        """Whether two returns give the same object."""
        same = isinstance(source, cst.Name) and isinstance(other, cst.Name) and source.value == other.value
        return same and source.value not in self.assigned  # type: ignore[attr-defined]

    def _fresh(self, name: str) -> str:
        taken = {*written(self.context.function), *read(self.context.function), *self.assigned}
        made, number = name, 2
        while made in taken:
            made, number = f"{name}_{number}", number + 1
        return made


class _Replaced(cst.CSTTransformer):
    """A statement with some of its nodes replaced."""

    def __init__(self, changes: Mapping[cst.CSTNode, Replacement]) -> None:
        super().__init__()
        self.changes = changes

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self.changes

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> cst.CSTNode:  # type: ignore[override]
        new = self.changes.get(original_node, updated_node)
        if new is None:
            return cst.RemoveFromParent()  # type: ignore[return-value]
        return new if isinstance(new, cst.CSTNode) else cst.FlattenSentinel(new)  # type: ignore[return-value]


def _is_none(name: cst.Name) -> cst.BaseExpression:
    return cst.Comparison(name.deep_clone(), [cst.ComparisonTarget(cst.Is(), cst.Name("None"))])


def _is_elif(above: cst.CSTNode | None, node: cst.CSTNode | None) -> bool:
    return isinstance(above, cst.If) and isinstance(node, cst.If) and above.orelse is node


def _elements(value: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The elements of a tuple, or the value itself.  Declines if their number is not known."""
    if not isinstance(value, cst.Tuple):
        return [value]
    if any(isinstance(one, cst.StarredElement) for one in value.elements):
        raise Declined("it is not known how many values are returned")
    return [one.value for one in value.elements]


def _arms(node: cst.If) -> list[tuple[cst.BaseExpression | None, Sequence[cst.BaseStatement]]]:
    """The blocks of an ``if`` and its ``elif`` and ``else``, with their tests."""
    found: list[tuple[cst.BaseExpression | None, Sequence[cst.BaseStatement]]] = []
    one: cst.If | cst.Else | None = node
    while one is not None:
        if not isinstance(one.body, cst.IndentedBlock):
            raise Declined("a side is on the same line as its test")
        found.append((one.test if isinstance(one, cst.If) else None, one.body.body))
        one = one.orelse if isinstance(one, cst.If) else None
    return found


def _ends(statements: Sequence[cst.BaseStatement]) -> bool:
    """Whether a block always returns."""
    last = statements[-1] if statements else None
    if isinstance(last, cst.SimpleStatementLine):
        return isinstance(last.body[-1], cst.Return)
    if not isinstance(last, cst.If):
        return False
    arms = _arms(last)
    return arms[-1][0] is None and all(_ends(body) for _, body in arms)
