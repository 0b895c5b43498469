"""Explains a recording of any number of processes and ranks, with the folders of the run on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from breakscan.explanation import notices, ranks
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.from_processes import explain_processes
from breakscan.explanation.notices import Notice, unread_sources
from breakscan.explanation.rank_report import NO_RECORDING, RUNNING, RankEnding, exit_ending, killed_ending
from breakscan.recording.launch import ProgramExit
from breakscan.recording.recording import compiled
from breakscan.recording.records import Code, ProcessForked, ProcessStarted, RankSeen, Record, StackFrame, mapped
from breakscan.recording.session import RecordedRun, RecordingPart
from breakscan.rulebook.document import Rule
from breakscan.source.source_files import SourceFiles

Process = Sequence[Record]


def explain_run(
    run: RecordedRun, *, rules: Iterable[Rule], show: Callable[[str], str], files: SourceFiles
) -> Explanation:
    """Explains a recording; of several ranks, what they have in common and how they differ.

    ``show`` turns a recorded path into the one that reports show.  The sources that the recording keeps are added to
    ``files``, which decides what else is read.
    """
    explain = partial(_explain, rules=tuple(rules), show=show, files=files)
    for path, text in run.sources.items():
        files.keep(path, text)
    if run.argv[:1] == ("-c",):
        files.keep("<string>", "".join(run.argv[1:2]))
    explanation = _of_parts(run, explain) if run.parts[0].manifest.rank else _of_program(run.parts[0], explain)
    unread = unread_sources((*explanation.breaks, *explanation.recompiles, *explanation.frames), files, show)
    return replace(explanation, notices=tuple(dict.fromkeys([*_notices(run), *explanation.notices, *unread])))


_Explain = Callable[[RecordingPart, Sequence[Process]], Explanation]


def _of_parts(run: RecordedRun, explain: _Explain) -> Explanation:
    """Each rank was run by a separate breakscan."""
    known = {part.manifest.rank: part for part in run.parts if part.manifest.rank}
    explanations = {rank.rank: explain(part, part.processes) for rank, part in known.items()}
    expected = {number for rank in known for number in rank.local_ranks}
    return ranks.merge(
        explanations,
        world_size=max(rank.world_size for rank in known),
        endings=_endings({rank.rank: part for rank, part in known.items()}, expected),
    )


def _of_program(part: RecordingPart, explain: _Explain) -> Explanation:
    """A program, that can have started ranks itself."""
    by_rank, world_size = ranks_of(part.processes)
    if len(by_rank) < 2:
        return explain(part, part.processes)
    explanations = {rank: explain(part, processes) for rank, processes in by_rank.items()}
    unknown = dict.fromkeys(by_rank, exit_ending(None))
    return ranks.merge(explanations, world_size=world_size, endings=unknown)


def _explain(
    part: RecordingPart,
    processes: Sequence[Process],
    rules: Sequence[Rule],
    show: Callable[[str], str],
    files: SourceFiles,
) -> Explanation:
    manifest = part.manifest
    outcome = None if manifest.status is None else ProgramExit(manifest.status, part.seconds)
    # Many processes only import the compiler.
    first = next((process for process in processes if isinstance(process[0], ProcessStarted)), None)
    explanation = explain_processes(
        [process for process in processes if process is first or compiled(process)],
        argv=manifest.argv,
        outcome=outcome,
        rules=rules,
        show=show,
        files=files,
        torch_imported=part.torch_imported,
    )
    counted = max(1, sum(map(compiled, processes)))
    return replace(explanation, seconds=part.seconds, processes=counted)


def ranks_of(processes: Sequence[Process]) -> tuple[dict[int, list[Process]], int]:
    """The processes by rank, and the number of ranks of their job.  What was started by a rank belongs to it, and what
    has none to the lowest."""
    of_process: dict[int, int] = {}
    found: list[tuple[int | None, Process]] = []
    world_size = 0
    for process in processes:
        rank = None
        for record in process:
            if isinstance(record, ProcessStarted | ProcessForked):
                rank = of_process.get(record.parent_pid)
            if isinstance(record, ProcessStarted | RankSeen) and record.rank is not None:
                rank = record.rank
                world_size = max(world_size, record.world_size or 0)
        if rank is not None and isinstance(process[0], ProcessStarted | ProcessForked):
            of_process[process[0].pid] = rank
        found.append((rank, process))
    lowest = min((rank for rank, _ in found if rank is not None), default=0)
    by_rank: dict[int, list[Process]] = {}
    for rank, process in found:
        by_rank.setdefault(lowest if rank is None else rank, []).append(process)
    return by_rank, world_size


def _endings(parts: Mapping[int, RecordingPart], expected: Iterable[int]) -> dict[int, RankEnding]:
    """The ending of each rank, and the first to end: where a job dies, the others are ended because of it."""
    ended = sorted((part.manifest.ended, rank) for rank, part in parts.items() if part.manifest.ended is not None)
    failed = any(part.manifest.status != 0 for part in parts.values())
    endings: dict[int, RankEnding] = {}
    for rank in sorted({*parts, *expected}):
        part = parts.get(rank)
        if part is None:
            endings[rank] = NO_RECORDING
        elif part.running:
            endings[rank] = RUNNING
        elif part.manifest.ended is None:
            endings[rank] = killed_ending(part.seconds)
        else:
            is_first = failed and len(ended) > 1 and ended[0][1] == rank
            seconds = part.seconds if failed else None
            endings[rank] = exit_ending(part.manifest.status, seconds, is_first)
    return endings


def _notices(run: RecordedRun) -> Iterable[Notice]:
    if run.earlier:
        times = "once" if len(run.earlier) == 1 else f"{len(run.earlier)} times"
        folders = ", ".join(map(str, run.earlier))
        text = f"the job was started again {times}; this is its last start. The earlier ones are in {folders}"
        yield Notice("restarted", text)
    for part in run.parts:
        if part.cut_by:
            missing = "not all was recorded, so anything may be missing"
            yield Notice("cut-off", f"{missing}: {part.folder} took no more ({part.cut_by})")
    part = run.parts[0]
    if part.manifest.rank is None and part.manifest.ended is None:
        yield notices.RUNNING if part.running else notices.KILLED


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
