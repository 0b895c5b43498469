"""``if tensor: x = a`` or ``a if tensor else b`` → ``torch.where(tensor, a, b)``.

Both sides are then computed, regardless of the test, so neither may have side effects or cost much.  Python conditions
stay an `if`.  What one side prints or logs stays under the test, in eager code alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from breakscan.fix.result import Effect, differs
from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import is_needed_outside
from breakscan.fix.support.checks import and_not_compiling, is_caught, reason_in, skipped
from breakscan.fix.support.context import Declined, Edit, NotKnown, OtherForm, Replacement, RewriteContext
from breakscan.fix.support.operators import operator_of, poles, what_costs, written_number
from breakscan.fix.support.purity import is_line_or_record, refuse_breaks_in, why_may_raise, why_not_pure, why_shown
from breakscan.fix.support.tensor_test import TensorTest, tensor_test
from breakscan.fix.support.walking import findall, fresh_name, read
from breakscan.rulebook.torch_facts.operators import Shape

BOTH_COMPUTED = differs(
    "both sides are computed: neither may raise, and they must have the same shape, dtype and device",
    *(Effect.RAISES, Effect.SHAPES, Effect.DTYPES, Effect.STRIDES, Effect.TYPES, Effect.STATE),
)
A_NEW_TENSOR = differs(
    "the result is a new tensor, and gradients flow through both sides", Effect.STORAGE, Effect.STATE, Effect.GRADIENTS
)


def rewrite(context: RewriteContext) -> Edit:
    """The branch whose test is at the site, as a choice between two tensors."""
    node = _branch_of(context)
    if isinstance(node, cst.If):
        edit = _Branch(context, node).edit()
    else:
        read_test = tensor_test(context, node.test)
        if read_test.when:
            raise Declined(f"`{context.code(read_test.when[0].test)}` is no tensor: ask for it in an `if` of its own")
        made = choice(context, read_test.tensor, _value(context, node.body), _value(context, node.orelse))
        edit = Edit({node: made}, [BOTH_COMPUTED, A_NEW_TENSOR])
    for new in edit.replace.values():
        for one in [new] if isinstance(new, cst.CSTNode) else new or ():
            _refuse_poles(context, node.test, one)
    return edit


def _refuse_poles(context: RewriteContext, test: cst.BaseExpression, made: cst.CSTNode) -> None:
    """Declines where the test keeps values away for which a gradient is infinite: `torch.where` makes it NaN."""
    compared = [one.comparator for one in test.comparisons] if isinstance(test, cst.Comparison) else []
    if not all(isinstance(written_number(one), int | float) for one in compared):
        return
    tested = _values_in(context, test)
    for one, where in poles(made):
        if tested & _values_in(context, where):
            code = context.plain(one)
            raise NotKnown(f"`{code}` would be computed for all values, and gradients may become NaN")


def _values_in(context: RewriteContext, node: cst.CSTNode) -> set[str]:
    """The variables and attributes of the object that code reads."""
    own = findall(node, m.Attribute(m.Name("self")))
    return {*read(node), *map(context.plain, own)} - {"self", "torch", "math", "F"}


def choice(
    context: RewriteContext, test: cst.BaseExpression, yes: cst.BaseExpression, no: cst.BaseExpression
) -> cst.BaseExpression:
    """``torch.where(test, yes, no)``."""
    if written_number(yes) is not None and written_number(no) is not None:
        raise Declined(f"`{context.code(yes)}` is a Python number, not a tensor")
    for one, other in ((yes, no), (no, yes)):
        if _resizes(one, context.code(other), context):
            raise Declined(f"`{context.code(one)}` has another size than `{context.code(other)}`")
    if build.is_inverted(test):
        test, yes, no = build.copied(cst.ensure_type(test, cst.UnaryOperation).expression), no, yes
    return build.call(context.imported("torch.where"), test, yes, no)


def _resizes(source: cst.BaseExpression, tensor: str, context: RewriteContext) -> bool:
    """Return whether a value is made by changing the size of a tensor: ``F.pad(x, (0, 1))``, ``x[1:]``."""
    if isinstance(source, cst.Subscript):
        return context.code(source.value) == tensor
    known = operator_of(context, source) if isinstance(source, cst.Call) else None
    if known is None or known.shapes is None:
        return False
    assert isinstance(source, cst.Call)
    owner = [source.func.value] if isinstance(source.func, cst.Attribute) and context.method(source) else []
    given = [*owner, *(arg.value for arg in source.args[:1])]
    if known.shapes & {Shape.FIRST, Shape.BROADCAST}:
        return any(_resizes(one, tensor, context) for one in given[:1])
    elements = [one.value for arg in given if isinstance(arg, cst.List | cst.Tuple) for one in arg.elements]
    return tensor in map(context.code, (*given, *elements))


def _value(context: RewriteContext, source: cst.BaseExpression) -> cst.BaseExpression:
    """A side that is always computed.  Declines if that matters, or if it is not a tensor or a number."""
    if isinstance(written_number(source), int | float):
        return source
    code = context.code(source)
    fact = context.fact(source)
    if fact.kind == "none" or code == "None":
        raise Declined("one side is None")
    if code in ("True", "False"):
        raise Declined("one side is a Python bool")
    if fact.is_number:
        raise Declined(f"`{code}` is a Python number, not a tensor")
    if not fact.is_tensor or fact.optional:
        raise NotKnown(f"`{code}` is not known to be a tensor")
    refuse_breaks_in(context, source)
    _always_computed(context, source)
    return source


def _always_computed(context: RewriteContext, source: cst.BaseExpression) -> None:
    if (reason := why_not_pure(context, source) or why_may_raise(context, source)) is not None:
        raise Declined(f"both sides would run, and {reason}")
    if (costly := what_costs(context, source)) is not None:
        raise Declined(f"both sides would run, and `{costly}` is costly")


@dataclass(frozen=True, slots=True)
class _Arm:
    """A side of a chain of ``if`` and ``elif``, with its test; None for the last one."""

    test: TensorTest | None
    side: "Side"


class _Branch:
    def __init__(self, context: RewriteContext, node: cst.If) -> None:
        self.context = context
        self.node = node
        self.function = context.function
        self.before = context.tree.facts.names(context.tree.span(node))
        """The values of names at the start of the branch; empty if it was not reached."""
        self.static: tuple[cst.BaseExpression, ...] = ()
        self.arms = self._arms()

    def _arms(self) -> list[_Arm]:
        arms: list[_Arm] = []
        one: cst.If | cst.Else | None = self.node
        while one is not None:
            if not isinstance(one.body, cst.IndentedBlock):
                raise Declined("a side is on the same line as its test")
            if isinstance(one, cst.Else):
                arms.append(_Arm(None, _read_side(one.body.body, self.context)))
                break
            found = tensor_test(self.context, one.test)
            if arms:
                if found.when:
                    raise Declined(f"`{self.context.code(found.when[0].test)}` is not a tensor")
                if (reason := why_not_pure(self.context, one.test)) is not None:
                    raise Declined(f"every test would be evaluated, and {reason}")
            elif any(when.otherwise for when in found.when):
                raise Declined(f"`{self.context.code(one.test)}` joins tensors and Python conditions: nest two tests")
            else:
                self.static = tuple(when.test for when in found.when)
            arms.append(_Arm(found, _read_side(one.body.body, self.context, is_first=not arms)))
            one = one.orelse
        return arms

    # -- the new code -------------------------------------------------------------------------------------------

    def edit(self) -> Edit:
        returning = [arm.side.returned is not None for arm in self.arms]
        if not any(returning):
            made = self._assignments()
        elif not all(returning):
            raise Declined("only one side returns")
        elif self.arms[-1].test is None:
            self._no_static()
            kept = self._kept(self.arms, merged=())
            made = self._in_place_of_node([*kept, self._chosen_return(self.arms)])
        else:
            made = self._early_return()
        reasons = (reason_in(self.context, line, why_shown) for line in self.arms[0].side.reported)
        return Edit(made, [BOTH_COMPUTED, A_NEW_TENSOR, *skipped(reasons)])

    def _early_return(self) -> Mapping[cst.CSTNode, Replacement]:
        self._no_static()
        if not isinstance(self.context.parent(self.node), cst.IndentedBlock):
            raise Declined("this is the `elif` of a test that cannot be rewritten")
        following = self.context.behind(self.node)
        rest = _read_side(following, self.context, "the code that follows")
        if rest.returned is None:
            raise Declined("the code that follows does not end in a return")
        if rest.assigned and (reason := why_not_pure(self.context, self.node.test)) is not None:
            raise Declined(f"the code after the `if` would run before the test, and in the test {reason}")
        behind = [statement for statement in following if isinstance(statement, cst.SimpleStatementLine)]
        last = next(one for one in behind if isinstance(one.body[0], cst.Return))
        for one in rest.assigned.values():
            if one.operator is not None:
                raise Declined(f"the code that follows changes `{one.name}` in place")
            _always_computed(self.context, one.value)
            for arm in self.arms:
                assert arm.test is not None
                assert arm.side.returned is not None
                if one.name in read([arm.test.tensor, arm.side.returned]):
                    raise Declined(f"`{one.name}` has a different value at the return")
        kept: list[cst.BaseStatement] = self._kept(self.arms, merged=())
        new = self._chosen_return([*self.arms, _Arm(None, rest)])
        if kept:
            kept[0] = build.with_leading_lines(kept[0], self.node)
        new = build.with_leading_lines(new, self.node if last is behind[0] and not kept else last)
        return {self.node: kept or None, last: new}

    def _assignments(self) -> Mapping[cst.CSTNode, Replacement]:
        names = list(dict.fromkeys(name for arm in self.arms for name in arm.side.assigned))
        merged = [name for name in names if is_needed_outside(self.context, name, self.node)]
        if not merged:
            raise Declined("no name that it assigns is read later")
        arms = list(self.arms)
        if len(arms) > 1 or arms[-1].test is None:
            self._no_static()
        if arms[-1].test is not None:
            arms.append(_Arm(None, Side()))
        self._check_order(merged, arms)
        lines = self._kept(self.arms, merged)
        tests = self._tests(merged, lines)
        for name in merged:
            lines.append(build.assignment(cst.Name(name), self._chosen(name, arms, tests)))
        return self._in_place_of_node(lines)

    # -- values -------------------------------------------------------------------------------------------------

    def _side_value(self, name: str, side: "Side") -> cst.BaseExpression:
        one = side.assigned.get(name)
        if one is not None:
            value = _value(self.context, one.value)
            return value if one.operator is None else one.made
        fact = self.before.get(name)
        if fact is None:
            raise Declined(f"`{name}` may have no value before the `if`")
        if not fact.is_tensor or fact.optional:
            raise NotKnown(f"`{name}` is not known to be a tensor")
        return cst.Name(name)

    def _chosen(self, name: str, arms: Sequence[_Arm], tests: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
        made = self._side_value(name, arms[-1].side)
        for arm, asked in zip(reversed(arms[:-1]), reversed(tests), strict=True):
            made = choice(self.context, asked, self._side_value(name, arm.side), made)
        return made

    def _chosen_return(self, arms: Sequence[_Arm]) -> cst.BaseStatement:
        made: cst.BaseExpression | None = None
        for arm in reversed(arms):
            assert arm.side.returned is not None
            value = _value(self.context, arm.side.returned)
            if made is not None and arm.test is not None:
                value = choice(self.context, arm.test.tensor, value, made)
            made = value
        return cst.SimpleStatementLine([cst.Return(made)])

    # -- checks -------------------------------------------------------------------------------------------------

    def _no_static(self) -> None:
        if self.static:
            raise Declined(f"`{self.context.code(self.static[0])}` is not a tensor, and there is another side")

    def _check_order(self, merged: Sequence[str], arms: Sequence[_Arm]) -> None:
        """Declines if a value would be computed from a name that has already been reassigned, or not yet."""
        for arm in arms:
            order = list(arm.side.assigned)
            for place, one in enumerate(arm.side.assigned.values()):
                for name in read(one.value):
                    if name not in merged or name not in order or name == one.name:
                        continue
                    there = order.index(name) < place
                    if one.name not in merged and there:
                        raise Declined(f"`{one.name}` is computed from the new `{name}`")
                    if one.name in merged and there != (merged.index(name) < merged.index(one.name)):
                        raise Declined(f"`{one.name}` and `{name}` are computed from each other")

    def _tests(self, merged: Sequence[str], lines: list[cst.BaseStatement]) -> list[cst.BaseExpression]:
        """The code of each test: a name if it is needed more than once."""
        tests = [arm.test.tensor for arm in self.arms if arm.test is not None]
        if len(merged) == 1 or all(isinstance(test, cst.Name) and test.value not in merged for test in tests):
            return tests
        names: list[cst.BaseExpression] = []
        for test in tests:
            name = fresh_name(self.function, "condition" if len(tests) == 1 else f"condition_{len(names) + 1}")
            lines.append(build.assignment(name, build.copied(test)))
            names.append(name)
        return names

    # -- lines --------------------------------------------------------------------------------------------------

    def _kept(self, arms: Sequence[_Arm], merged: Sequence[str]) -> list[cst.BaseStatement]:
        """The statements whose names are not read elsewhere: they stay, before the choice."""
        kept: dict[str, cst.BaseStatement] = {}
        for arm in arms:
            for one in arm.side.assigned.values():
                if one.name in merged:
                    continue
                if one.name in kept or one.operator is not None or self._reads_old(one.name):
                    raise Declined(f"`{one.name}` is also assigned other values")
                _always_computed(self.context, one.value)
                kept[one.name] = one.line.deep_clone()
        reported = self.arms[0].side.reported
        if (kept or reported) and (reason := why_not_pure(self.context, self.node.test)) is not None:
            raise Declined(f"a statement of one side would run before the test, and in the test {reason}")
        if not reported:
            return list(kept.values())
        assert self.arms[0].test is not None
        test = self.arms[0].test.tensor if self.static else self.node.test
        block = cst.IndentedBlock([line.deep_clone() for line in reported])
        return [cst.If(and_not_compiling(self.context, test), block), *kept.values()]

    def _reads_old(self, name: str) -> bool:
        """True if the value of a name before the `if` may be needed where a side would always assign it."""
        return name in self.before and (
            is_needed_outside(self.context, name, self.node)
            or name in read(self.node.test)
            or sum(name in arm.side.assigned for arm in self.arms) != 1
            or any(
                name in read(one.value)
                for arm in self.arms
                for one in arm.side.assigned.values()
                if name not in arm.side.assigned or one.name == name
            )
        )

    def _in_place_of_node(self, lines: list[cst.BaseStatement]) -> Mapping[cst.CSTNode, Replacement]:
        above = [line.deep_clone() for line in self.node.leading_lines]
        is_elif = isinstance(self.context.parent(self.node), cst.If)
        if not self.static and not is_elif:
            first = lines[0]
            lines[0] = first.with_changes(leading_lines=[*above, *getattr(first, "leading_lines", ())])
            return {self.node: lines}
        block = cst.IndentedBlock(lines)
        if not is_elif:
            return {self.node: cst.If(build.joined_and(self.static), block, leading_lines=above)}
        if self.static:
            block = cst.IndentedBlock([cst.If(build.joined_and(self.static), block)])
        return {self.node: cst.Else(block, leading_lines=above)}


# -- the sides of an if ---------------------------------------------------------------------------------------------


_BLOCKS = {
    cst.If: "another `if`",
    cst.For: "a loop",
    cst.While: "a loop",
    cst.With: "a `with`",
    cst.Try: "a `try`",
    cst.FunctionDef: "a function",
}


@dataclass(frozen=True, slots=True)
class Assigned:
    """``name = value``, in the statement ``line``.  ``operator`` is the operator of ``name += value``."""

    name: str
    value: cst.BaseExpression
    line: cst.SimpleStatementLine
    operator: cst.BaseBinaryOp | None = None

    @property
    def made(self) -> cst.BaseExpression:
        if self.operator is None:
            return self.value
        return build.binary(cst.Name(self.name), self.operator.deep_clone(), self.value)


@dataclass(frozen=True, slots=True)
class Side:
    """The statements of one side.  ``returned`` is the returned value, if any; ``reported`` only print or log."""

    assigned: Mapping[str, Assigned] = field(default_factory=dict)
    returned: cst.BaseExpression | None = None
    reported: Sequence[cst.SimpleStatementLine] = ()


def _branch_of(context: RewriteContext) -> cst.If | cst.IfExp:
    """The ``if`` or conditional expression whose test is at the site.  Declines if there is none."""
    if isinstance(context.node, cst.If | cst.IfExp):
        return context.node  # no node spans a test with its parentheses
    branch = context.tested_by(cst.If, cst.IfExp)
    if branch is None:
        raise OtherForm("this is not the test of an `if` or a conditional expression")
    return branch


def _read_side(
    body: Sequence[cst.BaseStatement], context: RewriteContext, where: str = "one side", is_first: bool = False
) -> Side:
    """The side that a block is.  Declines if it contains more than assignments to names and the return of a value; the
    ``first`` may also print and log what it does not assign."""
    assigned: dict[str, Assigned] = {}
    returned: cst.BaseExpression | None = None
    reported: list[cst.SimpleStatementLine] = []
    for statement in body:
        if not isinstance(statement, cst.SimpleStatementLine):
            raise Declined(f"{where} contains {_BLOCKS.get(type(statement), 'a compound statement')}")
        if len(statement.body) != 1:
            raise Declined("several statements share a line")
        small = statement.body[0]
        if isinstance(small, cst.Pass):
            continue
        if isinstance(small, cst.Return):
            if small.value is None:
                raise Declined(f"{where} returns None")
            if isinstance(small.value, cst.Tuple | cst.List | cst.Dict):
                raise Declined(f"{where} returns several values")
            returned = small.value
            break
        if is_first and isinstance(small, cst.Expr) and is_line_or_record(context, small.value):
            if is_caught(context, statement) or not {*read(small)}.isdisjoint(assigned):
                raise Declined(f"`{context.code(small)}` would come before what it shows, or its exception is caught")
            reported.append(statement)
            continue
        one = _assignment(context, small, statement, where)
        if one.name in assigned:
            raise Declined(f"`{one.name}` is assigned twice on one side")
        assigned[one.name] = one
    return Side(assigned, returned, reported)


def _assignment(
    context: RewriteContext, small: cst.BaseSmallStatement, line: cst.SimpleStatementLine, where: str
) -> Assigned:
    operator = None
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target, value = small.targets[0].target, small.value
    elif isinstance(small, cst.AnnAssign) and small.value is not None:
        target, value = small.target, small.value
    elif isinstance(small, cst.AugAssign):
        target, value = small.target, small.value
        operator = build.AUGMENTED.get(type(small.operator))
        if operator is None:
            raise Declined(f"the operator of `{context.code(small)}` is not supported")
    else:
        raise Declined(_why_no_assignment(context, small, where))
    if isinstance(target, cst.Name):
        return Assigned(target.value, value, line, operator)
    if isinstance(target, cst.Subscript):
        raise Declined(f"`{context.code(target)}` is changed in place")
    if isinstance(target, cst.Attribute):
        raise Declined(f"the attribute `{context.code(target)}` is set on one side")
    raise Declined(f"`{context.code(target)}` assigns several names at once")


def _why_no_assignment(context: RewriteContext, small: cst.BaseSmallStatement, where: str) -> str:
    if isinstance(small, cst.Raise | cst.Assert):
        return f"{where} raises"
    if isinstance(small, cst.Continue | cst.Break):
        return f"{where} contains `continue` or `break`"
    if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        return f"`{context.code(small.value.func)}(...)` is not an assignment to a name"
    text = context.code(small)
    return f"`{text if len(text) <= 40 else text[:37] + '...'}` is not an assignment to a name"
