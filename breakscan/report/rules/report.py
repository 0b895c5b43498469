"""What the reports about rules are written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakscan.rulebook.document import Rule
from breakscan.rulebook.ledger import Ledger


@dataclass(frozen=True, slots=True)
class RuleReport:
    """A rule and the verdicts of torch versions, the newest first."""

    rule: Rule
    ledgers: Sequence[Ledger]


@dataclass(frozen=True, slots=True)
class RuleListReport:
    """Rules with the verdicts of the targeted torch version.  ``compiled`` are those left out of ``rules`` because
    that version compiles what they find."""

    rules: Sequence[Rule]
    ledger: Ledger
    torch: str
    compiled: Sequence[Rule] = ()
