"""CUDA graphs and the memory of devices, in words."""

from __future__ import annotations

from collections.abc import Sequence

from breakscan.explain.compiled import CudaGraphRecording, PeakMemory
from breakscan.model.words import bytes_in_words, counted, place, seconds_in_words
from breakscan.record.records import RecordingCause

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
    """How many CUDA graphs were recorded, what they hold, and which were recorded again, and why."""
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
    """Why it was recorded: ``inputs that must not move lie elsewhere (primals_3 at model.py:4)``."""
    words = _CAUSES[recording.cause]
    if recording.sizes:
        sizes = ", ".join(" and ".join(map(str, sizes)) for sizes in recording.sizes if sizes)
        return f"{words} ({sizes})" if sizes else words
    moved = [f"{one.name} at {place(one.line)}" if one.line else one.name for one in recording.moved]
    more = f" and {recording.moved_in_all - len(moved)} more" if recording.moved_in_all > len(moved) else ""
    return f"{words} ({', '.join(moved)}{more})" if moved else words


def peaks_sentence(peaks: Sequence[PeakMemory]) -> str | None:
    """``cuda:0 at most 3.1 GB, 3.4 GB reserved``."""
    told = [
        f"{one.device} at most {bytes_in_words(one.allocated)}, {bytes_in_words(one.reserved)} reserved"
        for one in peaks
    ]
    return "; ".join(told) or None


def _graph(recording: CudaGraphRecording) -> str:
    name = recording.function or "a graph"
    return f"{name} (backward)" if recording.phase == "backward" else name
