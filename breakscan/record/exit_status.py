"""What ended a process, in words."""

from __future__ import annotations

import signal


def signal_name(number: int) -> str:
    """``SIGKILL``; ``signal 77`` where the system has no name for it."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
