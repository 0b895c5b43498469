"""CUDA graphs, and the memory of devices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from breakscan.explanation.context import ExplainContext
from breakscan.model.findings import Origin, Site
from breakscan.model.words import bytes_in_words, counted, place, seconds_in_words
from breakscan.recording.parsers.frames import frames_of
from breakscan.recording.records import (
    Code,
    CompileStarted,
    CudaGraphRecorded,
    CudaGraphSkipped,
    Record,
    RecordingCause,
    StackFrame,
)


@dataclass(frozen=True, slots=True)
class CudaGraphSkip:
    """A reason for which graphs did not run as CUDA graphs, with the line that torch blames, and a count."""

    reason: str
    site: Site | None
    compile_ids: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class MovedValue:
    """An input of a graph that lies elsewhere than before: AOTAutograd's name for it, and the line that uses it."""

    name: str
    line: Site | None


@dataclass(frozen=True, slots=True)
class CudaGraphRecording:
    """The recordings of the graphs of a function as CUDA graphs for one cause: their number and seconds, and the bytes
    by which the memory grew that torch reserves.  ``sizes`` are the dynamic ones of each recording, where
    they are the cause; ``moved`` are inputs that lie elsewhere, of ``moved_in_all`` at most."""

    function: str | None
    site: Site | None
    phase: str
    cause: RecordingCause
    count: int
    seconds: float
    bytes: int
    sizes: tuple[tuple[int, ...], ...]
    moved: tuple[MovedValue, ...]
    moved_in_all: int


_CAUSES = {
    RecordingCause.FIRST: "for the first time",
    RecordingCause.SIZES: "a CUDA graph holds for one combination of sizes",
    RecordingCause.ADDRESSES: "inputs that must not move lie elsewhere",
    RecordingCause.OUTPUTS: "inputs that other CUDA graphs computed lie elsewhere",
    RecordingCause.ALIVE: "other results of earlier CUDA graphs are still in use",
    RecordingCause.ORDER: "it runs after another CUDA graph than before",
    RecordingCause.UNKNOWN: "for a reason that is not known",
}
_MOST_NAMED = 3


def recordings_sentence(recordings: Sequence[CudaGraphRecording]) -> str | None:
    """The number of CUDA graphs that were recorded, their memory, and those that were recorded again, with the
    reason."""
    if not recordings:
        return None
    number = sum(recording.count for recording in recordings)
    seconds, held = sum(one.seconds for one in recordings), sum(one.bytes for one in recordings)
    grown = f", {bytes_in_words(held)} more reserved for them" if held else ""
    parts = [f"{counted(number, 'recording')} in {seconds_in_words(seconds)}{grown}"]
    again = [one for one in recordings if one.cause is not RecordingCause.FIRST]
    parts += [f"{one.count}\u00d7 again: {_graph(one)}, {cause_words(one)}" for one in again[:_MOST_NAMED]]
    if rest := sum(one.count for one in again[_MOST_NAMED:]):
        parts.append(f"{rest}\u00d7 again for other reasons")
    return "; ".join(parts)


def cause_words(recording: CudaGraphRecording) -> str:
    """The reason of a recording: ``inputs that must not move lie elsewhere (primals_3 at model.py:4)``."""
    words = _CAUSES[recording.cause]
    if recording.sizes:
        sizes = ", ".join(" and ".join(map(str, sizes)) for sizes in recording.sizes if sizes)
        return f"{words} ({sizes})" if sizes else words
    moved = [f"{one.name} at {place(one.line)}" if one.line else one.name for one in recording.moved]
    more = f" and {recording.moved_in_all - len(moved)} more" if recording.moved_in_all > len(moved) else ""
    return f"{words} ({', '.join(moved)}{more})" if moved else words


def _graph(recording: CudaGraphRecording) -> str:
    name = recording.function or "a graph"
    return f"{name} (backward)" if recording.phase == "backward" else name


_MOST_SIZES = 8
"""The most sizes of the recordings for one cause."""


def cudagraph_recordings(records: Sequence[Record], context: ExplainContext) -> list[CudaGraphRecording]:
    """Each function, phase and cause once, what was recorded most often first."""
    codes = {r.compile_id: r.code for r in records if isinstance(r, CompileStarted)}
    groups: dict[tuple[Code | None, str, RecordingCause], list[CudaGraphRecorded]] = {}
    for record in records:
        if isinstance(record, CudaGraphRecorded):
            key = codes.get(record.compile_id or ""), record.phase, record.cause
            groups.setdefault(key, []).append(record)
    recordings = [_recording(code, group, context) for (code, _, _), group in groups.items()]
    return sorted(recordings, key=lambda recording: -recording.count)


def _recording(code: Code | None, group: Sequence[CudaGraphRecorded], context: ExplainContext) -> CudaGraphRecording:
    first = group[0]
    most = max(group, key=lambda record: record.moved_in_all)
    sizes = dict.fromkeys(record.sizes for record in group) if first.cause is RecordingCause.SIZES else ()
    return CudaGraphRecording(
        function=context.function_of(code) if code else None,
        site=context.site_of(code) if code else None,
        phase=first.phase,
        cause=first.cause,
        count=len(group),
        seconds=sum(record.seconds for record in group),
        bytes=sum(record.bytes for record in group),
        sizes=tuple(sizes)[:_MOST_SIZES],
        moved=tuple(_moved(most, context)),
        moved_in_all=most.moved_in_all,
    )


def _moved(record: CudaGraphRecorded, context: ExplainContext) -> Iterable[MovedValue]:
    for one in record.moved:
        yield MovedValue(one.name, context.sources.site(one.line.path, one.line.line) if one.line else None)


_SAID_ALREADY = re.compile(r"^(?:skipping cudagraphs? (?:due to|because) )+", re.I)
_FOUND_FROM = re.compile(r"\.?\s*Found from\s*:.*", re.S)


def cudagraph_skips(records: Iterable[Record], context: ExplainContext) -> list[CudaGraphSkip]:
    """Each reason at each line once, in the order in which they came."""
    groups: dict[tuple[str, Site | None], list[CudaGraphSkipped]] = {}
    for record in records:
        if isinstance(record, CudaGraphSkipped):
            groups.setdefault((_reason(record.reason), _site(record.reason, context)), []).append(record)
    return [
        CudaGraphSkip(
            reason=reason,
            site=site,
            compile_ids=tuple(dict.fromkeys(skip.compile_id for skip in skips if skip.compile_id)),
            count=len(skips),
        )
        for (reason, site), skips in groups.items()
    ]


def _reason(text: str) -> str:
    return _SAID_ALREADY.sub("", _FOUND_FROM.sub("", text)).strip()


def _site(text: str, context: ExplainContext) -> Site | None:
    frames = frames_of(text)
    own = [frame for frame in frames if context.origin(frame.path) is not Origin.FRAMEWORK]
    where: StackFrame | None = next(reversed(own or frames), None)
    return context.sources.site(where.path, where.line) if where else None
