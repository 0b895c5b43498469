"""Where the files of a run lie now, on this machine, and which of them may be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TypeVar

from breakscan.recording.records import Code, ProcessStarted, Record, StackFrame
from breakscan.recording.session import RecordedRun

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Relocation:
    """Which folders became which: the longest that a path lies below counts.  Files of the new ones may be read, and
    those of ``allowed``."""

    roots: Mapping[str, str]
    allowed: Sequence[str] = ()

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that the user named."""
        return (*self.roots.values(), *self.allowed)

    def path(self, path: str) -> str:
        """Where a file lies now."""
        plain = path.replace("\\", "/")
        for old in sorted(self.roots, key=len, reverse=True):
            folder = old.replace("\\", "/").rstrip("/")
            if plain.startswith(f"{folder}/"):
                return self.roots[old].rstrip("/") + plain[len(folder) :]
        return path

    def record(self, record: Record) -> Record:
        """The record with every path as it is now."""
        return self._moved(record) if self.roots else record

    def _moved(self, value: R) -> R:
        if isinstance(value, (StackFrame, Code)):
            return replace(value, path=self.path(value.path))
        if isinstance(value, ProcessStarted):
            torch, standard = (
                self.path(f"{folder}/").rstrip("/") for folder in (value.torch_folder, value.standard_library)
            )
            return replace(value, torch_folder=torch, standard_library=standard)
        if isinstance(value, tuple):
            return tuple(self._moved(item) for item in value)  # type: ignore[return-value]
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{f.name: self._moved(getattr(value, f.name)) for f in fields(value)})
        return value


def relocated(run: RecordedRun, relocation: Relocation) -> RecordedRun:
    """The recording with every path as it is now."""
    if not relocation.roots:
        return run
    return replace(
        run,
        parts=[
            replace(
                part,
                processes=[[relocation.record(record) for record in process] for process in part.processes],
                sources={relocation.path(path): text for path, text in part.sources.items()},
            )
            for part in run.parts
        ],
    )
