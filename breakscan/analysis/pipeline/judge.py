"""Turns events into findings: which rule, and what the targeted torch does at such a place."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.analysis.pipeline.merge import CONFIDENCE_ORDER
from breakscan.findings import Confidence, Finding, Kind, Mode, Place, Region, Severity, Site, Verdict
from breakscan.rulebook.document import EventPattern, Rule
from breakscan.rulebook.events import Event
from breakscan.rulebook.ledger import Ledger
from breakscan.rulebook.matching import RuleIndex, argument_conditions

_JUDGED = (Kind.GRAPH_BREAK, Kind.RECOMPILE, Kind.WRONG_RESULT)
"""What a version of torch does or does not do; misuse is misuse in all of them."""


@dataclass(frozen=True, slots=True)
class Judge:
    """The selected rules, the ledger of the targeted version, and the mode."""

    rules: RuleIndex
    ledger: Ledger
    mode: Mode

    def findings(
        self, event: Event, path: str, function: str | None, region: Region | None, flags: frozenset[str]
    ) -> list[Finding]:
        """The findings that an event makes: none where the targeted torch compiles it.

        ``flags`` are the settings of ``torch._dynamo.config`` that the program switches on.
        """
        found = []
        for rule, pattern in self.rules.matching(event):
            if not flags.isdisjoint(rule.flags):
                continue
            labels = rule.examples_of(event.callee)
            ruling = self.ledger.ruling(rule.id, self.mode, event.place, event.form, labels)
            verdict = ruling.verdict if ruling else None
            if rule.kind in _JUDGED and verdict is Verdict.COMPILES:
                continue
            under = (event.test,) if event.test else event.conditions
            conditions = tuple(dict.fromkeys([*under, *argument_conditions(event, pattern)]))
            confidence = _confidence(event, pattern, bool(conditions))
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
                    place=event.place if rule.kind is Kind.GRAPH_BREAK else Place.PLAIN,
                    via=event.via if rule.kind is Kind.GRAPH_BREAK else None,
                    conditions=conditions if confidence is Confidence.CONDITIONAL else (),
                )
            )
        return found


def _severity(rule: Rule, verdict: Verdict | None) -> Severity:
    if rule.kind is Kind.GRAPH_BREAK and verdict in (Verdict.EAGER, Verdict.RAISES):
        return Severity.ERROR
    return rule.severity


def _confidence(event: Event, pattern: EventPattern, is_conditional: bool) -> Confidence:
    confidence = event.confidence
    if pattern.operand or any(state.startswith("tensor") for wanted in pattern.arguments for state in wanted.states):
        confidence = max(confidence, event.operand_confidence, key=CONFIDENCE_ORDER.index)
    if is_conditional and confidence is not Confidence.POSSIBLE:
        return Confidence.CONDITIONAL
    return confidence
