"""Joins what the code alone shows with what it shows if the values of a recorded run are taken for true."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from breakscan.check.pipeline.merge import CONFIDENCE_ORDER
from breakscan.check.pipeline.results import FileResult
from breakscan.model.findings import Condition, ConditionKind, Confidence, Finding
from breakscan.model.observations import FunctionSeen, Observations

_UNSEEN = Condition(ConditionKind.UNSEEN, "")


def with_observed(plain: FileResult, observed: FileResult, observations: Observations) -> FileResult:
    """The result for a file: what the code shows, what only the run shows, which says so, and what the run contradicts,
    which is less sure than the code makes it."""
    seen = _Seen({**plain.depends, **observed.depends}, observations)
    return replace(
        plain,
        findings=list(_joined(plain.findings, observed.findings, seen)),
        suppressed=list(_joined(plain.suppressed, observed.suppressed, seen)),
        depends={**plain.depends, **observed.depends},
        reaches=list(dict.fromkeys([*plain.reaches, *observed.reaches])),
    )


class _Seen:
    def __init__(self, digests: dict[str, str], observations: Observations) -> None:
        self._digests = digests
        self._files = observations.files
        self._cwd = os.getcwd()

    def function(self, path: str, name: str | None) -> FunctionSeen | None:
        digest = self._digests.get(os.path.normpath(os.path.join(self._cwd, path)), "")
        return self._files.get(digest, {}).get(name or "")

    def calls(self, finding: Finding) -> int:
        """In how many calls the values of a finding's function were seen, or those of the one that calls it."""
        places = [(finding.site.path, finding.function)]
        if finding.region is not None:
            places.append((finding.region.path, finding.region.entry))
        return next((seen.calls for place in places if (seen := self.function(*place))), 1)


def _joined(plain: list[Finding], observed: list[Finding], seen: _Seen) -> Iterator[Finding]:
    ran = {(finding.rule, finding.site): finding for finding in observed}
    for finding in plain:
        same = ran.pop((finding.rule, finding.site), None)
        if same is not None:
            surer = CONFIDENCE_ORDER.index(same.confidence) < CONFIDENCE_ORDER.index(finding.confidence)
            yield replace(same, region=finding.region, observed=seen.calls(same)) if surer else finding
        elif seen.function(finding.site.path, finding.function) is None:
            yield finding
        else:
            confidence = max(finding.confidence, Confidence.CONDITIONAL, key=CONFIDENCE_ORDER.index)
            yield replace(finding, confidence=confidence, conditions=(*finding.conditions, _UNSEEN))
    for finding in ran.values():
        yield replace(finding, observed=seen.calls(finding))
