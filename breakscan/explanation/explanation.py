"""The explanation of one run: the objects that the reports of ``explain`` are made from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from breakscan.explanation.breaks import BreakSite
from breakscan.explanation.compilations import CompiledFrame, Precompiled, Specialisation
from breakscan.explanation.compile_targets import CompileTarget
from breakscan.explanation.exports import Export
from breakscan.explanation.frames import FrameStatus, UncompiledFrame
from breakscan.explanation.graphs import CudaGraphSkip, Graph
from breakscan.explanation.notices import Notice
from breakscan.explanation.problems import problems_of
from breakscan.explanation.rank_report import RankReport
from breakscan.explanation.recompiles import Recompile
from breakscan.explanation.run_totals import Calls
from breakscan.explanation.step_profile import StepProfile
from breakscan.model.problem import Problem
from breakscan.rulebook.document import Rule

_NAMED_DEVICE = re.compile(r"\((.+)\)$")


@dataclass(frozen=True)
class Explanation:
    """One run.  ``status`` is the exit status, negative for the signal that ended the program; ``seconds`` its wall
    time, ``compile_seconds`` the part of it in which something was compiled.  ``entries`` counts the compilations that
    a call of a compiled function asked for: without breaks, each gives one graph.  ``libraries`` are the versions of
    those that were traced, by the names that they are imported by.  ``around`` are the problems that the compiler does
    not report.  ``traced`` holds, by file, the lines that operations of graphs come from.  ``began`` is when the
    recording began, in seconds since the epoch.  Of a run that is read from torch's own trace, ``trace`` names its log,
    ``argv`` is empty, and ``status`` and ``seconds`` are None."""

    argv: tuple[str, ...]
    status: int | None
    seconds: float | None
    torch: str
    python: str
    devices: tuple[str, ...]
    torch_imported: bool
    disabled_by: str | None
    breaks: Sequence[BreakSite]
    recompiles: Sequence[Recompile]
    frames: Sequence[UncompiledFrame]
    graphs: Sequence[Graph]
    targets: Sequence[CompileTarget]
    entries: int
    compile_seconds: float
    notices: Sequence[Notice]
    compiles: Sequence[CompiledFrame] = ()
    specialisations: Sequence[Specialisation] = ()
    cudagraph_skips: Sequence[CudaGraphSkip] = ()
    calls: Sequence[Calls] = ()
    around: Sequence[Problem] = ()
    precompiled: Sequence[Precompiled] = ()
    exports: Sequence[Export] = ()
    export_problems: Sequence[Problem] = ()
    export_rules: Mapping[str, Rule] = field(default_factory=dict)
    ranks: RankReport | None = None
    processes: int = 1
    traced: Mapping[str, Sequence[int]] = field(default_factory=dict)
    trace: str | None = None
    began: float | None = None
    libraries: Mapping[str, str] = field(default_factory=dict)
    profile: StepProfile | None = None

    @property
    def device(self) -> str | None:
        """The hardware that graphs ran on, as ``2 × NVIDIA H200``; None if no graph reports it."""
        named = Counter(found[1] if (found := _NAMED_DEVICE.search(device)) else "" for device in self.devices)
        plain = {device.partition(":")[0] for device in self.devices if not _NAMED_DEVICE.search(device)}
        words = [f"{count} × {name}" for name, count in named.items() if name]
        # Scalars that stay on the CPU say nothing where there is an accelerator.
        return ", ".join(words or sorted(plain)) or None

    @property
    def break_events(self) -> int:
        return sum(site.count for site in self.breaks)

    @property
    def eager_frames(self) -> int:
        return sum(frame.status is FrameStatus.EAGER for frame in self.frames)

    @property
    def ops(self) -> int:
        return sum(graph.ops for graph in self.graphs)

    @property
    def causes(self) -> int:
        """The number of distinct causes of recompiles."""
        return len({recompile.cause for recompile in self.recompiles})

    @cached_property
    def problems(self) -> list[Problem]:
        """The problems of the run, in the order of a report."""
        return problems_of(
            self.breaks, self.frames, self.recompiles, self.around, self.export_problems, self.compile_seconds
        )

    @property
    def rules(self) -> dict[str, Rule]:
        """The rules that explain its problems, by id."""
        kinds = (self.breaks, self.frames, self.recompiles)
        return {**{thing.rule.id: thing.rule for kind in kinds for thing in kind if thing.rule}, **self.export_rules}
