"""What breaks, functions that run eager and recompiles cost a run, kind by kind."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from breakscan.explain.explanation import Explanation


class CostKind(Enum):
    """What costs a run something.  Recompiles cost time of compiling, the others time of the calls."""

    BREAKS = "breaks"
    EAGER_FUNCTIONS = "eager-functions"
    RECOMPILES = "recompiles"


def run_costs(explanation: Explanation) -> Mapping[CostKind, float]:
    """Seconds over the whole run.  A function that runs eager because of a break is part of what that break costs."""
    return {
        CostKind.BREAKS: sum(site.price.in_all for site in explanation.breaks if site.price),
        CostKind.EAGER_FUNCTIONS: sum(
            frame.price.in_all for frame in explanation.frames if frame.price and frame.break_site is None
        ),
        CostKind.RECOMPILES: sum(recompile.seconds for recompile in explanation.recompiles),
    }
