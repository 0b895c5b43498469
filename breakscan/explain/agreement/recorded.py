"""What a run recorded that a finding may predict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from breakscan.explain.explanation import Explanation, FrameStatus
from breakscan.model.findings import Kind, Site
from breakscan.rulebook.document import Rule


@dataclass(slots=True)
class Recorded:
    """A break, a function that is not compiled, or a recompile."""

    site: Site
    rule: Rule | None
    kind: Kind
    function: str | None
    whole: bool = False
    """Whether it is about a function rather than a line."""


def recorded(explanation: Explanation) -> Iterator[Recorded]:
    """Returns every break, uncompiled function and recompile of an explanation."""
    for site in explanation.breaks:
        yield Recorded(site.site, site.rule, Kind.GRAPH_BREAK, site.function)
    for frame in explanation.frames:
        if frame.break_site is None and frame.status is not FrameStatus.PASSED_OVER:
            yield Recorded(frame.site, frame.rule, Kind.GRAPH_BREAK, frame.function, True)
    for again in explanation.recompiles:
        yield Recorded(again.site, again.rule, Kind.RECOMPILE, again.function, True)
