"""Rules as JSON, with their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from breakscan.rulebook.document import FAMILIES, Rule
from breakscan.rulebook.ledger import Ledger


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
