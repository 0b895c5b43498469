"""``out[hit] = expert(h[hit]) * w[hit, None]`` in a loop → every expert computes all rows, and ``torch.where`` selects.

The rows that an expert gets are selected by a mask, or by ``rows, k = torch.where(mask)``, and added by ``index_add_``.
A test that skips experts without rows goes, and so does the list of those with rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from breakscan.fix.result import Effect, assumes, differs
from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import (
    is_bound_once,
    is_changed_in_place,
    is_read,
    is_read_outside,
    origin,
    plain_value,
    reads_of,
)
from breakscan.fix.support.context import Declined, Edit, OtherForm, Replacement, RewriteContext
from breakscan.fix.support.masked import hits_of
from breakscan.fix.support.operators import called
from breakscan.fix.support.purity import decline_for, is_local, refuse_breaks_in, why_not_pure
from breakscan.fix.support.rows import Rows, of_all, tells_rows
from breakscan.fix.support.walking import findall, fresh_name, nodes_named, read, written
from breakscan.rulebook.torch_facts.not_measured import ONLY_LOOKED_AT

_NUMBERS = ("nonzero", "argwhere")
_ZERO = m.SubscriptElement(m.Index(m.Integer("0")))
_MINUS = [m.UnaryOperation(operator=m.Minus(), expression=m.Integer(one)) for one in ("1", "2")]
_LAST_TWO = m.Tuple([m.Element(one) for one in _MINUS]) | m.Tuple([m.Element(one) for one in reversed(_MINUS)])
_ALL = m.SubscriptElement(m.Slice(lower=None, upper=None, step=None))
_ALL_ROWS = differs(
    "every expert computes all rows, each of which must select an expert at most once: that rounds differently, costs"
    " more with many experts, and an expert without rows gets a gradient of zero, or NaN",
    *(Effect.VALUES, Effect.GRADIENTS, Effect.DTYPES, Effect.STRIDES, Effect.NO_LONGER_RAISES),
)
_ROWS_TOGETHER = m.Name(m.MatchRegex(r"(Lazy)?(Batch|Instance|SyncBatch)Norm.*"))


def rewrite(context: RewriteContext) -> Edit:
    """The loop over all rows."""
    loop, listed = _loop_of(context)
    if not isinstance(loop.body, cst.IndentedBlock) or loop.orelse is not None:
        raise Declined("the loop has an `else`")
    found = _Loop(context, loop, listed)
    found.block(loop.body.body)
    if not found.added:
        raise OtherForm("the loop does not add up what experts compute for selected rows")
    if listed is not None:
        found.over_all(listed)
    experts = " and ".join(f"`{one}`" for one in found.rows.called) or "the experts"
    classes = [one for one in context.tree.module.body if isinstance(one, cst.ClassDef)]
    with_norms = {one.name.value for one in classes if findall(one, _ROWS_TOGETHER)}
    for call in (cst.ensure_type(one, cst.Call) for one in findall(loop, m.Call())):
        if (text := context.plain(call.func)) in found.rows.called and context.fact(call.func).name in with_norms:
            raise Declined(f"`{text}` has a norm that computes several rows together")
    rowwise = assumes(f"{experts} must compute each row by itself, without dropout, counters or hooks")
    for new in found.changes.values():
        for one in [new] if isinstance(new, cst.CSTNode) else new or ():
            refuse_breaks_in(context, loop, one)
    return Edit(found.changes, [rowwise, _ALL_ROWS])


@dataclass(frozen=True, slots=True)
class _Listed:
    """The experts that a loop iterates over: a list, or a tensor of their numbers, as ``nonzero`` returns it."""

    name: str
    line: cst.SimpleStatementLine
    value: cst.BaseExpression
    is_tensor: bool


def _loop_of(context: RewriteContext) -> tuple[cst.For, _Listed | None]:
    """The loop around the site, or over the experts that the site computes, and what it iterates over."""
    around = context.enclosing(cst.For)
    if around is not None:
        return around, _listed(context, around)
    for one in findall(context.function, m.For(iter=m.Name())):
        listed = _listed(context, cst.ensure_type(one, cst.For))
        if listed is not None and listed.line is context.statement():
            return cst.ensure_type(one, cst.For), listed
    raise OtherForm("this is not in a loop over experts")


def _listed(context: RewriteContext, loop: cst.For) -> _Listed | None:
    """The experts with rows, if a loop iterates over their numbers only."""
    if not isinstance(loop.iter, cst.Name):
        return None
    name, anchor = loop.iter.value, origin(context, loop.iter).anchor
    lines = findall(anchor, m.SimpleStatementLine()) if isinstance(anchor, cst.With) else [anchor]
    made = [(one, plain_value(one, name)) for one in lines if one is not None]
    for line, value in reversed(made):
        if not isinstance(value, cst.Call) or not isinstance(line, cst.SimpleStatementLine):
            continue
        if m.matches(value.func, m.Attribute(attr=m.Name("tolist"))):
            return _Listed(name, line, value, False)
        function, method = called(context, value)
        if method in _NUMBERS or function in {f"torch.{one}" for one in _NUMBERS}:
            return _Listed(name, line, value, True)
    return None


def _squeezed(name: str) -> m.BaseMatcherNode:
    """``x[i].squeeze(0)``."""
    indexed = m.Subscript(slice=[m.SubscriptElement(m.Index(m.Name(name)))])
    return m.Call(m.Attribute(indexed, m.Name("squeeze")), [m.Arg(m.Integer("0"))])


def _visited(statement: cst.CSTNode, number: "_Number") -> cst.BaseStatement:
    made = statement.visit(number)
    assert isinstance(made, cst.BaseStatement)
    return made


class _Number(cst.CSTTransformer):
    """Reads a name as an integer where it was a tensor with one element: ``i`` for ``i[0]``, ``x[i]`` for
    ``x[i].squeeze(0)``."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.own = m.Subscript(m.Name(name), [_ZERO])
        self.squeezed = _squeezed(name)

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        return updated_node.value if m.matches(original_node, self.own) else updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if not m.matches(original_node, self.squeezed):
            return updated_node
        return cst.ensure_type(updated_node.func, cst.Attribute).value


class _Loop:
    """Translates the statements of a loop.  ``mask`` selects the rows; None if it has one dimension for sure."""

    def __init__(self, context: RewriteContext, loop: cst.For, listed: _Listed | None) -> None:
        self.context = context
        self.loop = loop
        self.changes: dict[cst.CSTNode, Replacement] = {}
        self.added = False
        self.listed = listed
        self.skips = listed is not None
        self.seen: set[str] = set()
        self.routed: cst.BaseExpression | None = None
        self.mask: cst.BaseExpression | None = None
        self.rows = self._find()

    # -- what selects the rows --------------------------------------------------------------------------------------

    def _find(self) -> Rows:
        """The rows that the loop selects."""
        context = self.context
        for line in self._lines(self.loop.body):
            small = line.body[0]
            if isinstance(small, cst.Assign) and (made := self._from_indices(line, small)) is not None:
                return made
        for one in findall(self.loop, m.AssignTarget(m.Subscript()) | m.AugAssign(m.Subscript())):
            target = cst.ensure_type(one.target, cst.Subscript)  # type: ignore[attr-defined]
            first = target.slice[0].slice
            index = first.value if isinstance(first, cst.Index) else None
            if index is None or not context.fact(index).is_tensor or context.fact(index).dtype not in (None, "bool"):
                continue
            decline_for(why_not_pure(context, index))
            for name in read(index):
                self._refuse_changes(name, 1 if isinstance(index, cst.Name) else 0)
            self.mask = index
            return Rows(context.plain(index), is_mask=True)
        raise OtherForm("the loop does not add up what experts compute for selected rows")

    def _lines(self, block: cst.CSTNode) -> Iterator[cst.SimpleStatementLine]:
        for one in findall(block, m.SimpleStatementLine()):
            if isinstance(one, cst.SimpleStatementLine) and len(one.body) == 1:
                yield one

    def _from_indices(self, line: cst.SimpleStatementLine, small: cst.Assign) -> Rows | None:
        """``k, rows = torch.where(mask)`` or ``rows = torch.where(mask)[0]``, with the masks that replace them."""
        context, target = self.context, small.targets[0].target
        if len(small.targets) > 1:
            return None
        value, is_vector = small.value, False
        if m.matches(value, m.Subscript(slice=[_ZERO])):
            value, is_vector = cst.ensure_type(value, cst.Subscript).value, True
        mask = hits_of(context, value)
        if mask is None:
            return None
        names = [one.value for one in target.elements] if isinstance(target, cst.Tuple) else [target]
        if not all(isinstance(one, cst.Name) for one in names):
            raise Declined("the indices are stored where other code can read them")
        texts = [context.plain(one) for one in names]
        for text in set(texts) - {"_"}:
            self._refuse_changes(text, 1)
            if is_read_outside(context, text, self.loop):
                raise Declined(f"`{text}` is used after the loop")
        aliases = self._aliases(texts)
        truth = build.copied(mask) if context.fact(mask).dtype == "bool" else build.method(mask, "bool")
        if len(names) == 1 and (is_vector or isinstance(target, cst.Tuple)):
            new = small.with_changes(targets=[cst.AssignTarget(build.copied(names[0]))], value=truth)  # type: ignore[arg-type]
            self.changes[line] = line.with_changes(body=[new])
            return Rows(texts[0], aliases=aliases)
        if len(names) != 2 or is_vector:
            raise Declined("there are more than two indices")
        index = self._row_index(texts, aliases)
        if index == 1:
            turned = cst.Attribute(build.operand(mask), cst.Name("T"))
            truth = turned if context.fact(mask).dtype == "bool" else build.method(turned, "bool")
        routed = fresh_name(context.function, "is_routed")
        is_named = isinstance(truth, cst.Name) and is_bound_once(context, truth.value)
        hit = cst.Name(truth.value) if isinstance(truth, cst.Name) and is_named else fresh_name(context.function, "hit")
        named = [] if is_named else [build.assignment(hit, truth)]
        named.append(build.assignment(routed, build.method(hit, "any", build.expression("-1"))))
        self.changes[line] = [line.with_changes(body=named[0].body), *named[1:]]
        self.routed = routed
        return Rows(texts[index], texts[1 - index], hits=hit, aliases=aliases)

    def _aliases(self, texts: Sequence[str]) -> dict[str, str]:
        """Other names that the loop gives to indices, whose lines go."""
        found: dict[str, str] = {}
        alias = m.Assign([m.AssignTarget(m.Name())], m.Name())
        for line in self._lines(self.loop.body):
            if not m.matches(line.body[0], alias):
                continue
            small = cst.ensure_type(line.body[0], cst.Assign)
            name, value = self.context.plain(small.targets[0].target), self.context.plain(small.value)
            if value not in texts:
                continue
            self._refuse_changes(name, 1)
            if is_read_outside(self.context, name, self.loop):
                raise Declined(f"`{name}` is used after the loop")
            found[name] = value
            self.changes[line] = None
        return found

    def _row_index(self, texts: Sequence[str], aliases: Mapping[str, str]) -> int:
        """The one of two indices that selects the rows: it comes first in subscripts."""
        firsts = set()
        for one in findall(self.loop.body, m.Subscript()):
            elements = [self.context.plain(each.slice) for each in cst.ensure_type(one, cst.Subscript).slice]
            first = elements[1] if elements[0] == "None" and len(elements) > 1 else elements[0]
            firsts.add(aliases.get(first, first))
        found = [text in firsts for text in texts]
        if found.count(True) != 1:
            raise Declined("it is not known which of the two indices selects the rows")
        return found.index(True)

    def _refuse_changes(self, name: str, most: int) -> None:
        """Declines if the loop assigns a name more often than expected, or changes it in place."""
        bound = [one for one in nodes_named(self.loop.body, name) if not is_read(self.context, one)]
        if len(bound) > most or is_changed_in_place(self.loop.body, name):
            raise Declined(f"`{name}` may be a different mask where the rows are used: give it another name")

    # -- statements -------------------------------------------------------------------------------------------------

    def block(self, statements: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """The statements for all rows, which are also recorded as changes."""
        made: list[cst.BaseStatement] = []
        for one in statements:
            made += self._statement(one)
            self.seen |= {*read(one)}
        return made

    def _statement(self, one: cst.BaseStatement) -> Sequence[cst.BaseStatement]:
        if one in self.changes:
            new = self.changes[one]
            return [new] if isinstance(new, cst.BaseStatement) else list(new or ())  # type: ignore[arg-type]
        if isinstance(one, cst.If):
            return self._if(one)
        if not isinstance(one, cst.SimpleStatementLine) or len(one.body) != 1:
            raise Declined("the loop has more than assignments and tests for rows")
        small = one.body[0]
        if self._is_own_number(small):
            self.changes[one] = None
            return []
        new_small = self._scattered(small) or self._packed(small)
        if new_small is None:
            self._stays(small)
            return [one.deep_clone()]
        new_line = one.with_changes(body=[new_small])
        if self.context.code(new_line) != self.context.code(one):
            self.changes[one] = new_line
        return [new_line]

    def _is_own_number(self, small: cst.BaseSmallStatement) -> bool:
        """``i = i[0]``, where the loop iterates over a tensor with the numbers of experts."""
        if self.listed is None or not self.listed.is_tensor or not isinstance(self.loop.target, cst.Name):
            return False
        name = m.Name(self.loop.target.value)
        return m.matches(small, m.Assign([m.AssignTarget(name)], m.Subscript(name, [_ZERO])))

    def _if(self, one: cst.If) -> Sequence[cst.BaseStatement]:
        selects = tells_rows(self.context, self.rows, one.test)
        if selects is None or one.orelse is not None or not isinstance(one.body, cst.IndentedBlock):
            raise Declined(f"`{self.context.plain(one.test)}` is not a test for rows without an `else`")
        self.skips = True
        if not selects:
            if not m.matches(one.body.body[0], m.SimpleStatementLine([m.Continue()])):
                raise Declined(f"`{self.context.plain(one.test)}` does more than skip an expert")
            self.changes[one] = None
            self._drop_count(one.test)
            return []
        self._drop_count(one.test)
        made = self.block(one.body.body)
        for inner in one.body.body:
            self.changes.pop(inner, None)
        if made and not getattr(made[0], "leading_lines", ()):
            made[0] = build.with_leading_lines(made[0], one)
        self.changes[one] = made
        return made

    def _drop_count(self, test: cst.BaseExpression) -> None:
        """Drops the line that counts the rows for a test alone."""
        for name in findall(test, m.Name()):
            line = origin(self.context, cst.ensure_type(name, cst.Name)).anchor
            if not isinstance(line, cst.SimpleStatementLine) or line in self.changes:
                continue
            small = line.body[0]
            if self.context.enclosing(cst.For, line) is not self.loop or not isinstance(small, cst.Assign):
                continue
            target = small.targets[0].target
            if isinstance(target, cst.Name) and reads_of(self.context, target, line) == [name]:
                self.changes[line] = None

    def _stays(self, small: cst.BaseSmallStatement) -> None:
        """Declines if a statement needs the rows, or does something for experts without rows."""
        if self.rows.touches(self.context, small):
            raise Declined(f"`{self.context.plain(small)}` needs the selected rows, whose number depends on values")
        if not self.skips or isinstance(small, cst.Pass) or m.matches(small, m.Expr(m.SimpleString())):
            return
        names = written(small)
        if not isinstance(small, cst.Assign | cst.AnnAssign) or small.value is None or not names:
            raise Declined(f"`{self.context.plain(small)}` would run for experts without rows")
        if (reason := why_not_pure(self.context, small.value)) is not None:
            raise Declined(f"{reason}, and would run for experts without rows")
        for name in names:
            self._refuse_carried(name, small.value)

    def _refuse_carried(self, name: str, value: cst.BaseExpression) -> None:
        """Declines if a name that the loop assigns is used after the loop, or in its next iteration."""
        if is_read_outside(self.context, name, self.loop):
            raise Declined(f"`{name}` is used after the loop")
        if name not in self.rows.packed and name in {*self.seen, *read(value)}:
            raise Declined(f"`{name}` has another value at the start of the loop: give it another name")

    def _packed(self, small: cst.BaseSmallStatement) -> cst.BaseSmallStatement | None:
        """``rows = h[hit]``: the name holds all rows instead."""
        if not isinstance(small, cst.Assign) or not self.rows.touches(self.context, small.value):
            return None
        if not m.matches(small, m.Assign([m.AssignTarget(m.Name())])):
            raise Declined(f"`{self.context.plain(small)}` stores selected rows")
        name = cst.ensure_type(small.targets[0].target, cst.Name).value
        self._refuse_carried(name, small.value)
        made = of_all(self.context, self.rows, small.value)
        self.rows.packed.add(name)
        if small.value.lpar and not made.lpar:
            # Without its parentheses, an expression of several lines ends at the first.
            made = made.with_changes(lpar=small.value.lpar, rpar=small.value.rpar)
        return small.with_changes(value=made)

    # -- the result -------------------------------------------------------------------------------------------------

    def _scattered(self, small: cst.BaseSmallStatement) -> cst.BaseSmallStatement | None:
        """``out[hit] = value``, ``out[hit] += value`` and ``out.index_add_(0, rows, value)`` for all rows."""
        context = self.context
        if isinstance(small, cst.Assign) and len(small.targets) == 1 and self._is_rows_of(small.targets[0].target):
            owner = cst.ensure_type(small.targets[0].target, cst.Subscript).value
            made = self._where(small.value, owner, build.copied(owner))
            return self._rebound(owner, made) or cst.Expr(build.method(owner, "copy_", made))
        if isinstance(small, cst.AugAssign) and self._is_rows_of(small.target):
            if not isinstance(small.operator, cst.AddAssign | cst.SubtractAssign):
                raise Declined(f"`{context.plain(small)}` does more than add to the result")
            owner = cst.ensure_type(small.target, cst.Subscript).value
            return self._sum(owner, self._where(small.value, owner, build.expression("0")), small.operator)
        call = small.value if isinstance(small, cst.Expr) else None
        if not isinstance(call, cst.Call) or not m.matches(call.func, m.Attribute(attr=m.Name("index_add_"))):
            return None
        owner = cst.ensure_type(call.func, cst.Attribute).value
        args = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        if len(args) != len(call.args) or len(args) != 3 or not m.matches(args[0], m.Integer("0")):
            raise Declined(f"`{context.plain(call)}` does not add rows by position")
        if self.rows.name_of(context.plain(args[1])) != self.rows.index:
            raise Declined(f"`{context.plain(args[1])}` is not the index of the selected rows")
        return self._sum(owner, self._where(args[2], owner, build.expression("0")), cst.AddAssign())

    def _sum(self, owner: cst.BaseExpression, made: cst.Call, operator: cst.BaseAugOp) -> cst.BaseSmallStatement:
        subtracts = isinstance(operator, cst.SubtractAssign)
        if self._is_needed(owner):
            # The inputs of the experts must not be changed in place: autograd needs them.
            total = build.binary(owner, cst.Subtract() if subtracts else cst.Add(), made)
            if (rebound := self._rebound(owner, total)) is not None:
                return rebound
        if isinstance(owner, cst.Name) and owner.value in written(self.context.function):
            return cst.AugAssign(owner.deep_clone(), operator.deep_clone(), made)
        return cst.Expr(build.method(owner, "sub_" if subtracts else "add_", made))

    def _rebound(self, owner: cst.BaseExpression, made: cst.BaseExpression) -> cst.Assign | None:
        """``out = made``, if nothing else holds the tensor."""
        if not isinstance(owner, cst.Name) or not is_local(self.context, owner):
            return None
        return cst.Assign([cst.AssignTarget(owner.deep_clone())], made)

    def _is_needed(self, owner: cst.BaseExpression) -> bool:
        """True if the loop reads the elements of a tensor besides adding to it."""
        text = self.context.plain(owner)
        found = [one for one in findall(self.loop.body, m.Name() | m.Attribute()) if self.context.plain(one) == text]
        return not all(map(self._is_result, found))

    def _is_result(self, node: cst.CSTNode) -> bool:
        above = self.context.parent(node)
        if isinstance(above, cst.Subscript):
            return isinstance(self.context.parent(above), cst.AssignTarget | cst.AugAssign)
        return isinstance(above, cst.Attribute) and above.attr.value in {"index_add_", *ONLY_LOOKED_AT}

    def _is_rows_of(self, target: cst.BaseExpression) -> bool:
        """True if an expression is the selected rows of a tensor, ``out[hit]`` or ``out[hit, :]``."""
        if not isinstance(target, cst.Subscript):
            return False
        if self.rows.name_of(self.context.plain(target.slice[0].slice)) != self.rows.index:
            return False
        return all(m.matches(one, _ALL) for one in target.slice[1:])

    def _where(self, value: cst.BaseExpression, owner: cst.BaseExpression, off: cst.BaseExpression) -> cst.Call:
        context = self.context
        if self.rows.touches(context, owner):
            raise Declined(f"`{context.plain(owner)}` holds selected rows")
        made = of_all(context, self.rows, value)
        if not self.rows.called and not self.rows.multiplies:
            raise OtherForm("no expert is called with the selected rows")
        self.added = True
        mask = self.routed or build.expression(self.rows.index)
        dots = cst.SubscriptElement(cst.Index(cst.Ellipsis()))
        column = cst.Subscript(build.operand(mask), [dots, cst.SubscriptElement(cst.Index(cst.Name("None")))])
        return build.call(context.imported("torch.where"), column, made, off)

    # -- which experts ----------------------------------------------------------------------------------------------

    def over_all(self, listed: _Listed) -> None:
        """Iterates over all experts instead of those with rows."""
        context, target = self.context, self.loop.target
        if not isinstance(target, cst.Name):
            raise Declined("the loop does not iterate over the numbers of experts")
        if listed.is_tensor and findall(self.loop.body, m.Attribute(value=m.Name(target.value))):
            raise Declined(f"`{target.value}` is needed as a tensor")
        if listed.is_tensor and not any(self._is_own_number(line.body[0]) for line in self._lines(self.loop.body)):
            self._index_by_number(target.value)
        indexed = findall(self.loop.body, m.Subscript(slice=[m.SubscriptElement(m.Index(m.Name(target.value)))]))
        owners = [cst.ensure_type(one, cst.Subscript).value for one in indexed]
        experts = {context.plain(one) for one in owners if context.fact(one).kind == "module"}
        count = (self._classes() or self._counted(listed)) if not experts else f"len({experts.pop()})"
        if experts or count is None:
            raise Declined("it is not known how many experts there are")
        reads = [one for one in nodes_named(context.function, listed.name) if is_read(context, one)]
        inside = [one for one in reads if any(above is listed.line for above in context.around(one))]
        after = [one for one in reads if context.tree.span(one) > context.tree.span(listed.line) and one not in inside]
        if len(after) != 1:
            raise Declined(f"`{listed.name}` is used for more than the loop")
        # The names of the loop's function that the mask is made from.
        calls = [one for one in findall(self.loop.body, m.Call()) if isinstance(one, cst.Call)]
        masks = [self.mask] if self.mask is not None else [hits_of(context, one) for one in calls]
        inner = {*written(target), *written(self.loop.body)}
        names = {name for one in masks if one is not None for name in read(one)} - inner
        if names.isdisjoint(name for one in self._made_from(listed.value) for name in read(one)):
            raise Declined(f"`{listed.name}` is not computed from the mask")
        self.changes[self.loop.iter] = build.call(build.expression("range"), build.expression(count))
        self.changes[listed.line] = None

    def _classes(self) -> str | None:
        """The number of classes of the ``one_hot`` that the mask is made by, as code."""
        if self.listed is None:
            return None
        for made in self._made_from(self.listed.value):
            for one in findall(made, m.Call()):
                call = cst.ensure_type(one, cst.Call)
                if called(self.context, call)[0] != "torch.nn.functional.one_hot" or len(call.args) != 2:
                    continue
                number = call.args[1].value
                if m.matches(number, m.Attribute(value=m.Name("self")) | m.Integer()):
                    return self.context.plain(number)
        return None

    def _counted(self, listed: _Listed) -> str | None:
        """The size of what is summed for each expert, as code: ``mask.shape[0]`` of ``mask.sum(dim=(-1, -2))``."""
        summed = m.Call(m.Attribute(m.Name(), m.Name("sum")), [m.Arg(_LAST_TWO, keyword=m.Name("dim"))])
        found = findall(listed.value, summed)
        if len(found) != 1:
            return None
        function = cst.ensure_type(cst.ensure_type(found[0], cst.Call).func, cst.Attribute)
        owner = cst.ensure_type(function.value, cst.Name)
        used = [one for one in nodes_named(self.loop.body, owner.value) if is_read(self.context, one)]
        anchors = [origin(self.context, one).anchor for one in (owner, *used)]
        if not used or anchors[0] is None or any(one is not anchors[0] for one in anchors):
            return None
        return f"{owner.value}.shape[0]"

    def _index_by_number(self, name: str) -> None:
        """Indexes by an integer instead of a tensor with one element, which keeps a dimension: ``x[i].squeeze(0)``."""
        context = self.context
        for one in nodes_named(self.loop.body, name):
            around = [*context.around(one)][:5]
            if m.matches(around[0], m.Subscript(m.Name(name), [_ZERO])):
                continue
            is_module = (
                isinstance(around[0], cst.Index)
                and isinstance(around[2], cst.Subscript)
                and context.fact(around[2].value).kind == "module"
            )
            if not is_module and not m.matches(around[-1], _squeezed(name)):
                raise Declined(f"`{name}` is needed as a tensor")
        number = _Number(name)
        for old, new in self.changes.items():
            statements = [new] if isinstance(new, cst.CSTNode) else new or ()
            self.changes[old] = [_visited(one, number) for one in statements]
        for line in self._lines(self.loop.body):
            made = _visited(line, number)
            is_old = not any(one in self.changes for one in (line, *context.around(line)))
            if is_old and context.code(made) != context.code(line):
                self.changes[line] = made

    def _made_from(self, value: cst.BaseExpression) -> list[cst.BaseExpression]:
        """An expression, and those that its names were assigned, through the names of others."""
        found = [value]
        for one in found:
            for name in findall(one, m.Name()):
                if isinstance(name, cst.Name) and is_read(self.context, name):
                    made = origin(self.context, name).value
                    if made is not None and not any(made is other for other in found):
                        found.append(made)
        return found
