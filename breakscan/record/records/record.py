"""Any record of a run."""

from __future__ import annotations

from breakscan.record.records.compile_time import KernelsTimed, SpansTimed, TracingTimed
from breakscan.record.records.compiles import (
    BreakSeen,
    CompileAsked,
    CompileCalled,
    CompileMet,
    CompileStarted,
    CompileTimed,
    FrameEnded,
    PackageInstalled,
)
from breakscan.record.records.cudagraphs import CudaGraphRecorded, DeviceMemory
from breakscan.record.records.exports import ExportEnded
from breakscan.record.records.generated import (
    AutogradGraph,
    BytesMoved,
    CacheLooked,
    CacheSettings,
    CodeGenerated,
    CudaGraphSkipped,
)
from breakscan.record.records.graphs import CompiledAutograd, DdpSplit, GraphCompiled
from breakscan.record.records.guards import GuardsBuilt, RecompileSeen, ShapeSpecialised
from breakscan.record.records.processes import HookFailed, HookInstalled, ProcessForked, ProcessStarted, RankSeen
from breakscan.record.records.runs import CallsOnDevice, CallsRan, EagerCallsRan, GapRan, GraphRan, RunsTraced
from breakscan.record.records.values import BreakValuesSeen, FileSeen, LibrarySeen, ValuesMet, ValuesSeen

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
