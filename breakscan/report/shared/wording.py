"""Counts, lists and sentences, as every report writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from breakscan.model.findings import Place

INSIDE = {Place.LOOP: "a loop", Place.TRY: "a try", Place.WITH: "a with block"}


def counted(number: int, one: str, many: str | None = None) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def sentence(text: str) -> str:
    """The text, ending with one full stop."""
    return f"{text.strip().rstrip('. ')}."


def sentences(*parts: str | None) -> str:
    """The parts that are not empty, each ending with one full stop."""
    return " ".join(sentence(part) for part in parts if part and part.strip())


def listed(words: Sequence[str], noun: str, most: int = 3) -> str:
    """``a, b and c``; ``a, b and 4 more functions``."""
    words = list(dict.fromkeys(words))
    if len(words) > most:
        rest = len(words) - most + 1
        return f"{', '.join(words[: most - 1])} and {rest} more {noun}s"
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def grouped_reasons(reasons: Iterable[tuple[str, str]]) -> str:
    """``where, cond: it writes; keep-tensor: it is printed``: why rewrites decline, each reason once."""
    by_reason: dict[str, list[str]] = {}
    for rewrite, text in reasons:
        by_reason.setdefault(text, []).append(rewrite)
    return "; ".join(f"{', '.join(rewrites)}: {text}" for text, rewrites in by_reason.items())
