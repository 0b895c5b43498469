"""``if tensor: x = a`` or ``a if tensor else b`` → ``torch.where(tensor, a, b)``.

Both sides are then computed, regardless of the test.  It is safe if neither side has side effects, neither can raise,
both have the same shape and dtype and are on the device of the test, and the derivative of the side that is not chosen
is finite.  Python conditions stay an `if`.  Where the tested value is a tensor in some calls only, the choice is made
for these, under ``isinstance(value, torch.Tensor)``, and the old code stays for the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.aliases import fate
from breakscan.fix.support.bool_tensor import Truth, truth
from breakscan.fix.support.build import assignment, copied, joined_and, with_leading_lines
from breakscan.fix.support.compiling import and_not_compiling
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.copies import fate_of_name
from breakscan.fix.support.difference import Effect, ShowsOnly, differs
from breakscan.fix.support.edit import Declined, Edit, Replacement
from breakscan.fix.support.float_limits import dtype_tested
from breakscan.fix.support.if_sides import Side, branch_of, read_side
from breakscan.fix.support.later_uses import changed_in_place, is_needed_outside
from breakscan.fix.support.names import read, written
from breakscan.fix.support.not_raising import may_raise
from breakscan.fix.support.purity import why_may_raise, why_not_pure
from breakscan.fix.support.reporting_calls import why_missed
from breakscan.fix.support.type_tested import as_tensors, doubtful, type_test
from breakscan.fix.support.walking import findall
from breakscan.fix.support.where_builder import Chooser, SideValue


def rewrite(context: RewriteContext) -> Edit:
    """The branch whose test is at the site, as a choice between two tensors."""
    node = branch_of(context)
    names = doubtful(context, node.test)
    return _for_tensors_alone(context, node, names) if names else _edit(context, node)


def _edit(context: RewriteContext, node: cst.If | cst.IfExp) -> Edit:
    return _Branch(context, node).edit() if isinstance(node, cst.If) else _Ternary(context).edit(node)


def _for_tensors_alone(context: RewriteContext, node: cst.If | cst.IfExp, names: Sequence[cst.Name]) -> Edit:
    """The choice where the tested names are tensors, and the old code where they are not."""
    asked = type_test(context, names)
    edit = _edit(as_tensors(context, names, node), node)
    made = edit.replace.get(node)
    edit = replace(edit, remains=edit.remains or _where_it_remains(context, node.test, asked))
    if len(edit.replace) != 1 or made is None:
        raise Declined(f"`{names[0].value}` is not always a tensor, and more than the `if` would change")
    if isinstance(node, cst.IfExp):
        assert isinstance(made, cst.BaseExpression)
        bare = node.with_changes(lpar=[], rpar=[])
        new = cst.IfExp(asked, made, copied(bare), lpar=node.lpar, rpar=node.rpar)
        return replace(edit, replace={node: new})
    if isinstance(made, cst.Else):
        raise Declined(f"`{names[0].value}` is not always a tensor, and this is an `elif`")
    first, *others = [made] if isinstance(made, cst.CSTNode) else made
    own = len(node.leading_lines)
    assert isinstance(first, cst.SimpleStatementLine | cst.BaseCompoundStatement)
    first = first.with_changes(leading_lines=first.leading_lines[own:])
    old = node.deep_clone().with_changes(leading_lines=[])
    branch = cst.If(asked, cst.IndentedBlock([first, *others]), old, leading_lines=_copies(node.leading_lines))
    return replace(edit, replace={node: branch})


def _where_it_remains(context: RewriteContext, test: cst.BaseExpression, asked: cst.BaseExpression) -> str | None:
    """The condition under which the old code still tests a tensor: several values are tested, of which some are one."""
    if len({context.code(one) for one in findall(test, m.Name()) if context.fact(one).kind == "tensor"}) < 2:
        return None
    code = context.code(asked)
    return f"not ({code})" if isinstance(asked, cst.BooleanOperation) else f"not {code}"


class _Ternary:
    def __init__(self, context: RewriteContext) -> None:
        self.context = context
        self.chooser = Chooser(context)

    def edit(self, node: cst.IfExp) -> Edit:
        tested = truth(self.context, node.test)
        if tested.static:
            raise Declined(f"`{self.context.code(tested.static[0])}` is not a tensor")
        self.chooser.doubts.update(dict.fromkeys(tested.doubts))
        self.chooser.knows(node.test)
        sides = self.chooser.value(node.body), self.chooser.value(node.orelse)
        made = self.chooser.choose(tested, tested.tensor, *sides, fate(self.context, node), self._target(node)).made
        differences = list(self.chooser.doubts)
        return Edit({node: made}, differences)

    def _target(self, node: cst.IfExp) -> str | None:
        """The name that the value is bound to."""
        above = self.context.parent(node)
        target = above.targets[0].target if isinstance(above, cst.Assign) and len(above.targets) == 1 else None
        return target.value if isinstance(target, cst.Name) else None


@dataclass(frozen=True, slots=True)
class _Arm:
    """A side of a chain of ``if`` and ``elif``, with its test; None for the last one."""

    truth: Truth | None
    side: Side
    test: cst.BaseExpression | None = None


class _Branch:
    def __init__(self, context: RewriteContext, node: cst.If) -> None:
        self.context = context
        self.node = node
        self.chooser = Chooser(context)
        self.function = context.function
        self.before = context.names_before(node)
        self.arms = self._arms()
        self.static = self.arms[0].truth.static if self.arms[0].truth is not None else ()
        self.chooser.knows(node.test)
        self.chooser.given += [found for test in self.static if (found := dtype_tested(context, test)) is not None]

    def _arms(self) -> list[_Arm]:
        arms: list[_Arm] = []
        one: cst.If | cst.Else | None = self.node
        while one is not None:
            if not isinstance(one.body, cst.IndentedBlock):
                raise Declined("a side is on the same line as its test")
            if isinstance(one, cst.Else):
                arms.append(_Arm(None, read_side(one.body.body, self.context)))
                break
            found = truth(self.context, one.test)
            if arms:
                if found.static:
                    raise Declined(f"`{self.context.code(found.static[0])}` is not a tensor")
                if (
                    reason := why_not_pure(self.context, one.test) or why_may_raise(self.context, one.test)
                ) is not None:
                    raise Declined(f"every test would be evaluated, and {reason}")
                self.chooser.always_runs(one.test)
            self.chooser.doubts.update(dict.fromkeys(found.doubts))
            arms.append(_Arm(found, read_side(one.body.body, self.context), one.test))
            one = one.orelse
        return arms

    # -- the new code -------------------------------------------------------------------------------------------

    def edit(self) -> Edit:
        self._check_messages()
        first = self.arms[0].side
        if first.messages and not first.assigned and first.returned is None and len(self.arms) == 1:
            return Edit({self.node.test: and_not_compiling(self.context, self.node.test)}, list(self.chooser.doubts))
        returning = [arm.side.returned is not None for arm in self.arms]
        if not any(returning):
            made = self._assignments()
        elif not all(returning):
            raise Declined("only one side returns")
        elif self.arms[-1].truth is None:
            made = self._returns()
        else:
            made = self._early_return()
        return Edit(made, list(self.chooser.doubts))

    def _returns(self) -> Mapping[cst.CSTNode, Replacement]:
        self._no_static()
        lines = self._kept(self.arms, merged=())
        lines.append(self._line(cst.Return(self._chosen_return(self.arms).made)))
        return self._in_place_of_node(lines)

    def _early_return(self) -> Mapping[cst.CSTNode, Replacement]:
        self._no_static()
        if not isinstance(self.context.parent(self.node), cst.IndentedBlock):
            raise Declined("this is the `elif` of a test that cannot be rewritten")
        following = self.context.behind(self.node)
        rest = read_side(following, self.context, "the code that follows")
        if rest.assigned:
            self._test_must_be_pure("the code after the `if`")
        if rest.returned is None:
            raise Declined("the code that follows does not end in a return")
        behind = [statement for statement in following if isinstance(statement, cst.SimpleStatementLine)]
        last = next(one for one in behind if isinstance(one.body[0], cst.Return))
        for one in rest.assigned:
            if one.operator is not None:
                raise Declined(f"the code that follows changes `{one.name}` in place")
            if (reason := why_not_pure(self.context, one.value) or why_may_raise(self.context, one.value)) is not None:
                raise Declined(f"the code that follows would always run, and {reason}")
            self.chooser.always_runs(one.value)
            for arm in self.arms:
                assert arm.truth is not None
                assert arm.side.returned is not None
                if one.name in read([arm.truth.tensor, arm.side.returned]):
                    raise Declined(f"`{one.name}` has a different value at the return")
        kept: list[cst.BaseStatement] = self._kept(self.arms, merged=())
        made = self._chosen_return([*self.arms, _Arm(None, rest)]).made
        comments = [*self._comments(self.node), *self.arms_comments(self.arms)]
        new = self._line(cst.Return(made))
        if last is behind[0] and not kept:
            lines = [*self.node.leading_lines, *self.arms_comments(self.arms), *self._comments(last)]
            return {self.node: None, last: new.with_changes(leading_lines=_copies(lines))}
        if kept:
            kept[0] = with_leading_lines(kept[0], self.node)
            comments = self.arms_comments(self.arms)
        new = new.with_changes(
            leading_lines=_copies([*last.leading_lines, *comments]),
            trailing_whitespace=last.trailing_whitespace.deep_clone(),
        )
        return {self.node: kept or None, last: new}

    def _assignments(self) -> Mapping[cst.CSTNode, Replacement]:
        names = list(dict.fromkeys(one.name for arm in self.arms for one in arm.side.assigned))
        merged = [name for name in names if is_needed_outside(self.context, name, self.node)]
        if not merged:
            raise Declined("no name that it assigns is read later")
        if len(self.arms) > 1 or self.arms[-1].truth is None:
            self._no_static()
        arms = list(self.arms)
        if arms[-1].truth is not None:
            arms.append(_Arm(None, Side()))
        self._check_order(merged, arms)
        self._check_in_place(merged, arms)
        lines = self._kept(self.arms, merged)
        tests = self._tests(merged, lines)
        for name in merged:
            chosen = self._chosen(name, arms, tests)
            lines.append(self._line(assignment(cst.Name(name), chosen.made).body[0]))
        return self._in_place_of_node(lines)

    # -- values -------------------------------------------------------------------------------------------------

    def _value(self, name: str, side: Side) -> SideValue:
        one = side.value(name)
        if one is None:
            return self.chooser.old(name, self.before.get(name))
        if one.operator is not None:
            old = self.chooser.old(name, self.before.get(name))
            said = f"`{name}` is no longer changed in place"
            self.chooser.doubts[differs(said, Effect.STORAGE, Effect.STATE, Effect.DTYPES)] = None
            if not isinstance(one.operator, cst.AddAssign | cst.SubtractAssign):
                text = self.context.code(one.made)
                said = f"`{text}` may give a NaN gradient, or make backward() raise, if it is not chosen"
                self.chooser.doubts[differs(said, Effect.GRADIENTS)] = None
            return SideValue(one.made, old.facts, frozenset(read(one.made)), one.value)
        return self.chooser.value(one.value)

    def _chosen(self, name: str, arms: Sequence[_Arm], tests: Sequence[cst.BaseExpression]) -> SideValue:
        made = self._value(name, arms[-1].side)
        becomes = fate_of_name(self.context, name, self.node)
        for arm, asked in zip(reversed(arms[:-1]), reversed(tests), strict=True):
            assert arm.truth is not None
            value = self._value(name, arm.side)
            # A test that acts or raises must still run, even if it does not matter which side is chosen.
            if self._acts(arm) or self.context.code(value.made) != self.context.code(made.made):
                made = self.chooser.choose(arm.truth, asked, value, made, becomes, name)
        return made

    def _acts(self, arm: _Arm) -> bool:
        """Whether the test of an arm has side effects or may raise."""
        assert arm.test is not None
        return why_not_pure(self.context, arm.test) is not None or may_raise(self.context, arm.test) is not None

    def _chosen_return(self, arms: Sequence[_Arm]) -> SideValue:
        made: SideValue | None = None
        for arm in reversed(arms):
            assert arm.side.returned is not None
            value = self.chooser.value(arm.side.returned)
            made = (
                value
                if arm.truth is None or made is None
                else self.chooser.choose(arm.truth, arm.truth.tensor, value, made)
            )
        assert made is not None
        return made

    # -- checks -------------------------------------------------------------------------------------------------

    def _test_must_be_pure(self, moved: str) -> None:
        """Declines if code would run before the test and the test has side effects."""
        reason = why_not_pure(self.context, self.node.test)
        if reason is not None:
            raise Declined(f"{moved} would run before the test, and in the test {reason}")

    def _no_static(self) -> None:
        if self.static:
            raise Declined(f"`{self.context.code(self.static[0])}` is not a tensor, and there is another side")

    def _check_messages(self) -> None:
        """Declines if a message could not be kept in eager code."""
        for arm in self.arms:
            for line in arm.side.messages:
                called = cst.ensure_type(cst.ensure_type(line.body[0], cst.Expr).value, cst.Call)
                code = self.context.code(called.func)
                if arm is not self.arms[0] or self.static:
                    raise Declined(f"`{code}(...)` is not an assignment to a name")
                for part in (self.node.test, *called.args):
                    if (reason := why_missed(self.context, part)) is not None:
                        raise Declined(f"compiled code would skip `{code}`, and {reason}")
                self.chooser.doubts[
                    differs(f"`{code}` is not called in compiled code", Effect.OUTPUT, only=ShowsOnly.COMPILED)
                ] = None

    def _message(self) -> list[cst.BaseStatement]:
        """The messages of the first side, which eager code still reports."""
        lines = [line.deep_clone() for line in self.arms[0].side.messages]
        if not lines:
            return []
        header = cst.ensure_type(self.node.body, cst.IndentedBlock).header.deep_clone()
        return [cst.If(and_not_compiling(self.context, self.node.test), cst.IndentedBlock(lines, header=header))]

    def _check_order(self, merged: Sequence[str], arms: Sequence[_Arm]) -> None:
        """Declines if a value would be computed from a name that has already been reassigned, or not yet."""
        for arm in arms:
            order = [one.name for one in arm.side.assigned]
            for place, one in enumerate(arm.side.assigned):
                for name in read(one.value):
                    if name not in merged or name not in order or name == one.name:
                        continue
                    there = order.index(name) < place
                    if one.name not in merged and there:
                        raise Declined(f"`{one.name}` is computed from the new `{name}`")
                    if one.name in merged and there != (merged.index(name) < merged.index(one.name)):
                        raise Declined(f"`{one.name}` and `{name}` are computed from each other")

    def _check_in_place(self, merged: Sequence[str], arms: Sequence[_Arm]) -> None:
        aliases = set(merged)
        for arm in arms:
            aliases |= {one.value.value for one in arm.side.assigned if isinstance(one.value, cst.Name)}
        changed = changed_in_place(self.context, aliases, self.node)
        if changed is not None:
            said = f"`{changed}` is a copy, and is changed in place later"
            self.chooser.doubts[differs(said, Effect.STORAGE, Effect.STATE)] = None

    def _tests(self, merged: Sequence[str], lines: list[cst.BaseStatement]) -> list[cst.BaseExpression]:
        """The code of each test: a name if it is needed more than once."""
        tests = [arm.truth.tensor for arm in self.arms if arm.truth is not None]
        if len(merged) == 1 or all(isinstance(test, cst.Name) and test.value not in merged for test in tests):
            return tests
        names: list[cst.BaseExpression] = []
        for test in tests:
            name = self._fresh("condition" if len(tests) == 1 else f"condition_{len(names) + 1}")
            lines.append(self._line(assignment(cst.Name(name), copied(test)).body[0]))
            names.append(cst.Name(name))
        return names

    def _fresh(self, name: str) -> str:
        taken = {*written(self.function), *read(self.function)}
        while name in taken:
            name += "_"
        return name

    # -- lines --------------------------------------------------------------------------------------------------

    def _kept(self, arms: Sequence[_Arm], merged: Sequence[str]) -> list[cst.BaseStatement]:
        """The statements whose names are not read elsewhere: they stay, before the choice."""
        kept: dict[str, cst.BaseStatement] = {}
        messages = self._message() if arms is self.arms else []
        for arm in arms:
            for one in arm.side.assigned:
                if one.name in merged:
                    continue
                if one.name in kept or one.operator is not None or self._reads_old(one.name, arm):
                    raise Declined(f"`{one.name}` is also assigned other values")
                assert arm.truth is not None or arm is arms[-1]
                self.chooser.both_run(one.value, None)
                kept[one.name] = one.line.deep_clone()
        if messages or kept:
            self._test_must_be_pure("a statement of one side")
        return [*messages, *kept.values()]

    def _reads_old(self, name: str, arm: _Arm) -> bool:
        """Whether the value of a name before the `if` may be needed where an arm would always assign it."""
        if name not in self.before:
            return False
        if is_needed_outside(self.context, name, self.node):
            return True
        apart: list[cst.BaseExpression] = []
        for other in self.arms:
            apart += [other.test] if other.test is not None else []
            apart += [other.side.returned] if other is not arm and other.side.returned is not None else []
            for one in other.side.assigned:
                apart.append(one.value)
                if other is arm and one.name == name:
                    break
        return name in read([self.node.test, *apart])

    def _line(self, small: cst.BaseSmallStatement) -> cst.SimpleStatementLine:
        return cst.SimpleStatementLine([small])

    def _is_elif(self) -> bool:
        return isinstance(self.context.parent(self.node), cst.If)

    def _comments(self, statement: cst.If | cst.SimpleStatementLine) -> list[cst.EmptyLine]:
        return [line for line in statement.leading_lines if line.comment is not None]

    def arms_comments(self, arms: Sequence[_Arm]) -> list[cst.EmptyLine]:
        """The comments of all sides whose statements are removed, and those after the tests."""
        found: list[cst.EmptyLine] = []
        heads: cst.If | cst.Else | None = self.node
        for arm in arms:
            if heads is not None and isinstance(heads.body, cst.IndentedBlock):
                if heads.body.header.comment is not None:
                    found.append(cst.EmptyLine(comment=heads.body.header.comment))
                heads = heads.orelse if isinstance(heads, cst.If) else None
            found += arm.side.comments
        return found

    def _in_place_of_node(self, lines: list[cst.BaseStatement]) -> Mapping[cst.CSTNode, Replacement]:
        there = [line for one in lines for line in getattr(one, "leading_lines", ())]
        texts = {line.comment.value for line in there if line.comment is not None}
        texts |= {
            one.trailing_whitespace.comment.value
            for one in lines
            if isinstance(one, cst.SimpleStatementLine) and one.trailing_whitespace.comment is not None
        }
        texts |= {
            one.body.header.comment.value
            for one in lines
            if isinstance(one, cst.If)
            and isinstance(one.body, cst.IndentedBlock)
            and one.body.header.comment is not None
        }
        comments = [one for one in self.arms_comments(self.arms) if one.comment and one.comment.value not in texts]
        first = lines[0]
        own = [*comments, *getattr(first, "leading_lines", ())]
        if self.static or self._is_elif():
            lines[0] = first.with_changes(leading_lines=_copies(own))
            block = cst.IndentedBlock(lines)
            if self._is_elif():
                if self.static:
                    block = cst.IndentedBlock([cst.If(joined_and(self.static), block)])
                return {self.node: cst.Else(block, leading_lines=_copies(self.node.leading_lines))}
            made = cst.If(joined_and(self.static), block, leading_lines=_copies(self.node.leading_lines))
            return {self.node: made}
        lines[0] = first.with_changes(leading_lines=_copies([*self.node.leading_lines, *own]))
        return {self.node: lines}


def _copies(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    return [line.deep_clone() for line in lines]
