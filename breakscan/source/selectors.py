"""Selectors: the words with which configurations and comments select rules."""

from __future__ import annotations


def selects(selector: str, rule: str, name: str) -> bool:
    """Whether a selector selects a rule: ``ALL``, an id, the start of one (``BRK1`` is a family), or a name."""
    upper = selector.upper()
    return upper == "ALL" or (upper.startswith("BRK") and rule.startswith(upper)) or selector.lower() == name


def exactness(selector: str) -> int:
    """How specific a selector is: if two disagree on a rule, the more specific one wins."""
    upper = selector.upper()
    if upper == "ALL":
        return 0
    return min(len(upper), len("BRK101")) if upper.startswith("BRK") else len("BRK101")
