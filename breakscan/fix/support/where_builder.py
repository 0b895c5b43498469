"""Chooses between two values with ``torch.where``, and records the differences."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.aliases import Fate, change_behind
from breakscan.fix.support.bool_tensor import Truth
from breakscan.fix.support.breaks import refuse_breaks_in
from breakscan.fix.support.build import call, copied
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.copies import holders, is_shared
from breakscan.fix.support.costs import what_costs
from breakscan.fix.support.difference import Difference, Effect, ShowsOnly, assumes, differs
from breakscan.fix.support.dtypes import KnownDtype, compare
from breakscan.fix.support.edit import Declined
from breakscan.fix.support.grad_mode import is_switched_by_calls, no_gradient_scope, uncertain_gradient_scope
from breakscan.fix.support.gradient_roots import gradient_roots, names_with_gradient
from breakscan.fix.support.gradients import (
    why_gradient_differs,
    why_origin_differs,
)
from breakscan.fix.support.guarded_index import guarded
from breakscan.fix.support.names import read, written
from breakscan.fix.support.not_raising import may_raise
from breakscan.fix.support.numbers import written_number
from breakscan.fix.support.operators import asks_for_gradient
from breakscan.fix.support.plain_attributes import may_run_code
from breakscan.fix.support.purity import why_may_raise, why_not_pure
from breakscan.fix.support.saved_tensors import backward_raises
from breakscan.fix.support.shapes import are_different, are_equal, is_vector
from breakscan.fix.support.walking import code_children, findall
from breakscan.model.facts import DtypeOf, Fact, Input, ResultOf, Source, Symbol, TensorFacts, opaque
from breakscan.rulebook.torch_facts.operators import operator

_ANY = opaque(Symbol("", (0,)), DtypeOf(Symbol("", (0,)), number=None))
"""The facts about an unknown value."""


_LAYOUT = differs("the sides may have different memory layouts, so the strides may change", Effect.STRIDES)
_DEVICES = assumes("the test and both sides must be on the same device", only=ShowsOnly.DEVICES)
REQUIRED = differs(
    "the result requires a gradient if either side does, and a side that is not chosen gets zero instead of none",
    Effect.GRADIENTS,
)


@dataclass(frozen=True, slots=True)
class SideValue:
    """A value that may be chosen: its code, and the expression of the file that it comes from, if there is one."""

    made: cst.BaseExpression
    facts: TensorFacts
    names: frozenset[str]
    source: cst.BaseExpression | None = None
    chosen_from: tuple[SideValue, ...] = ()
    """The two values, if this value is the result of another choice, which has no aliases."""
    is_number: bool = False

    @property
    def sources(self) -> tuple[cst.BaseExpression, ...]:
        """The expressions of the file that its code is built from."""
        inner = tuple(source for one in self.chosen_from for source in one.sources)
        return inner if self.source is None else (self.source, *inner)


@dataclass(slots=True)
class Chooser:
    """Builds the calls of ``torch.where`` at one site.

    ``doubts`` are the differences.  ``given`` are known dtypes at the place of the choice.
    """

    context: RewriteContext
    given: list[KnownDtype] = field(default_factory=list)
    computes_both: bool = True
    """Whether both sides are computed and may be numbers, as for ``torch.where``; not so for ``torch.cond``."""
    merges: bool = True
    """Whether ``f(a)`` and ``f(b)`` may become one call, which is made where the choice is."""
    doubts: dict[Difference, None] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)
    """The code of expressions that were computed before the choice."""
    asked_of_torch: set[str] = field(default_factory=set)
    """The names of which the test asks something that torch answers for tensors: ``torch.isinf(x)``."""
    in_range: set[cst.CSTNode] = field(default_factory=set)
    """The subscripts that do not raise because their indices are changed."""

    def value(self, source: cst.BaseExpression, made: cst.BaseExpression | None = None) -> SideValue:
        """The value of an expression.  Declines if it is not a tensor, or breaks the graph itself."""
        fact = self.context.fact(source)
        if self.computes_both and isinstance(written_number(source), int | float):
            code = self.context.code(source)
            self.doubts[differs(f"the result is a tensor even if `{code}` is chosen", Effect.TYPES)] = None
            return SideValue(source, _ANY, frozenset(), source, is_number=True)
        if self.computes_both and made is None and (safe := guarded(self.context, source)) is not None:
            made = safe.made
            self.in_range |= safe.nodes
            self.doubts.update(dict.fromkeys(safe.differences))
        refuse_breaks_in(self.context, source, made)
        self._check_tensor(fact, self.context.code(source), source)
        return SideValue(made or source, fact.tensor or _ANY, frozenset(read(made or source)), source)

    def old(self, name: str, fact: Fact | None) -> SideValue:
        """The value that a name had before the site."""
        if fact is None:
            raise Declined(f"`{name}` may have no value before the `if`")
        if fact.kind == "unknown" and not fact.maybe_none and name in self.asked_of_torch:
            # The test would have raised, or takes whatever stands in for a tensor.
            self.doubts[assumes(f"`{name}` is assumed to be a tensor", only=ShowsOnly.NO_TENSOR)] = None
        else:
            self._check_tensor(fact, name, None)
        return SideValue(cst.Name(name), fact.tensor or _ANY, frozenset({name}))

    def unknown(self, source: cst.BaseExpression) -> SideValue:
        """An expression about which nothing is known, which is assumed to be a tensor."""
        return SideValue(source, _ANY, frozenset(read(source)), source)

    def knows(self, test: cst.CSTNode) -> None:
        """Records a test that was computed before the choice and so did not raise."""
        for node in (test, *_expressions(test)):
            self.ran.add(self.context.code(node))
            if (name := _asked_of_torch(self.context, node)) is not None:
                self.asked_of_torch.add(name)
            fact = self.context.fact(node) if self.context.tree.holds(node) else None
            if fact is not None and fact.tensor is not None and isinstance(fact.tensor.dtype, ResultOf):
                self.given.append(KnownDtype(fact.tensor.dtype))

    def _check_tensor(self, fact: Fact, text: str, source: cst.BaseExpression | None) -> None:
        if fact.kind == "none" or text == "None":
            raise Declined("one side is None")
        if text in ("True", "False"):
            raise Declined("one side is a Python bool")
        if fact.is_number or isinstance(source, cst.BaseNumber):
            raise Declined(f"`{text}` is a Python number, not a tensor")
        if not fact.is_tensor or fact.optional:
            raise Declined(f"`{text}` is not known to be a tensor")
        if not fact.certain:
            self.doubts[assumes(f"`{text}` is assumed to be a tensor", only=ShowsOnly.NO_TENSOR)] = None

    def choose(
        self,
        truth: Truth,
        test: cst.BaseExpression,
        yes: SideValue,
        no: SideValue,
        becomes: Fate = Fate.HANDED_ON,
        rebound: str | None = None,
    ) -> SideValue:
        """``torch.where(test, yes, no)``.

        ``becomes`` says how the result is used, ``rebound`` is the name that it is bound to.
        """
        if yes.is_number and no.is_number:
            raise Declined(f"`{self.context.code(yes.made)}` is a Python number, not a tensor")
        facts = _chosen(yes.facts, no.facts)
        if truth.opposite:
            yes, no = no, yes
        merged = self._one_call(truth, test, yes, no) if self.merges else None
        if merged is not None:
            return SideValue(merged, facts, yes.names | no.names, chosen_from=(yes, no))
        for value, other in ((yes, no), (no, yes)):
            self.both_run(value.source, other.source)
        self._check_alike(yes, no)
        self._check_devices(truth, yes, no)
        for value in (yes, no):
            self._check_copied(value, becomes, rebound)
        self._check_gradients(yes, no)
        site = self.context.statement()
        for value, other in ((yes, no), (no, yes)):
            # If both are linear in a name, its gradient is that of the chosen side plus zero.
            linear = value.source is None or why_gradient_differs(self.context, value.source) is None
            apart = names_with_gradient(self.context, other.sources, other.names, site) if linear else ()
            origin = why_origin_differs(self.context, value.names, apart)
            if origin is not None:
                self.doubts[origin] = None
        made = call(self.context.imported("torch.where"), test, yes.made, no.made)
        return SideValue(made, facts, yes.names | no.names, chosen_from=(yes, no))

    def _check_alike(self, yes: SideValue, no: SideValue) -> None:
        """Declines sides of different shapes, and records if shapes or dtypes are not known to be the same."""
        if are_different(yes.facts, no.facts):
            raise Declined("the sides have different shapes")
        if not are_equal(yes.facts, no.facts):
            self.doubts[assumes("sides of different shapes would be broadcast")] = None
        if yes.facts.layout != no.facts.layout and not (is_vector(yes.facts) or is_vector(no.facts)):
            self.doubts[_LAYOUT] = None
        read_before = [KnownDtype(value.facts.dtype) for value in (yes, no) if value.source is None]
        found = compare(self.context.torch_version, yes.facts.dtype, no.facts.dtype, [*self.given, *read_before])
        if found.same:
            if found.source is Source.ASSUMED:
                self.doubts[assumes("the dtypes of the sides are known only by convention")] = None
        elif found.raises:
            said = f"a side that is not chosen raises if {found.when or 'it does not support the dtype'}"
            self.doubts[differs(said, Effect.RAISES)] = None
        else:
            when = f", for example if {found.when}" if found.when else ""
            said = f"sides of different dtypes would give the wider dtype{when}"
            self.doubts[differs(said, Effect.DTYPES)] = None

    def _check_devices(self, truth: Truth, yes: SideValue, no: SideValue) -> None:
        """Records if the test may be on another device than a side: `if` reads it from any device."""
        if {value.facts.device for value in (yes, no) if not value.is_number} != {truth.device}:
            self.doubts[_DEVICES] = None

    def _check_copied(self, value: SideValue, becomes: Fate, rebound: str | None) -> None:
        """Records if a side is an existing tensor, which the choice copies."""
        context, facts = self.context, value.facts
        is_made_here = facts.is_new and not isinstance(value.made, cst.Name)
        if is_made_here or becomes is Fate.USED or value.chosen_from or value.is_number:
            return
        text = context.code(value.made)
        if self._loses_gradient(facts, becomes):
            said = f"`{text}` keeps its gradient, but a copy made under `no_grad` has none"
            self.doubts[differs(said, Effect.GRADIENTS)] = None
        site = context.statement()
        if becomes >= Fate.HANDED_ON and is_shared(context, facts, site, rebound):
            said = f"a copy of `{text}` is passed on, not `{text}` itself"
            self.doubts[differs(said, Effect.STORAGE, Effect.STRIDES, Effect.TYPES)] = None
        known = bool(facts.storage) and all(symbol.new for symbol in facts.storage)
        names = {*read(value.made), *(name.value for name in holders(context, facts))} - {rebound}
        if becomes is Fate.CHANGED and rebound is not None and is_shared(context, facts, site, rebound):
            names.add(rebound)
        if (change := change_behind(context, names if known else None, site)) is not None:
            said = f"the result is a copy of `{text}`, and `{change}` changes only one of them"
            self.doubts[differs(said, Effect.STORAGE, Effect.STATE, Effect.VALUES)] = None

    def _check_gradients(self, yes: SideValue, no: SideValue) -> None:
        """Records if one side may require a gradient and the other one may not."""
        calls = [one for value in (yes, no) for source in value.sources for one in findall(source, m.Call())]
        if any(asks_for_gradient(cst.ensure_type(one, cst.Call)) for one in calls):
            self.doubts[REQUIRED] = None
        if no_gradient_scope(self.context, self.context.node) is not None:
            return
        site = self.context.statement()
        first, second = (gradient_roots(self.context, one.sources, one.names, site) for one in (yes, no))
        if first != second:
            self.doubts[REQUIRED] = None

    def _loses_gradient(self, facts: TensorFacts, becomes: Fate) -> bool:
        """Whether a tensor may have a gradient that a copy made under ``no_grad`` does not have."""
        if is_switched_by_calls(self.context, self.context.node):
            return facts.requires_grad is not False
        scope = uncertain_gradient_scope(self.context, self.context.node)
        if scope is None or facts.requires_grad is False:
            return False
        if isinstance(scope, cst.FunctionDef) and becomes <= Fate.HELD:
            return False
        line, column, end_line, end_column = self.context.tree.span(scope)
        start, end = (line, column), (end_line, end_column)
        made_there = all(symbol.new and start < (*symbol.at, 0)[:2] < end for symbol in facts.storage)
        return not (facts.storage and made_there)

    def both_run(self, source: cst.BaseExpression | None, other: cst.BaseExpression | None) -> None:
        """Declines, or records the difference, if it matters that a side runs although it is not chosen."""
        if source is None:
            return
        context = self.context
        if (reason := why_not_pure(context, source) or why_may_raise(context, source, self.in_range)) is not None:
            raise Declined(f"both sides would run, and {reason}")
        if (costly := what_costs(context, source)) is not None:
            raise Declined(f"both sides would run, and `{costly}` is costly")
        self.runs_unchosen(source, other)

    def runs_unchosen(self, source: cst.BaseExpression, other: cst.BaseExpression | None = None) -> None:
        """Records if it matters that a pure expression is computed although nothing made of it is chosen.

        ``other`` is an expression that runs anyway.
        """
        context = self.context
        # Whether it supports its own dtype is checked when the dtypes of both sides are compared.
        facts = context.fact(source).tensor
        known = [KnownDtype(facts.dtype)] if facts is not None else []
        self.always_runs(source, known, _codes(context, other) if other is not None else set())
        if (steep := why_gradient_differs(context, source)) is not None:
            self.doubts[steep] = None
        elsewhere = context.code(other) if other is not None else ""
        for name in _attributes(context, source):
            if name not in elsewhere:
                said = f"if `{name}` is a parameter, its gradient is zero instead of None"
                self.doubts[differs(said, Effect.GRADIENTS)] = None
        self._check_saved(source)

    def _check_saved(self, source: cst.BaseExpression) -> None:
        """Records if autograd may save a value for a side, and the value is changed in place later."""
        context, site = self.context, self.context.statement()
        if not _may_save(source) or no_gradient_scope(context, context.node) is not None:
            return
        fact = context.fact(source)
        if (fact.certain and fact.dtype in ("bool", "int")) or (fact.tensor and fact.tensor.requires_grad is False):
            return
        used = [cst.ensure_type(one, cst.Name) for one in findall(source, m.Name())]
        names = {one.value for one in used if context.fact(one).kind in ("tensor", "unknown")}
        assigned = names.intersection(written(site))
        # What follows reads the choice by an assigned name, and only a change of the choice itself matters.
        change = change_behind(context, names - assigned, site) or change_behind(
            context, assigned, site, trusts_calls=True
        )
        if change is not None:
            self.doubts[backward_raises(change)] = None

    def always_runs(
        self, source: cst.BaseExpression, given: Sequence[KnownDtype] = (), ran: Collection[str] = ()
    ) -> None:
        """Records if code that now always runs may raise, or runs code that it does not show.

        ``given`` are known dtypes, ``ran`` is code that runs anyway.
        """
        context = self.context
        if (raising := may_raise(context, source, [*self.given, *given], {*self.ran, *ran})) is not None:
            said = f"`{raising}` may raise even if its side is not chosen"
            self.doubts[differs(said, Effect.RAISES)] = None
        if (attribute := may_run_code(context, source)) is not None:
            said = f"`{attribute}` may run code of the program, such as a property, and would always run"
            self.doubts[differs(said, Effect.STATE)] = None

    def _one_call(
        self, truth: Truth, test: cst.BaseExpression, yes: SideValue, no: SideValue
    ) -> cst.BaseExpression | None:
        """``f(torch.where(test, a, b))`` for ``f(a)`` and ``f(b)``, which still calls ``f`` once."""
        one, other = yes.source, no.source
        if not isinstance(one, cst.Call) or not isinstance(other, cst.Call):
            return None
        context = self.context
        if context.code(one.func) != context.code(other.func) or len(one.args) != len(other.args):
            return None
        if why_not_pure(context, one) is None and what_costs(context, one) is None:
            return None
        differing = [
            place
            for place, (left, right) in enumerate(zip(one.args, other.args, strict=True))
            if context.code(left.value) != context.code(right.value)
        ]
        keywords = [[arg.keyword and arg.keyword.value for arg in side.args] for side in (one, other)]
        if len(differing) != 1 or keywords[0] != keywords[1] or any(arg.star for arg in (*one.args, *other.args)):
            return None
        left, right = one.args[differing[0]].value, other.args[differing[0]].value
        try:
            inner = Chooser(context, self.given)
            given = inner.value(left), inner.value(right)
            made = inner.choose(replace(truth, opposite=False), test, *given).made
        except Declined:
            return None
        self.doubts.update(inner.doubts)
        arguments = [
            cst.Arg(made if place == differing[0] else copied(arg.value), arg.keyword, arg.equal)
            for place, arg in enumerate(cst.ensure_type(one.deep_clone(), cst.Call).args)
        ]
        return cst.Call(cst.ensure_type(one.deep_clone(), cst.Call).func, arguments)


def _may_save(source: cst.BaseExpression) -> bool:
    """Whether autograd may save a tensor for the backward pass of an expression; sums and differences need none."""
    found = findall(source, m.Call() | m.BinaryOperation())
    return not all(
        isinstance(one, cst.BinaryOperation) and isinstance(one.operator, cst.Add | cst.Subtract) for one in found
    )


def _attributes(context: RewriteContext, node: cst.CSTNode) -> list[str]:
    """The tensor attributes that an expression reads: ``self.weight``."""
    found = []
    if isinstance(node, cst.Attribute):
        fact = context.fact(node)
        if fact.kind == "tensor" and fact.dtype not in ("int", "bool") and isinstance(node.value, cst.Name):
            return [context.code(node)] if context.fact(node.value).kind in ("module", "instance") else []
    for child in code_children(node):
        found += _attributes(context, child)
    return found


def _codes(context: RewriteContext, node: cst.BaseExpression) -> set[str]:
    return {context.code(one) for one in (node, *_expressions(node))}


def _asked_of_torch(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """The name that a call gives to an elementwise function of torch, which does not just convert it to a tensor."""
    if not isinstance(node, cst.Call) or not node.args or not isinstance(node.args[0].value, cst.Name):
        return None
    dotted = context.dotted(node.func) or ""
    asked = operator(context.torch_version, dotted.removeprefix("torch.")) if dotted.startswith("torch.") else None
    plain = node.args[0].keyword is None and not node.args[0].star
    if asked is None or not plain or not asked.elementwise or asked.keeps_values is not False:
        return None
    return None if asked.takes_number(0, None) else node.args[0].value.value


def _expressions(node: cst.CSTNode) -> list[cst.BaseExpression]:
    below = code_children(node)
    found = [child for child in below if isinstance(child, cst.BaseExpression)]
    return [*found, *(one for child in below for one in _expressions(child))]


def _chosen(yes: TensorFacts, no: TensorFacts) -> TensorFacts:
    """What is known about the result of a choice."""
    dtype = ResultOf("where", (Input(yes.dtype, yes.shape), Input(no.dtype, no.shape)))
    return TensorFacts(
        yes.dtype if yes.dtype == no.dtype else dtype,
        yes.shape | no.shape,
        yes.rank if yes.rank == no.rank else _ANY.rank,
        _ANY.storage,
        yes.device if yes.device == no.device else _ANY.device,
        yes.layout if yes.layout == no.layout else _ANY.layout,
    )
