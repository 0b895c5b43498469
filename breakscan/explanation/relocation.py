"""The folders of a run on this machine, and those that may be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from breakscan.recording.records import Code, ProcessStarted, Record, StackFrame, mapped
from breakscan.recording.session import RecordedRun


@dataclass(frozen=True, slots=True)
class Relocation:
    """Pairs of an old and a new folder: the longest that a path lies below counts.  Files of the new ones may be
    read, and those of ``allowed``."""

    roots: Mapping[str, str]
    allowed: Sequence[str] = ()

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that the user named."""
        return (*self.roots.values(), *self.allowed)

    def path(self, path: str) -> str:
        """The path of a file on this machine."""
        plain = path.replace("\\", "/")
        for old in sorted(self.roots, key=len, reverse=True):
            folder = old.replace("\\", "/").rstrip("/")
            if plain.startswith(f"{folder}/"):
                return self.roots[old].rstrip("/") + plain[len(folder) :]
        return path

    def record(self, record: Record) -> Record:
        """The record with every path as it is now."""
        return mapped(record, self._moved) if self.roots else record

    def _moved(self, value: Any) -> Any:
        if isinstance(value, StackFrame | Code):
            return replace(value, path=self.path(value.path))
        if isinstance(value, ProcessStarted):
            folders = (value.torch_folder, value.standard_library)
            torch, standard = (self.path(f"{folder}/").rstrip("/") for folder in folders)
            return replace(value, torch_folder=torch, standard_library=standard)
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
