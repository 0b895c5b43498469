"""CUDA graphs, and the memory of devices."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from breakscan.record.records.source import StackFrame


class RecordingCause(Enum):
    """Why a graph was recorded as a CUDA graph."""

    FIRST = "first"
    """For the first time."""
    SIZES = "sizes"
    """A CUDA graph holds for one combination of sizes."""
    ADDRESSES = "addresses"
    """Parameters, or other inputs that must not move, lie elsewhere."""
    OUTPUTS = "outputs"
    """Inputs that are results of other CUDA graphs lie elsewhere."""
    ALIVE = "alive"
    """Other results of earlier CUDA graphs are still in use than when it was recorded."""
    ORDER = "order"
    """It runs after another CUDA graph than before."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class MovedInput:
    """An input that lies elsewhere: AOTAutograd's name for it, and the line of the program that uses it."""

    name: str
    line: StackFrame | None


@dataclass(frozen=True, slots=True)
class CudaGraphRecorded:
    """No recording of a graph fitted a run of it, and so it was recorded.  ``phase`` as in ``AutogradGraph``; ``sizes``
    are the dynamic ones, ``moved`` the first inputs that lie elsewhere, of ``moved_in_all``; ``bytes`` by how much the
    memory that is reserved on the device grew."""

    compile_id: str | None
    phase: str
    cause: RecordingCause
    sizes: tuple[int, ...]
    moved: tuple[MovedInput, ...]
    moved_in_all: int
    seconds: float
    bytes: int
    at: float


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """The most bytes that tensors took on a device until now, and that torch had reserved for them; the program may
    start both over.  The last record of a device counts."""

    device: str
    allocated: int
    reserved: int
