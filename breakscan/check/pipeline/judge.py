"""Turns events into findings: which rule, and what the targeted torch does at such a place."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.check.pipeline.results import CONFIDENCE_ORDER
from breakscan.model.findings import Confidence, Finding, Kind, Mode, Place, Region, Severity, Site, Verdict
from breakscan.rulebook.document import EventPattern, Rule
from breakscan.rulebook.events import Event
from breakscan.rulebook.ledger import Ledger, Ruling
from breakscan.rulebook.matching import RuleIndex, argument_conditions

_JUDGED = (Kind.GRAPH_BREAK, Kind.EXPORT, Kind.RECOMPILE, Kind.WRONG_RESULT)
"""What a version of torch does or does not do; misuse is misuse in all of them."""
_OF_EXPORTS = frozenset({Kind.GRAPH_BREAK, Kind.EXPORT})
"""An exported program is not compiled again, and what is wrong with ``torch.compile`` need not concern it."""
_OF_TENSORS = ("tensor", "shape:by-data")
"""Words for values that are as sure as what is known of a tensor."""
_ENDS_COMPILATION = (Verdict.EAGER, Verdict.RAISES, Verdict.WRONG)


@dataclass(frozen=True, slots=True)
class Judge:
    """The rules of the kinds for the mode, the ledger for the targeted version, the mode, and that version."""

    rules: RuleIndex
    ledger: Ledger
    mode: Mode
    torch: str

    def findings(
        self, event: Event, path: str, function: str | None, region: Region | None, flags: frozenset[str]
    ) -> list[Finding]:
        """The findings that an event makes: none where the targeted torch compiles it.

        ``flags`` are the settings of ``torch._dynamo.config`` that the program switches on.
        """
        found = []
        for rule, pattern in self.rules.matching(event):
            if not self.mode.exports and not flags.isdisjoint(rule.flags):
                continue
            ruling, is_settled = self._ruling(rule, event)
            verdict = ruling.verdict if ruling else None
            if rule.kind in _JUDGED and verdict is Verdict.COMPILES:
                continue
            under = (event.test,) if event.test else event.conditions
            conditions = tuple(dict.fromkeys([*under, *argument_conditions(event, pattern)]))
            confidence = _confidence(event, pattern, bool(conditions))
            if not is_settled:
                confidence = Confidence.POSSIBLE
            is_placed = rule.kind is Kind.GRAPH_BREAK and not self.mode.exports
            found.append(
                Finding(
                    rule=rule.id,
                    name=rule.name,
                    kind=rule.kind,
                    severity=_severity(rule, verdict),
                    confidence=confidence,
                    message=rule.message.format(callee=event.callee, attribute=event.attribute, text=event.text),
                    site=Site(path, event.line, event.column, event.end_line, event.end_column),
                    function=function,
                    region=region,
                    gb=ruling.gb if ruling else (),
                    verdict=verdict,
                    place=event.place if is_placed else Place.PLAIN,
                    via=event.via if is_placed else None,
                    mode=self.mode,
                    torch=self.torch,
                    conditions=conditions if confidence is Confidence.CONDITIONAL else (),
                )
            )
        return found

    def _ruling(self, rule: Rule, event: Event) -> tuple[Ruling | None, bool]:
        """What the ledger says of an event, and whether all examples of such events agree on it.

        The first example decides, but of exports one that fails: whether code like it can be exported depends more on
        the code around it than whether it compiles.
        """
        labels = rule.examples_of(event.callee)
        rulings = self.ledger.rulings(rule.id, self.mode, event.place, event.form, labels)
        if not self.mode.exports:
            return (rulings[0] if rulings else None), True
        failing = [ruling for ruling in rulings if ruling.verdict is not Verdict.COMPILES]
        return next(iter(failing or rulings), None), len(failing) in (0, len(rulings))


def kinds_for(mode: Mode) -> frozenset[Kind]:
    """The kinds of rules that are about code which is compiled so."""
    return _OF_EXPORTS if mode.exports else frozenset(Kind) - {Kind.EXPORT}


def _severity(rule: Rule, verdict: Verdict | None) -> Severity:
    if rule.kind is Kind.GRAPH_BREAK and verdict in _ENDS_COMPILATION:
        return Severity.ERROR
    return rule.severity


def _confidence(event: Event, pattern: EventPattern, is_conditional: bool) -> Confidence:
    confidence = event.confidence
    if pattern.operand or any(state.startswith(_OF_TENSORS) for wanted in pattern.arguments for state in wanted.states):
        confidence = max(confidence, event.operand_confidence, key=CONFIDENCE_ORDER.index)
    if is_conditional and confidence is not Confidence.POSSIBLE:
        return Confidence.CONDITIONAL
    return confidence
