"""The effect of a change on the graph breaks of the program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from breakscan.fix.source_map import SourceMap
from breakscan.model.findings import Site
from breakscan.prove.verify.candidates import Candidate
from breakscan.prove.verify.original import CompiledProgram
from breakscan.prove.worker.observation import Observation, ObservationKind


@dataclass(frozen=True)
class BreakChanges:
    """The breaks with and without a change.

    ``maps`` lead from the lines of changed files, by the paths that sites show, to the lines of the unchanged files.
    """

    candidate: Candidate
    before: CompiledProgram
    after: CompiledProgram
    maps: Mapping[str, SourceMap]

    @property
    def revealed(self) -> tuple[str, ...]:
        """Returns the new break sites, as places in the unchanged files. Often an earlier break has hidden them."""
        was = [one.site for one in self.before.explanation.breaks]
        return tuple(
            f"{one.site.path}:{self._line_before(one.site)}"
            for one in self.after.explanation.breaks
            if not any(self._is_in(one.site, site) for site in was)
        )

    def objections(self) -> Iterator[Observation]:
        """Returns the reasons to reject the change because of its breaks."""
        before, after = self.before.metrics, self.after.metrics
        for target in self.candidate.targets:
            if any(self._is_in(one.site, target) for one in self.after.explanation.breaks):
                yield Observation(ObservationKind.BREAK_STAYS, f"{target.path}:{target.line}")
        if self.candidate.softened and (after.eager_frames, after.breaks) >= (before.eager_frames, before.breaks):
            numbers = (after.breaks, before.breaks, after.eager_frames, before.eager_frames)
            yield Observation(ObservationKind.SOFTENS_NOTHING, numbers=numbers)
        # A function that ran eager and is compiled now shows breaks that were hidden, so its time decides.
        if after.breaks > before.breaks and after.eager_frames >= before.eager_frames:
            yield Observation(ObservationKind.MORE_BREAKS, names=self.revealed, numbers=(after.breaks, before.breaks))
        if after.eager_frames > before.eager_frames:
            yield Observation(ObservationKind.MORE_EAGER, numbers=(after.eager_frames, before.eager_frames))
        if after.recompiles > before.recompiles:
            cause = next((one.subject for one in self.after.explanation.recompiles), "")
            yield Observation(ObservationKind.MORE_RECOMPILES, cause, numbers=(after.recompiles - before.recompiles,))

    def _is_in(self, site: Site, target: Site) -> bool:
        return site.path == target.path and target.line <= self._line_before(site) <= target.end_line

    def _line_before(self, site: Site) -> int:
        return self.maps[site.path].before(site.line) if site.path in self.maps else site.line
