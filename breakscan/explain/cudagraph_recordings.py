"""Which graphs were recorded as CUDA graphs and why, and what memory of devices the run used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from breakscan.explain.compiled import CudaGraphRecording, MovedValue, PeakMemory
from breakscan.explain.context import ExplainContext
from breakscan.record.records import Code, CompileStarted, CudaGraphRecorded, DeviceMemory, Record, RecordingCause

_MOST_SIZES = 8
"""Of the recordings for one cause."""


def cudagraph_recordings(records: Sequence[Record], lens: ExplainContext) -> list[CudaGraphRecording]:
    """Each function, phase and cause once, what was recorded most often first."""
    codes = {r.compile_id: r.code for r in records if isinstance(r, CompileStarted)}
    groups: dict[tuple[Code | None, str, RecordingCause], list[CudaGraphRecorded]] = {}
    for record in records:
        if isinstance(record, CudaGraphRecorded):
            key = codes.get(record.compile_id or ""), record.phase, record.cause
            groups.setdefault(key, []).append(record)
    told = [_recording(code, group, lens) for (code, _, _), group in groups.items()]
    return sorted(told, key=lambda recording: -recording.count)


def _recording(code: Code | None, group: Sequence[CudaGraphRecorded], lens: ExplainContext) -> CudaGraphRecording:
    first = group[0]
    most = max(group, key=lambda record: record.moved_in_all)
    sizes = dict.fromkeys(record.sizes for record in group) if first.cause is RecordingCause.SIZES else ()
    return CudaGraphRecording(
        function=lens.function_of(code) if code else None,
        site=lens.site_of(code) if code else None,
        phase=first.phase,
        cause=first.cause,
        count=len(group),
        seconds=sum(record.seconds for record in group),
        bytes=sum(record.bytes for record in group),
        sizes=tuple(sizes)[:_MOST_SIZES],
        moved=tuple(_moved(most, lens)),
        moved_in_all=most.moved_in_all,
    )


def _moved(record: CudaGraphRecorded, lens: ExplainContext) -> Iterable[MovedValue]:
    for one in record.moved:
        yield MovedValue(one.name, lens.sources.site(one.line.path, one.line.line) if one.line else None)


def peak_memory(processes: Iterable[Iterable[Record]]) -> list[PeakMemory]:
    """Of each device, of the process that used most of it."""
    peaks: dict[str, DeviceMemory] = {}
    for records in processes:
        for memory in {r.device: r for r in records if isinstance(r, DeviceMemory)}.values():
            known = peaks.get(memory.device)
            if known is None or memory.allocated > known.allocated:
                peaks[memory.device] = memory
    return [PeakMemory(one.device, one.allocated, one.reserved) for _, one in sorted(peaks.items())]
