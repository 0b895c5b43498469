"""The order of a report of ``explain``: failures first, then what cost the run most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from breakscan.explain.explanation import Explanation
from breakscan.model.findings import Origin, Verdict
from breakscan.report.explain.entries import (
    EntryKind,
    ReportEntry,
    break_entries,
    cause_entries,
    eager_call_entries,
    frame_entries,
)
from breakscan.report.explain.export_entries import export_entries


class Topic(Enum):
    """What a section tells of."""

    FAILURES = "Failed to compile"
    EXPORTS = "Exports"
    BREAKS = "Graph breaks in your code"
    LIBRARY_BREAKS = "Graph breaks in libraries"
    TORCH_BREAKS = "Graph breaks inside torch"
    FRAMES = "Not compiled"
    EAGER_CALLS = "Calls that ran eager"
    RECOMPILES = "Recompiles"


BREAK_TOPICS = {
    Origin.USER: Topic.BREAKS,
    Origin.LIBRARY: Topic.LIBRARY_BREAKS,
    Origin.FRAMEWORK: Topic.TORCH_BREAKS,
}


_FIRST = {Topic.FAILURES: 0, Topic.EXPORTS: 1}


@dataclass(frozen=True, slots=True)
class Section:
    """Entries of one topic, in order.  ``seconds`` is what they cost the run, of calls or of compiling."""

    topic: Topic
    entries: Sequence[ReportEntry]

    @property
    def heading(self) -> str:
        return self.topic.value

    @property
    def seconds(self) -> float:
        return sum(entry.seconds for entry in self.entries)


def report_sections(explanation: Explanation) -> list[Section]:
    """The sections that have entries: failures and exports, then what cost most; what cost nothing that is known, in
    the order of :class:`Topic`."""
    frames, breaks = frame_entries(explanation), break_entries(explanation)
    found = [
        Section(Topic.FAILURES, [entry for entry in (*breaks, *frames) if is_failure(entry)]),
        Section(Topic.EXPORTS, export_entries(explanation)),
        *(
            Section(topic, [entry for entry in breaks if entry.origin is origin and not is_failure(entry)])
            for origin, topic in BREAK_TOPICS.items()
        ),
        Section(Topic.FRAMES, [entry for entry in frames if not is_failure(entry)]),
        Section(Topic.EAGER_CALLS, eager_call_entries(explanation)),
        Section(Topic.RECOMPILES, cause_entries(explanation)),
    ]
    told = [section for section in found if section.entries]
    return sorted(told, key=lambda section: (_FIRST.get(section.topic, len(_FIRST)), -section.seconds))


def is_failure(entry: ReportEntry) -> bool:
    """Whether torch.compile raises there."""
    return entry.kind is EntryKind.FAILURE or entry.verdict is Verdict.RAISES
