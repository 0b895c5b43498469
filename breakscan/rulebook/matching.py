"""Finds the rule for an event or a recorded break."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache

from breakscan.model.findings import ChangeKind, Condition, Holder
from breakscan.rulebook.document import OWN, ArgumentPattern, EventPattern, Rule
from breakscan.rulebook.events import OPERANDS, Argument, Event, EventKind

PLAIN = "plain"
"""The form of a call that has none."""


class RuleIndex:
    """The event patterns of some rules, indexed by their first condition."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._by_callee: dict[tuple[EventKind, str], list[tuple[Rule, EventPattern]]] = {}
        self._open: dict[EventKind, list[tuple[Rule, EventPattern]]] = {}
        self.read_attributes: set[str] = set()
        """The attributes whose reading a rule could match."""
        self.of_projects = False
        """True if a rule of a project is about calls: it may name functions of the project."""
        self.asking_for_truth: set[str] = set()
        """The callees of which a rule asks whether an argument is True."""
        self.wants = cache(self._wants)
        self.reports = cache(self._reports)
        self._candidates = cache(self._found_candidates)
        for rule in rules:
            for pattern in rule.match:
                self.of_projects |= rule.family == OWN and pattern.event is EventKind.CALL
                if pattern.event is EventKind.READ:
                    self.read_attributes |= set(pattern.attribute)
                exact = [callee for callee in pattern.callee if "*" not in callee]
                if any("true" in wanted.states for wanted in pattern.arguments):
                    self.asking_for_truth |= set(exact)
                for callee in exact:
                    self._by_callee.setdefault((pattern.event, callee), []).append((rule, pattern))
                if not pattern.callee or len(exact) < len(pattern.callee):
                    self._open.setdefault(pattern.event, []).append((rule, pattern))

    def _wants(self, kind: EventKind, callee: str | None, form: str = "") -> bool:
        """True if an event of that kind, callee and form could match a rule."""
        if callee is not None and (kind, callee) in self._by_callee:
            return True
        patterns = [one for _, one in self._open.get(kind, ()) if not one.form or form in one.form]
        return any(not one.callee or _callee_matches(callee, one.callee) for one in patterns)

    def names(self, kind: EventKind, callee: str) -> bool:
        """True if a rule names the callee itself."""
        return (kind, callee) in self._by_callee

    def _reports(self, kind: EventKind, callee: str | None) -> bool:
        """True if an event of that kind and callee could match a rule for code that reports something rare."""
        return any(rule.reporting for rule, _ in self._candidates(kind, callee))

    def _found_candidates(self, kind: EventKind, callee: str | None) -> list[tuple[Rule, EventPattern]]:
        """The patterns for events of that kind and callee."""
        listed = [*self._by_callee.get((kind, callee or ""), ()), *self._open.get(kind, ())]
        return [one for one in listed if not one[1].callee or _callee_matches(callee, one[1].callee)]

    def matching(self, event: Event) -> list[tuple[Rule, EventPattern]]:
        """The rules that an event matches, each with the first of its patterns that does."""
        found: dict[str, tuple[Rule, EventPattern]] = {}
        for rule, pattern in self._candidates(event.kind, event.callee):
            if rule.id not in found and _holds(pattern, event):
                found[rule.id] = rule, pattern
        return list(found.values())


def _holds(pattern: EventPattern, event: Event) -> bool:
    """True if every condition of a pattern holds for an event of its kind and callee."""
    return (
        (event.in_region or pattern.anywhere)
        and (not pattern.form or (event.form or PLAIN) in pattern.form)
        and (not pattern.place or event.place in pattern.place)
        and (not pattern.operand or not event.operands.isdisjoint(pattern.operand))
        and (not pattern.attribute or event.attribute in pattern.attribute)
        and all(_argument_matches(event.arguments, wanted) for wanted in pattern.arguments)
    )


def _callee_matches(callee: str | None, patterns: tuple[str, ...]) -> bool:
    return callee is not None and any(callee == p or ("*" in p and fnmatchcase(callee, p)) for p in patterns)


def _argument_matches(arguments: tuple[Argument, ...], wanted: ArgumentPattern) -> bool:
    given = _given(arguments, wanted)
    if given is None:
        return "absent" in wanted.states
    if "true" in wanted.states and given.true_if is not None:
        return True
    return "present" in wanted.states or not given.operands.isdisjoint(wanted.states)


def _given(arguments: tuple[Argument, ...], wanted: ArgumentPattern) -> Argument | None:
    for one in arguments:
        is_there = wanted.index is not None and one.index == wanted.index
        if is_there or (wanted.name is not None and one.name == wanted.name):
            return one
    return None


def argument_conditions(event: Event, pattern: EventPattern) -> list[Condition]:
    """The conditions under which the arguments of an event are as a pattern that it matches wants them."""
    found = []
    for wanted in pattern.arguments:
        given = _given(event.arguments, wanted)
        if given is not None:
            found.append(given.true_if if "true" in wanted.states else None)
            found.append(given.tensor_if if _TENSORS & set(wanted.states) else None)
    return [condition for condition in found if condition is not None]


_TENSORS = {state for state in OPERANDS if state.startswith("tensor")} | {"container:tensor", "instance"}


def explaining_rule(
    rules: Iterable[Rule],
    *,
    gb: str | None,
    text: str,
    form: str | None = None,
    change: ChangeKind | None = None,
    holder: Holder = Holder.NONE,
    times: int = 1,
) -> Rule | None:
    """The rule that explains a recorded break or recompile: of those that match, the most specific one.

    ``text`` is the break's reason with its explanation and context, or the guard that failed, ``form`` the form of the
    branch at its site if that is known.  ``change`` is what changed before a recompile, in what ``holder``, and
    ``times`` how often the function was compiled again over it."""
    best: tuple[int, Rule] | None = None
    for rule in rules:
        for pattern in rule.recorded:
            # Cheap comparisons come before searches: a run has thousands of breaks.
            named = ((pattern.gb, gb), (pattern.form, form), (pattern.change, change), (pattern.holder, holder))
            if pattern.times > times or any(words and word not in words for words, word in named):
                continue
            if pattern.text and not any(_compiled(part).search(text) for part in pattern.text):
                continue
            # A text is more specific than a word.
            weight = sum(bool(words) for words, _ in named) + 2 * bool(pattern.text) + (pattern.times > 1)
            if weight and (best is None or weight > best[0]):
                best = weight, rule
    return best[1] if best else None


_compiled = cache(re.compile)
