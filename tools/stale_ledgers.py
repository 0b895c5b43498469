"""Lists the examples that a verdict ledger lacks: ``python -m tools.stale_ledgers [VERSION]...``, by default all.

Prints ``2.15 BRK101`` for each rule with such examples, and exits with 1 if there are any.  The ledger of a version is
filled by ``nox -s "measure(version='2.15')"``, which installs that torch.
"""

from __future__ import annotations

import sys

from breakscan.rulebook.ledger import Ledger, digest, ledger_folder, load_ledger, measured_versions
from breakscan.rulebook.library import load_library


def stale_rules(version: str) -> list[str]:
    """The ids of the rules with an example that the ledger of a version lacks, or knows with another text."""
    ledger = load_ledger(version) if version in measured_versions() else Ledger(version, "")
    return [
        rule.id
        for rule in load_library()
        for known in [ledger.examples.get(rule.id, {})]
        if any(one.label not in known or known[one.label].digest != digest(one) for one in rule.examples)
    ]


def main() -> int:
    """Prints the stale rules of each version."""
    found = [(version, rule) for version in sys.argv[1:] or measured_versions() for rule in stale_rules(version)]
    for version, rule in found:
        print(version, rule)
    if found:
        print(f"{len(found)} rules are not up to date in {ledger_folder()}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
