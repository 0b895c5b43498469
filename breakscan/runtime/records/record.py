"""Any record of a run."""

from __future__ import annotations

from breakscan.runtime.records.compile_time import KernelsTimed, SpansTimed, TracingTimed
from breakscan.runtime.records.compiles import (
    BreakSeen,
    CompileAsked,
    CompileCalled,
    CompileMet,
    CompileStarted,
    CompileTimed,
    FrameEnded,
    PackageInstalled,
)
from breakscan.runtime.records.cudagraphs import CudaGraphRecorded, DeviceMemory
from breakscan.runtime.records.exports import ExportEnded
from breakscan.runtime.records.generated import (
    AutogradGraph,
    BytesMoved,
    CacheLooked,
    CacheSettings,
    CodeGenerated,
    CudaGraphSkipped,
)
from breakscan.runtime.records.graphs import CompiledAutograd, DdpSplit, GraphCompiled
from breakscan.runtime.records.guards import GuardsBuilt, RecompileSeen, ShapeSpecialised
from breakscan.runtime.records.processes import HookFailed, HookInstalled, ProcessForked, ProcessStarted, RankSeen
from breakscan.runtime.records.runs import CallsOnDevice, CallsRan, EagerCallsRan, GapRan, GraphRan, RunsTraced
from breakscan.runtime.records.values import BreakValuesSeen, FileSeen, LibrarySeen, ValuesMet, ValuesSeen

Record = (
    ProcessStarted
    | ProcessForked
    | RankSeen
    | HookInstalled
    | HookFailed
    | CompileCalled
    | CompileAsked
    | CompileMet
    | PackageInstalled
    | CompileStarted
    | CompileTimed
    | SpansTimed
    | TracingTimed
    | KernelsTimed
    | FrameEnded
    | BreakSeen
    | RecompileSeen
    | GuardsBuilt
    | ShapeSpecialised
    | GraphCompiled
    | AutogradGraph
    | CodeGenerated
    | BytesMoved
    | CacheLooked
    | CacheSettings
    | CudaGraphSkipped
    | CudaGraphRecorded
    | DeviceMemory
    | DdpSplit
    | CompiledAutograd
    | ExportEnded
    | GraphRan
    | GapRan
    | CallsRan
    | CallsOnDevice
    | EagerCallsRan
    | RunsTraced
    | FileSeen
    | LibrarySeen
    | ValuesSeen
    | ValuesMet
    | BreakValuesSeen
)
