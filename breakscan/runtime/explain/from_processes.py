"""Turns what processes recorded into an explanation: each site once, causes before consequences, the user's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from breakscan.findings import Origin
from breakscan.rulebook.document import Rule
from breakscan.runtime.explain.autograd_captures import autograd_captures
from breakscan.runtime.explain.break_sites import BreakSites, break_sites, breaks_of
from breakscan.runtime.explain.compilations import compiled_frames
from breakscan.runtime.explain.compiled import Graph
from breakscan.runtime.explain.context import ExplainContext
from breakscan.runtime.explain.cudagraph_skips import cudagraph_skips
from breakscan.runtime.explain.explanation import CompileTarget, Explanation
from breakscan.runtime.explain.kernels import with_generated
from breakscan.runtime.explain.notices import notices
from breakscan.runtime.explain.owners import Owners, is_ours
from breakscan.runtime.explain.prices import with_prices
from breakscan.runtime.explain.recompile_causes import recompiles, recompiles_of
from breakscan.runtime.explain.set_aside import set_aside_notice
from breakscan.runtime.explain.source_map import SourceMap
from breakscan.runtime.explain.specialisations import specialisations
from breakscan.runtime.explain.uncompiled import endings_of, frame_fates
from breakscan.runtime.explain.unique_ids import with_unique_ids
from breakscan.runtime.explain.unmet_requests import asked_of, unmet_requests
from breakscan.runtime.launch import ProgramExit
from breakscan.runtime.parsers.dynamo_names import is_compiler_entry
from breakscan.runtime.records import (
    BreakSeen,
    Code,
    CompileCalled,
    CompileStarted,
    CompileTimed,
    FrameEnded,
    GraphCompiled,
    GraphTraced,
    HookInstalled,
    ProcessStarted,
    Record,
)

_UNKNOWN = ProcessStarted(0, 0, (), None, None, 0.0, 0.0, "", "", "", "", None, False)


def explain_processes(
    recording: Sequence[Sequence[Record]],
    *,
    argv: Sequence[str],
    outcome: ProgramExit | None,
    rules: Iterable[Rule],
    show: Callable[[str], str],
    torch_imported: bool,
    texts: Mapping[tuple[str, int], str] | None = None,
) -> Explanation:
    """What the recording of a run comes to.  ``show`` turns a recorded path into the one that reports show; ``texts``
    are lines of source by path and number, for files that are not here any more or are others by now."""
    processes = [
        [record for record in with_unique_ids(records, number) if not _is_ours(record)]
        for number, records in enumerate(recording)
    ]
    everything = [record for records in processes for record in records]
    process = next((r for r in everything if isinstance(r, ProcessStarted)), _UNKNOWN)
    hooked = {r.name for r in everything if isinstance(r, HookInstalled) and r.available}
    owners = Owners(process.torch_folder, process.standard_library)
    calls = [r for r in everything if isinstance(r, CompileCalled)]
    started = {r.compile_id: r for r in everything if isinstance(r, CompileStarted)}

    breaks = [list(breaks_of(records, "breaks" in hooked)) for records in processes]
    all_breaks = [seen for found in breaks for seen in found]
    sources = SourceMap(show, texts or {})
    wrapped = _what_wrappers_stand_for(calls, all_breaks, everything, owners)
    lens = ExplainContext(tuple(rules), sources, owners, _torchs_modules(calls, owners), wrapped)
    keys = BreakSites(all_breaks, lens)
    sites = break_sites(all_breaks, keys, started, lens)
    endings = [
        ending
        for records, found in zip(processes, breaks, strict=True)
        for ending in endings_of(records, found, "frames" in hooked)
    ]
    graphs = _graphs(everything, started, "graphs" in hooked)
    targets = {call.code for call in calls}
    fates = frame_fates(endings, graphs, targets, keys, sites, lens)
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
        recompiles=recompiles(
            [list(recompiles_of(records, "recompiles" in hooked)) for records in processes], fates, lens
        ),
        frames=fates,
        graphs=with_generated(
            [_graph(number, graph, lens) for number, graph in enumerate(graphs)], graphs, everything, lens
        ),
        targets=_targets(calls, everything, lens),
        entries=sum(record.code in targets for record in started.values()),
        compile_seconds=sum(r.seconds for r in everything if isinstance(r, CompileTimed)),
        notices=(
            *notices(recording),
            *unmet_requests(asked_of(everything), everything),
            *set_aside_notice(everything, keys, started, lens),
        ),
        compiles=compiled_frames(processes, lens),
        specialisations=specialisations(everything, started, lens),
        cudagraph_skips=cudagraph_skips(everything, lens),
        autograd=autograd_captures(everything),
        traced=_traced_lines(graphs, lens),
    )
    return with_prices(explanation, processes, breaks, endings, keys, lens)


def _is_ours(record: Record) -> bool:
    """Whether a frame of the recorder's own ended uncompiled: Dynamo meets some where torch works for compiled code."""
    return isinstance(record, FrameEnded) and is_ours(record.frame.path)


def _graphs(records: Iterable[Record], started: dict[str, CompileStarted], hooked: bool) -> list[GraphCompiled]:
    """The graphs; from the structured trace alone, with one count of operations a frame, where the hook is missing."""
    if hooked:
        return [record for record in records if isinstance(record, GraphCompiled)]
    records = list(records)
    ops = {r.compile_id: r.ops or 0 for r in records if isinstance(r, CompileTimed) and not r.backward}
    return [
        GraphCompiled(r.compile_id, started[r.compile_id].code, ops.get(r.compile_id, 0), (), number, (), (), 0.0, 0.0)
        for number, r in enumerate(r for r in records if isinstance(r, GraphTraced) and r.compile_id in started)
    ]


def _graph(number: int, graph: GraphCompiled, lens: ExplainContext) -> Graph:
    lines = (node.line for node in graph.nodes if node.line is not None)
    return Graph(
        number=number,
        compile_id=graph.compile_id or "",
        function=lens.function_of(graph.frame),
        site=lens.site_of(graph.frame),
        ops=graph.ops,
        devices=graph.devices,
        lines=tuple(dict.fromkeys(lens.sources.site(line.path, line.line) for line in lines)),
        ended_by=None,
        runs=None,
        seconds=None,
        device_seconds=None,
        compile_seconds=graph.seconds or None,
        generated=(),
        split_by_ddp=(),
    )


def _traced_lines(graphs: Iterable[GraphCompiled], lens: ExplainContext) -> dict[str, list[int]]:
    lines: dict[str, set[int]] = {}
    for line in (node.line for graph in graphs for node in graph.nodes if node.line is not None):
        lines.setdefault(line.path, set()).add(line.line)
    return {lens.sources.show(path): sorted(found) for path, found in lines.items()}


def _targets(calls: Iterable[CompileCalled], records: Iterable[Record], lens: ExplainContext) -> list[CompileTarget]:
    """What the program asked torch.compile for.  To serve that, torch asks itself for more."""
    tried = {r.code for r in records if isinstance(r, CompileStarted)}
    tried |= {r.frame for r in records if isinstance(r, FrameEnded)}
    targets: list[CompileTarget] = []
    for call in calls:
        attempted = call.code in tried
        if targets and _is_torchs_own(call):
            targets[-1] = replace(targets[-1], attempted=targets[-1].attempted or attempted)
        else:
            targets.append(CompileTarget(call.target, next(iter(reversed(lens.callers(call.stack))), None), attempted))
    return targets


def _torchs_modules(calls: Iterable[CompileCalled], owners: Owners) -> tuple[str, ...]:
    """The names of the modules whose ``forward`` is torch's own: Dynamo compiles a wrapper in its place."""
    own = (call for call in calls if call.code and owners.of(call.code.path) is Origin.FRAMEWORK)
    return tuple(dict.fromkeys(call.target for call in own if not _is_torchs_own(call)))


def _what_wrappers_stand_for(
    calls: Iterable[CompileCalled], breaks: Iterable[BreakSeen], records: Iterable[Record], owners: Owners
) -> dict[Code, str]:
    """The functions behind a decorator of a library's that torch.compile was given, by the code of the wrapper.

    The wrappers of one decorator share their code.  Only where all of a call became graphs is it known to have run for
    the function that was given alone; what a break leaves behind may be the wrapper of another.
    """
    given: dict[Code, set[str]] = {}
    for call in calls:
        is_wrapper = call.code and call.code.name not in ("forward", call.target.rpartition(".")[2])
        if call.code and is_wrapper and owners.of(call.code.path) is Origin.LIBRARY:
            given.setdefault(call.code, set()).add(call.target)
    broken = {(frame.path, frame.name) for seen in breaks for frame in seen.stack}
    not_compiled = {record.frame for record in records if isinstance(record, FrameEnded)}
    return {
        code: min(names)
        for code, names in given.items()
        if len(names) == 1 and (code.path, code.name) not in broken and code not in not_compiled
    }


def _is_torchs_own(call: CompileCalled) -> bool:
    """Whether torch asked, for the wrapper around a module.  The file alone does not tell: the hook's frames carry its
    name as well."""
    return any(is_compiler_entry(frame.path) and frame.name == "_initialize" for frame in call.stack)
