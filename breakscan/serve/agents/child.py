"""The command line in the process of a tool, which ends with the server."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
from pathlib import Path

_SET_PARENT_DEATH_SIGNAL = 1
"""``PR_SET_PDEATHSIG`` of ``prctl``."""
_HERE = str(Path(__file__).resolve().parents[3])
"""The folder that breakscan lies in."""
_START = (
    # The working directory is not searched: a folder named breakscan there would be run.
    "import sys; del sys.path[0]; {path} in sys.path or sys.path.append({path}); "
    "from breakscan.serve.agents.child import end_with_server; end_with_server(); "
    "from breakscan.__main__ import main; sys.exit(main())"
)


def command_line(arguments: list[str]) -> list[str]:
    """Return the command that runs breakscan with these arguments, whatever its working directory holds."""
    return [sys.executable, "-c", _START.format(path=repr(_HERE)), *arguments]


def end_with_server() -> None:
    """Ask the system to end this process if the server is killed."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
