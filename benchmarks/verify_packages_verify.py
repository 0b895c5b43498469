"""``breakscan verify`` of certain rewrites, timed for 5 seconds at most instead of 20, or not at all.

    python verify_packages_verify.py REWRITES verify OPTIONS ... PROGRAM ...
    python verify_packages_verify.py --untimed REWRITES verify OPTIONS ... PROGRAM ...

REWRITES is JSON: a list of [path, line, column, rule, rewrite] of findings, paths as breakscan shows them.  Untimed,
what is not rejected has the ratio 1 [1, 1].
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
from dataclasses import replace
from typing import Any

from breakscan.__main__ import main
from breakscan.fix.planner import WantedRewrites
from breakscan.prove.verify.proof import ProofVerdict
from breakscan.prove.verify.verifier import Verifier
from breakscan.prove.worker import timing as measure

LONGEST = 5.0
"""Whether the rewrites are equal is what counts here."""
UNTIMED = measure.Ratio(1.0, 1.0, 1.0)


def not_timed(_: Verifier, trial: Any, __: object) -> None:
    """Replaces the timing of an equal change."""
    trial.proof = replace(trial.proof, verdict=ProofVerdict.NO_FASTER, ratio=UNTIMED)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[0] == "--untimed":
        Verifier._time = not_timed  # type: ignore[method-assign,assignment]
        arguments.pop(0)
    places = {(path, line, column, rule): rewrite for path, line, column, rule, rewrite in json.loads(arguments[0])}
    command = importlib.import_module("breakscan.cli.verify")
    command.WantedRewrites = functools.partial(WantedRewrites, places=places)  # type: ignore[attr-defined]
    measure.interleave = functools.partial(measure.interleave, longest=LONGEST)
    sys.exit(main(arguments[1:]))
