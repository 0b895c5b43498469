"""Turns what processes recorded into an explanation: each site once, causes before consequences, the user's names."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import PurePath
from typing import Any

import breakscan
from breakscan.explanation.around import around_the_compiler
from breakscan.explanation.breaks import BreakSites, break_sites, breaks_of
from breakscan.explanation.compilations import (
    compile_targets,
    compiled_frames,
    precompiled,
    specialisations,
    spent_compiling,
)
from breakscan.explanation.context import ExplainContext, Owners
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.exports import export_problems, exports
from breakscan.explanation.frames import endings_of, frame_fates
from breakscan.explanation.graphs import cudagraph_skips, reported_graphs, traced_lines
from breakscan.explanation.notices import notices, profile_notices, set_aside_notice, unmet_requests
from breakscan.explanation.prices import with_prices
from breakscan.explanation.recompiles import recompiles
from breakscan.explanation.remedies import with_shared_causes
from breakscan.explanation.run_totals import began_at, step_profile
from breakscan.explanation.user_source import UserSource
from breakscan.recording.launch import ProgramExit
from breakscan.recording.parsers.frames import BACKWARD, is_captured_backward, is_written_by_fx
from breakscan.recording.records import (
    Code,
    CompileAsked,
    CompileCalled,
    CompileStarted,
    FrameEnded,
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
            mine = [frame for frame in record.stack if owners.is_programs(frame.path)]
            if mine and is_written_by_fx(record.code.path):
                lines.setdefault(record.code.path, mine[-1])

    def place(value: Any) -> Any:
        line = lines.get(value.path) if isinstance(value, StackFrame | Code) else None
        return value if line is None else type(value)(line.path, line.line, BACKWARD)

    return [mapped(record, place) for record in every] if lines else every


_OURS = PurePath(breakscan.__file__).parent
_UNKNOWN = ProcessStarted(0)


def explain_processes(
    recording: Sequence[Sequence[Record]],
    *,
    rules: Iterable[Rule],
    show: Callable[[str], str],
    files: SourceFiles,
    argv: Sequence[str] = (),
    outcome: ProgramExit | None = None,
    torch_imported: bool = True,
) -> Explanation:
    """Explains the recording of a run.  ``show`` gives the path that reports show, ``files`` what is read."""
    process = next((r for records in recording for r in records if isinstance(r, ProcessStarted)), _UNKNOWN)
    owners = Owners(process.torch_folder, process.standard_library)
    processes = [
        # Dynamo meets frames of the recorder's own where torch works for compiled code.
        [
            one
            for one in with_backward_lines(with_unique_ids(records, number), owners)
            if not (isinstance(one, FrameEnded) and PurePath(one.frame.path).is_relative_to(_OURS))
        ]
        for number, records in enumerate(recording)
    ]
    context = ExplainContext(processes, tuple(rules), UserSource(show, files), owners)
    breaks = [list(breaks_of(records)) for records in processes]
    all_breaks = list(chain.from_iterable(breaks))
    keys = BreakSites(all_breaks, context)
    sites = break_sites(all_breaks, keys, context)
    endings = [one for records, found in zip(processes, breaks, strict=True) for one in endings_of(records, found)]
    fates = frame_fates(endings, keys, sites, context)
    compiles = compiled_frames(context)
    graphs = reported_graphs(context)
    against_exports, rules_of_exports = export_problems(context)
    targets = {call.code for call in context.of(CompileCalled)}
    explanation = Explanation(
        argv=tuple(argv),
        status=outcome.status if outcome else None,
        seconds=outcome.seconds if outcome else None,
        torch=process.torch,
        python=process.python,
        devices=tuple(dict.fromkeys(device for graph in graphs for device in graph.devices)),
        torch_imported=torch_imported,
        disabled_by=process.disabled_by,
        breaks=list(sites.values()),
        recompiles=with_shared_causes(recompiles(fates, compiles, all_breaks, process.torch, context)),
        frames=fates,
        graphs=graphs,
        targets=compile_targets(context),
        entries=sum(record.code in targets for record in context.started.values()),
        compile_seconds=spent_compiling(context),
        notices=(
            *notices(recording),
            *unmet_requests((one.target for one in context.of(CompileAsked)), chain.from_iterable(processes)),
            *set_aside_notice(keys, context),
            *profile_notices(context),
        ),
        compiles=compiles,
        specialisations=specialisations(context),
        cudagraph_skips=cudagraph_skips(context),
        around=around_the_compiler(fates, compiles, context),
        precompiled=precompiled(context),
        exports=exports(context),
        export_problems=against_exports,
        export_rules=rules_of_exports,
        traced=traced_lines(context),
        began=began_at(processes),
        libraries={record.name: record.version for record in context.of(LibrarySeen)},
        profile=step_profile(context),
    )
    return with_prices(explanation, breaks, endings, keys, context)
