"""``if tensor: self.x = a`` with an ``else: self.x = b`` → ``self.x = torch.where(tensor, a, b)``.

Code that prepares a side and may run repeatedly is moved before it: ``if not hasattr(self, "y"): self.y = ...`` and
``self.z = self.z.to(device)``.  Never safe: both sides are then prepared at the first call, and the attribute is a new
tensor instead of one of the two.  In-place ``copy_`` would keep the attribute, but would write to the tensor that it
was last set to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.bool_tensor import truth
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Difference, Effect, assumes, differs
from breakscan.fix.support.edit import Declined, Edit, OtherForm
from breakscan.fix.support.if_sides import branch_of
from breakscan.fix.support.purity import why_not_pure
from breakscan.fix.support.walking import findall
from breakscan.fix.support.where_builder import Chooser, SideValue
from breakscan.fix.support.wording import plain
from breakscan.model.facts import UNKNOWN


def rewrite(context: RewriteContext) -> Edit:
    """The branch whose test is at the site, as one choice that is assigned to the attribute."""
    node = branch_of(context)
    if not isinstance(node, cst.If) or not _ends_in_store(node):
        raise OtherForm("this is not an `if` whose sides end by setting an attribute")
    return _Branch(context, node).edit()


@dataclass(frozen=True, slots=True)
class _Store:
    """``self.x = value`` or ``self.register_buffer("x", value, ...)``.  ``way`` identifies which of these it is."""

    line: cst.SimpleStatementLine
    name: str
    value: cst.BaseExpression
    way: str

    @property
    def registers(self) -> bool:
        return isinstance(self.line.body[0], cst.Expr)


@dataclass(frozen=True, slots=True)
class _Side:
    """``preparation`` are its statements with the attributes that each sets."""

    preparation: tuple[tuple[cst.BaseStatement, list[str]], ...]
    store: _Store
    comments: tuple[cst.EmptyLine, ...]


def _ends_in_store(node: cst.If) -> bool:
    """Whether a side ends by setting an attribute, judged by its syntax."""
    registered = m.Expr(m.Call(m.Attribute(attr=m.Name("register_buffer"))))
    store = m.SimpleStatementLine([m.Assign([m.AssignTarget(m.Attribute())]) | registered])
    return isinstance(node.body, cst.IndentedBlock) and m.matches(node.body.body[-1], store)


def _sets_attributes(method: cst.CSTNode) -> bool:
    stores = m.AssignTarget(m.Attribute()) | m.AugAssign(m.Attribute())
    return bool(findall(method, stores | m.Call(m.Attribute(attr=m.Name("register_buffer")))))


class _Branch:
    def __init__(self, context: RewriteContext, node: cst.If) -> None:
        self.context = context
        self.node = node
        given = [*context.function.params.posonly_params, *context.function.params.params]
        if not given:
            raise Declined("the function has no parameters")
        self.own = given[0].name.value
        if context.names_before(node).get(self.own, UNKNOWN).kind == "tensor":
            raise Declined(f"`{self.own}` is a tensor itself")

    def edit(self) -> Edit:
        context, node = self.context, self.node
        if isinstance(context.parent(node), cst.If) or isinstance(node.orelse, cst.If):
            raise Declined("the `if` is part of an `elif` chain")
        if node.orelse is None:
            raise Declined("there is no `else` that also sets the attribute")
        tested = truth(context, node.test)
        if tested.static:
            raise Declined(f"`{context.code(tested.static[0])}` is not a tensor")
        if (reason := why_not_pure(context, node.test)) is not None:
            raise Declined(f"the test would run after the preparation, and {reason}")
        yes, no = self._side(node.body), self._side(node.orelse.body)
        if yes.store.name != no.store.name:
            raise Declined(f"one side sets `{self.own}.{yes.store.name}`, the other `{self.own}.{no.store.name}`")
        if yes.store.way != no.store.way:
            raise Declined(f"the sides set `{self.own}.{yes.store.name}` in different ways")
        self._check_apart(yes, no)
        chooser = Chooser(context)
        values = self._value(chooser, yes.store), self._value(chooser, no.store)
        chooser.doubts.update(dict.fromkeys(tested.doubts))
        made = chooser.choose(tested, tested.tensor, *values).made
        return Edit({node: self._lines(yes, no, made)}, self._difference(yes, no, chooser))

    # -- reading ------------------------------------------------------------------------------------------------

    def _side(self, block: cst.BaseSuite) -> _Side:
        if not isinstance(block, cst.IndentedBlock):
            raise Declined("a side is on the same line as its test")
        for statement in block.body:
            self._check_no_leave(statement)
        *before, last = block.body
        preparation = tuple((one, self._prepared(one)) for one in before)
        store = self._store(last)
        if any(store.name in names for _, names in preparation):
            raise Declined(f"`{self.own}.{store.name}` is set twice on one side")
        lines = [cst.EmptyLine(comment=block.header.comment), *store.line.leading_lines]
        lines.append(cst.EmptyLine(comment=store.line.trailing_whitespace.comment))
        lines += block.footer
        return _Side(preparation, store, tuple(line for line in lines if line.comment is not None))

    def _prepared(self, statement: cst.BaseStatement) -> list[str]:
        """The attributes that a statement of preparation sets.  Declines if it is something else."""
        if isinstance(statement, cst.If):
            return self._prepared_once(statement)
        match statement:
            case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=target)], value=value)]):
                name = self._attribute(target)
                own = m.Attribute(value=m.Name(self.own), attr=m.Name(name or ""))
                if name is not None and m.matches(value, m.Call(m.Attribute(own, m.Name("to")))):
                    for arg in cst.ensure_type(value, cst.Call).args:
                        if (reason := why_not_pure(self.context, arg)) is not None:
                            raise Declined(f"the preparation would always run, and {reason}")
                    return [name]
        raise Declined(f"`{self._short(statement)}` on one side does more than prepare the value")

    def _prepared_once(self, guard: cst.If) -> list[str]:
        """The attributes that ``if not hasattr(self, "y"):`` sets, ``y`` among them."""
        once = m.UnaryOperation(m.Not(), m.Call(m.Name("hasattr"), [m.Arg(m.Name(self.own)), m.Arg(m.SimpleString())]))
        if not m.matches(guard.test, once) or guard.orelse is not None:
            raise Declined(f"`if {plain(self.context, guard.test)}` on one side does more than prepare the value")
        asked = cst.ensure_type(cst.ensure_type(guard.test, cst.UnaryOperation).expression, cst.Call).args[1].value
        names: list[str] = []
        for statement in guard.body.body:
            small = statement.body if isinstance(statement, cst.SimpleStatementLine) else [statement]
            for one in small:
                if not isinstance(one, cst.Assign) or len(one.targets) != 1:
                    raise Declined(f"`{self._short(statement)}` on one side does more than prepare the value")
                names += self._targets(one.targets[0].target)
                self._check_value(one.value)
        if cst.ensure_type(asked, cst.SimpleString).evaluated_value not in names:
            raise Declined(f"`if {plain(self.context, guard.test)}` does not set the attribute that it tests")
        return names

    def _targets(self, target: cst.BaseExpression) -> list[str]:
        elements = [one.value for one in target.elements] if isinstance(target, cst.Tuple) else [target]
        names = []
        for one in elements:
            name = self._attribute(one)
            if name is not None:
                names.append(name)
            elif not m.matches(one, m.Name("_")):
                raise Declined(f"`{self.context.code(one)}` is set on one side")
        return names

    def _check_value(self, value: cst.BaseExpression) -> None:
        """Values that are prepared once may come from any call except one that is known to set attributes itself."""
        if (found := self._method_that(value, _sets_attributes)) is not None:
            raise Declined(f"`{self.own}.{found}` sets attributes itself")

    def _store(self, statement: cst.BaseStatement) -> _Store:
        match statement:
            case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=target)], value=value)]):
                name = self._attribute(target)
                if name is not None:
                    return _Store(statement, name, value, "=")
            case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call(func=func, args=[first, second, *rest]))]):
                if (
                    self._attribute(func) == "register_buffer"
                    and isinstance(first.value, cst.SimpleString)
                    and isinstance(second.value, cst.BaseExpression)
                    and not any(arg.star for arg in (first, second, *rest))
                    and first.keyword is None
                ):
                    way = ", ".join(
                        self.context.code(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for arg in rest
                    )
                    return _Store(statement, str(first.value.evaluated_value), second.value, f"register_buffer {way}")
        raise Declined(f"one side ends with `{self._short(statement)}`, which sets no attribute of `{self.own}`")

    def _check_no_leave(self, statement: cst.BaseStatement | cst.BaseSmallStatement) -> None:
        for kind, word in ((m.Return(), "returns"), (m.Raise() | m.Assert(), "raises")):
            if findall(statement, kind):
                raise Declined(f"one side {word}")

    def _attribute(self, node: cst.CSTNode) -> str | None:
        """The name of an attribute of the object."""
        if m.matches(node, m.Attribute(value=m.Name(self.own))):
            return cst.ensure_type(node, cst.Attribute).attr.value
        return None

    # -- the sides must be independent ----------------------------------------------------------------------------

    def _check_apart(self, yes: _Side, no: _Side) -> None:
        for side, other in ((yes, no), (no, yes)):
            theirs = [other.store.value, *(statement for statement, _ in self._only(other, side))]
            for _, names in side.preparation:
                self._check_unread(names, [self.node.test], "the test")
            for _, names in self._only(side, other):
                self._check_unread(names, theirs, "the other side")

    def _check_unread(self, names: list[str], parts: list[cst.CSTNode], who: str) -> None:
        for name in names:
            if any(self._mentions(part, name) for part in parts):
                raise Declined(f"{who} uses `{self.own}.{name}`, which one side prepares")

    def _only(self, side: _Side, other: _Side) -> list[tuple[cst.BaseStatement, list[str]]]:
        """The preparation that the other side does not also do."""
        there = {self._bare(one) for one, _ in other.preparation}
        return [(one, names) for one, names in side.preparation if self._bare(one) not in there]

    def _bare(self, statement: cst.BaseStatement | cst.BaseSmallStatement) -> str:
        """The text of a statement, without the comments above it."""
        bare = isinstance(statement, cst.BaseSmallStatement)
        return plain(self.context, statement if bare else statement.with_changes(leading_lines=()))

    def _mentions(self, node: cst.CSTNode, name: str) -> bool:
        """Whether code uses an attribute, itself or in a method of the class that it calls."""

        def holds(code: cst.CSTNode) -> bool:
            return bool(findall(code, m.Attribute(attr=m.Name(name)) | m.SimpleString(m.MatchRegex(f".{name}."))))

        return holds(node) or self._method_that(node, holds) is not None

    def _method_that(self, node: cst.CSTNode, holds: Callable[[cst.CSTNode], bool]) -> str | None:
        """The first method of the class that code calls and for which ``holds`` is true."""
        called = {self._attribute(one) for one in findall(node, m.Attribute())}
        owner = next((one for one in self.context.around() if isinstance(one, cst.ClassDef)), None)
        for method in owner.body.body if owner is not None else ():
            if isinstance(method, cst.FunctionDef) and method.name.value in called and holds(method):
                return method.name.value
        return None

    # -- the new code -----------------------------------------------------------------------------------------------

    def _value(self, chooser: Chooser, store: _Store) -> SideValue:
        context, fact = self.context, self.context.fact(store.value)
        if fact.parameter and not store.registers:
            raise Declined(f"`{context.code(store.value)}` is a parameter, but the result of torch.where is not")
        if not store.registers or fact.kind not in ("unknown", "namespace") or m.matches(store.value, m.Name("None")):
            return chooser.value(store.value)
        # `register_buffer` takes only a tensor or None.
        chooser.doubts[assumes("the values are assumed to be tensors of the same shape and dtype")] = None
        return chooser.unknown(store.value)

    def _lines(self, yes: _Side, no: _Side, made: cst.BaseExpression) -> list[cst.BaseStatement]:
        lines: list[cst.BaseStatement]
        lines = [statement.deep_clone() for statement, _ in (*yes.preparation, *self._only(no, yes))]
        orelse = cst.ensure_type(self.node.orelse, cst.Else)
        comments = [*yes.comments, *(one for one in orelse.leading_lines if one.comment is not None), *no.comments]
        lines.append(self._stored(yes.store, made).with_changes(leading_lines=[one.deep_clone() for one in comments]))
        above = [*self.node.leading_lines, *getattr(lines[0], "leading_lines", ())]
        lines[0] = lines[0].with_changes(leading_lines=[one.deep_clone() for one in above])
        return lines

    def _stored(self, store: _Store, made: cst.BaseExpression) -> cst.SimpleStatementLine:
        small = store.line.body[0].deep_clone()
        if isinstance(small, cst.Assign):
            small = small.with_changes(value=made)
        else:
            call = cst.ensure_type(cst.ensure_type(small, cst.Expr).value, cst.Call)
            first, second, *rest = call.args
            small = cst.Expr(call.with_changes(args=[first, second.with_changes(value=made), *rest]))
        return cst.SimpleStatementLine([small])

    def _difference(self, yes: _Side, no: _Side, chooser: Chooser) -> list[Difference]:
        own = f"`{self.own}.{yes.store.name}` is a new tensor at each call (the second call may recompile)"
        differences = [differs(own, Effect.STORAGE, Effect.STATE, Effect.GRADIENTS)]
        if yes.preparation or no.preparation:
            differences.insert(0, differs("both sides are prepared", Effect.RAISES))
        return [*differences, *chooser.doubts]

    def _short(self, statement: cst.BaseStatement | cst.BaseSmallStatement) -> str:
        text = self._bare(statement)
        return text if len(text) <= 40 else text[:37] + "..."
