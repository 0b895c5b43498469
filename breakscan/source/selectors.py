"""Selectors: the words by which configurations and comments name rules."""

from __future__ import annotations


def selects(selector: str, rule: str, name: str) -> bool:
    """Whether a selector names a rule: ``ALL``, an id, the start of one (``BRK1`` is a family), or a name."""
    upper = selector.upper()
    return upper == "ALL" or (upper.startswith("BRK") and rule.startswith(upper)) or selector.lower() == name


def exactness(selector: str) -> int:
    """How narrow a selector is: of two that disagree on a rule, the narrower one decides."""
    upper = selector.upper()
    if upper == "ALL":
        return 0
    return min(len(upper), len("BRK101")) if upper.startswith("BRK") else len("BRK101")
