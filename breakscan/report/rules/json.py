"""Rules as JSON, with their verdicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TextIO

from breakscan.report.rules.report import RuleListReport, RuleReport
from breakscan.rulebook.document import FAMILIES, Rule
from breakscan.rulebook.ledger import Ledger


def write_rule_json(report: RuleReport, stream: TextIO) -> None:
    """Writes the rule as one JSON object, ASCII only, and a line end."""
    stream.write(json.dumps(rule_object(report.rule, report.ledgers), indent=2) + "\n")


def write_rules_json(report: RuleListReport, stream: TextIO) -> None:
    """Writes the rules as one JSON list, ASCII only, and a line end."""
    stream.write(json.dumps([rule_object(rule, [report.ledger]) for rule in report.rules], indent=2) + "\n")


def rule_object(rule: Rule, ledgers: Sequence[Ledger]) -> dict[str, Any]:
    """The rule as plain dictionaries and lists."""
    return {
        "rule": rule.id,
        "name": rule.name,
        "kind": rule.kind.value,
        "severity": rule.severity.value,
        "family": FAMILIES[rule.family],
        "summary": rule.summary,
        "why": rule.why,
        "instead": rule.instead,
        "gb": list(rule.gb),
        "rewrites": list(rule.rewrites),
        "verdicts": [
            {
                "torch": ledger.torch,
                "example": label,
                "mode": mode.value,
                "place": place.value,
                "verdict": ruling.verdict.value,
                "gb": list(ruling.gb),
            }
            for ledger in ledgers
            for label, example in ledger.examples.get(rule.id, {}).items()
            for (mode, place), ruling in example.rulings.items()
        ],
    }
