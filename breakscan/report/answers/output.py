"""What a process that runs a program says while it runs and at its end."""

from __future__ import annotations

from breakscan.report.shared.printable import visible

MOST_LINES = 15
SAID = "breakscan: "
"""What lines of breakscan's own begin with."""


def last_progress(output: str) -> str:
    """The last message of ``verify``."""
    said = [line for line in output.splitlines() if line.startswith(SAID)]
    return visible(said[-1].removeprefix(SAID)) if said else ""


def last_lines(output: str) -> str:
    """The last lines that a program has written, without those of breakscan."""
    lines = [visible(line) for line in output.splitlines() if not line.startswith(SAID)]
    return "\n".join(lines[-MOST_LINES:])
