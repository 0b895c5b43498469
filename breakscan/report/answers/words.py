"""What the answers of several tools say in the same words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakscan.report.answers.answer import NextStep, at


def error_words(error: Mapping[str, Any]) -> str:
    """``model.py:3:1: invalid syntax``."""
    return f"{at(error)}: {error['message']}"


def more_step(tool: str, asked: Mapping[str, Any], offset: int, left: int) -> NextStep | None:
    """How to ask for what is left behind the entries that are shown; None if nothing is."""
    return NextStep(tool, {**asked, "offset": offset}, f"{left} more") if left else None
