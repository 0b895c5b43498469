"""Whether a report of ``explain`` points to ``breakscan fix``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from breakscan.cli.failures import show_failure
from breakscan.explain.explanation import Explanation
from breakscan.model.findings import Origin
from breakscan.report.explain.summary import dearest_first
from breakscan.rulebook.config import NearestSettings
from breakscan.source.source_files import SourceFiles

if TYPE_CHECKING:
    from breakscan.fix.offer import Offer


def fix_offer(explanation: Explanation, files: SourceFiles) -> Offer | None:
    """The best of the edits that ``fix`` has for the breaks in the user's code; None if it has none.  A failure is
    reported and has no other effect."""
    breaks = [one for one in explanation.breaks if one.origin is Origin.USER and one.rule and one.rule.rewrites]
    places = [(one.site.path, one.site.line, one.rule.id) for one in sorted(breaks, key=dearest_first) if one.rule]
    compiled_from = [target.caller for target in explanation.targets if target.caller]
    callers = [*compiled_from, *(caller for one in breaks for caller in one.stack)]
    paths = dict.fromkeys([path for path, *_ in places] + [one.path for one in callers if one.origin is Origin.USER])
    sources = [Path(os.path.abspath(path)) for path in paths if path.endswith(".py") and files.lines(path)]
    if not places or not sources:
        return None
    from breakscan.fix.offers import best_offer

    try:
        return best_offer(sources, NearestSettings(), places)
    except Exception as error:
        show_failure(error)
        return None
