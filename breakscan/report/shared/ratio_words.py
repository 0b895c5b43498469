"""How many times as fast something is, in words."""

from __future__ import annotations

from breakscan.prove.worker.timing import Ratio


def number(value: float) -> str:
    """``4.71``; to the tenth from ten on."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def interval(ratio: Ratio) -> str:
    """``[4.71, 5.12]``."""
    return f"[{number(ratio.low)}, {number(ratio.high)}]"


def ratio_words(ratio: Ratio) -> str:
    """``4.90 [4.71, 5.12]``."""
    return f"{number(ratio.median)} {interval(ratio)}"
