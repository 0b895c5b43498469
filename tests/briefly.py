"""``breakscan`` as a process, which times for at most two seconds where a test does not check times."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from breakscan.__main__ import main
from breakscan.prove import faster as measure

BRIEFLY = (sys.executable, __file__)
LONGEST = 2.0
_interleave = measure.interleave


def interleave(
    blocks: Mapping[str, measure.Block],
    seconds: Mapping[str, float],
    longest: float = LONGEST,
    decided: Callable[[measure.Rounds], bool] = lambda _: False,
) -> measure.Rounds:
    return _interleave(blocks, seconds, min(longest, LONGEST), decided)


def ran(folder: Path, *words: str, status: int = 0, brief: bool = False) -> subprocess.CompletedProcess[str]:
    """The command in a folder, which ends with this status."""
    command = [*(BRIEFLY if brief else (sys.executable, "-m", "breakscan")), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=580)
    assert done.returncode == status, done.stdout + done.stderr
    return done


if __name__ == "__main__":
    measure.interleave = interleave
    sys.exit(main(sys.argv[1:]))
