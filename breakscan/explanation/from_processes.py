"""Turns what processes recorded into an explanation: each site once, causes before consequences, the user's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import PurePath
from typing import Any

import breakscan
from breakscan.explanation.around import around_the_compiler
from breakscan.explanation.breaks import BreakSites, break_sites, breaks_of
from breakscan.explanation.compilations import compiled_frames, precompiled, specialisations, spent_compiling
from breakscan.explanation.compile_targets import compile_targets, torchs_modules, what_wrappers_stand_for
from breakscan.explanation.context import ExplainContext, Owners
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.exports import export_problems, exports
from breakscan.explanation.frames import Ending, endings_of, frame_fates
from breakscan.explanation.graphs import cudagraph_skips, reported_graph, traced_lines, with_generated
from breakscan.explanation.notices import notices, set_aside_notice, unmet_requests
from breakscan.explanation.prices import with_prices
from breakscan.explanation.recompile_remedies import with_shared_causes
from breakscan.explanation.recompiles import recompiles
from breakscan.explanation.run_totals import began_at
from breakscan.explanation.step_profile import profile_notices, step_profile
from breakscan.explanation.user_source import UserSource
from breakscan.recording.launch import ProgramExit
from breakscan.recording.parsers.frames import BACKWARD, is_captured_backward, is_written_by_fx
from breakscan.recording.records import (
    Code,
    CompileAsked,
    CompileCalled,
    CompileStarted,
    FrameEnded,
    GraphCompiled,
    LibrarySeen,
    ProcessStarted,
    Record,
    StackFrame,
    mapped,
)
from breakscan.rulebook.document import Rule
from breakscan.source.source_files import SourceFiles


def with_unique_ids(records: Iterable[Record], process: int) -> Iterator[Record]:
    """The records of a process, each with its compile id made unique."""
    seen: set[str] = set()
    resets = 0
    for record in records:
        if isinstance(record, CompileStarted):
            if record.compile_id in seen:
                seen, resets = set(), resets + 1
            seen.add(record.compile_id)
        prefix = f"{f'p{process}:' if process else ''}{f'r{resets}:' if resets else ''}"
        compile_id = getattr(record, "compile_id", None)
        changed: Any = {} if compile_id is None else {"compile_id": prefix + compile_id}
        yield replace(record, **changed) if prefix and changed else record


def with_backward_lines(records: Iterable[Record], owners: Owners) -> list[Record]:
    """The records of a process, in which each place in a captured backward is the line that called it."""
    every = list(records)
    lines: dict[str, StackFrame] = {}
    for record in every:
        if isinstance(record, CompileStarted) and is_captured_backward(record.compile_id):
            line = _users_line(record.stack, owners)
            if line is not None and is_written_by_fx(record.code.path):
                lines.setdefault(record.code.path, line)

    def place(value: Any) -> Any:
        line = lines.get(value.path) if isinstance(value, StackFrame | Code) else None
        return value if line is None else type(value)(line.path, line.line, BACKWARD)

    return [mapped(record, place) for record in every] if lines else every


def _users_line(stack: Iterable[StackFrame], owners: Owners) -> StackFrame | None:
    """The innermost line that is neither torch's nor Python's."""
    mine = [frame for frame in stack if owners.is_programs(frame.path)]
    return mine[-1] if mine else None


_OURS = PurePath(breakscan.__file__).parent
_UNKNOWN = ProcessStarted(0, 0, (), None, None, 0.0, 0.0, "", "", "", "", None, False)


class _Recorded:
    """The records of a run, by process and by kind, with compile ids that are unique."""

    def __init__(self, recording: Sequence[Sequence[Record]]) -> None:
        started = (r for records in recording for r in records if isinstance(r, ProcessStarted))
        self.process = next(started, _UNKNOWN)
        self.owners = Owners(self.process.torch_folder, self.process.standard_library)
        self.processes = [
            [one for one in with_backward_lines(with_unique_ids(records, number), self.owners) if not _is_ours(one)]
            for number, records in enumerate(recording)
        ]
        self.all = list(chain.from_iterable(self.processes))
        self.calls = [r for r in self.all if isinstance(r, CompileCalled)]
        self.graphs = [r for r in self.all if isinstance(r, GraphCompiled)]
        self.started = {r.compile_id: r for r in self.all if isinstance(r, CompileStarted)}
        self.breaks = [list(breaks_of(records)) for records in self.processes]
        self.all_breaks = list(chain.from_iterable(self.breaks))

    def endings(self) -> list[Ending]:
        """The frames that ended uncompiled."""
        return [
            ending
            for records, found in zip(self.processes, self.breaks, strict=True)
            for ending in endings_of(records, found)
        ]


def explain_processes(
    recording: Sequence[Sequence[Record]],
    *,
    argv: Sequence[str],
    outcome: ProgramExit | None,
    rules: Iterable[Rule],
    show: Callable[[str], str],
    torch_imported: bool,
    files: SourceFiles,
) -> Explanation:
    """Explains the recording of a run.  ``show`` turns a recorded path into the one that reports show; ``files``
    decides which sources are read."""
    recorded = _Recorded(recording)
    owners = recorded.owners
    wrapped = what_wrappers_stand_for(recorded.calls, recorded.all_breaks, recorded.all, owners)
    modules = torchs_modules(recorded.calls, owners)
    context = ExplainContext(tuple(rules), UserSource(show, files), owners, modules, wrapped)
    keys = BreakSites(recorded.all_breaks, context)
    sites = break_sites(recorded.all_breaks, keys, recorded.started, context)
    endings = recorded.endings()
    targets = {call.code for call in recorded.calls}
    fates = frame_fates(endings, recorded.graphs, targets, keys, sites, context)
    compiles = compiled_frames(recorded.processes, context)
    graphs = [reported_graph(number, graph, context) for number, graph in enumerate(recorded.graphs)]
    against_exports, rules_of_exports = export_problems(recorded.all, context)
    explanation = Explanation(
        argv=tuple(argv),
        status=outcome.status if outcome else None,
        seconds=outcome.seconds if outcome else None,
        torch=recorded.process.torch,
        python=recorded.process.python,
        devices=tuple(dict.fromkeys(device for graph in graphs for device in graph.devices)),
        torch_imported=torch_imported,
        disabled_by=recorded.process.disabled_by,
        breaks=list(sites.values()),
        recompiles=with_shared_causes(
            recompiles(
                recorded.processes,
                fates,
                compiles,
                recorded.all_breaks,
                recorded.calls,
                recorded.process.torch,
                context,
            )
        ),
        frames=fates,
        graphs=with_generated(graphs, recorded.graphs, recorded.all, context),
        targets=compile_targets(recorded.calls, recorded.all, context),
        entries=sum(record.code in targets for record in recorded.started.values()),
        compile_seconds=spent_compiling(recorded.processes),
        notices=(
            *notices(recording),
            *unmet_requests((one.target for one in recorded.all if isinstance(one, CompileAsked)), recorded.all),
            *set_aside_notice(recorded.all, keys, recorded.started, context),
            *profile_notices(recorded.processes),
        ),
        compiles=compiles,
        specialisations=specialisations(recorded.all, recorded.started, context),
        cudagraph_skips=cudagraph_skips(recorded.all, context),
        around=around_the_compiler(recorded.processes, fates, compiles, context),
        precompiled=precompiled(recorded.all, context),
        exports=exports(recorded.all, context),
        export_problems=against_exports,
        export_rules=rules_of_exports,
        traced=traced_lines(recorded.graphs, context),
        began=began_at(recorded.processes),
        libraries={record.name: record.version for record in recorded.all if isinstance(record, LibrarySeen)},
        profile=step_profile(recorded.processes, context),
    )
    return with_prices(explanation, recorded.processes, recorded.breaks, endings, keys, context)


def _is_ours(record: Record) -> bool:
    """Return whether a frame of the recorder's own ended uncompiled: Dynamo meets some where torch works for
    compiled code."""
    return isinstance(record, FrameEnded) and PurePath(record.frame.path).is_relative_to(_OURS)
