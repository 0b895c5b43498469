"""Explains a recording of any number of processes and ranks, and logs of TORCH_TRACE, with this machine's folders."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from breakscan.explanation import notices
from breakscan.explanation.explanation import NO_LOG, NO_RECORDING, RUNNING, Explanation, RankEnding, exit_ending, merge
from breakscan.explanation.from_processes import explain_processes
from breakscan.explanation.notices import TRACE_ONLY, Notice, unread_sources, version_notice
from breakscan.model.words import InputError, first_few, grouped
from breakscan.recording.launch import ProgramExit
from breakscan.recording.recording import compiled
from breakscan.recording.records import Code, ProcessForked, ProcessStarted, RankSeen, Record, StackFrame, mapped
from breakscan.recording.session import RecordedRun, RecordingPart
from breakscan.recording.tracelog import NAME, is_log, logs_in, read_trace
from breakscan.rulebook.document import Rule
from breakscan.source.paths import shown_path
from breakscan.source.source_files import SourceFiles

Process = Sequence[Record]


def explain_run(
    run: RecordedRun, *, rules: Iterable[Rule], show: Callable[[str], str], files: SourceFiles
) -> Explanation:
    """Explains a recording; of several ranks, what they have in common and how they differ.  ``show`` turns a recorded
    path into the one that reports show.  The kept sources are added to ``files``, which decides what else is read."""
    explain = partial(explain_processes, rules=tuple(rules), show=show, files=files)
    for path, text in run.sources.items():
        files.keep(path, text)
    if run.argv[:1] == ("-c",):
        files.keep("<string>", "".join(run.argv[1:2]))
    explanation = _of_parts(run, explain) if run.parts[0].manifest.rank else _of_program(run.parts[0], explain)
    unread = unread_sources((*explanation.breaks, *explanation.recompiles, *explanation.frames), files, show)
    return replace(explanation, notices=tuple(dict.fromkeys([*_notices(run), *explanation.notices, *unread])))


def _of_parts(run: RecordedRun, explain: Callable[..., Explanation]) -> Explanation:
    """Each rank was run by a separate breakscan."""
    known = {part.manifest.rank: part for part in run.parts if part.manifest.rank}
    explanations = {rank.rank: _explain(part, part.processes, explain) for rank, part in known.items()}
    expected = {number for rank in known for number in rank.local_ranks}
    endings = _endings({rank.rank: part for rank, part in known.items()}, expected)
    return merge(explanations, max(rank.world_size for rank in known), endings)


def _of_program(part: RecordingPart, explain: Callable[..., Explanation]) -> Explanation:
    """A program, that can have started ranks itself."""
    by_rank, world_size = ranks_of(part.processes)
    if len(by_rank) < 2:
        return _explain(part, part.processes, explain)
    explanations = {rank: _explain(part, processes, explain) for rank, processes in by_rank.items()}
    return merge(explanations, world_size, dict.fromkeys(by_rank, exit_ending(None)))


def _explain(part: RecordingPart, processes: Sequence[Process], explain: Callable[..., Explanation]) -> Explanation:
    argv, status = part.manifest.argv, part.manifest.status
    outcome = None if status is None else ProgramExit(status, part.seconds)
    # Many processes only import the compiler.
    first = next((process for process in processes if isinstance(process[0], ProcessStarted)), None)
    worked = [process for process in processes if process is first or compiled(process)]
    explanation = explain(worked, argv=argv, outcome=outcome, torch_imported=part.torch_imported)
    return replace(explanation, seconds=part.seconds, processes=max(1, sum(map(compiled, processes))))


def ranks_of(processes: Sequence[Process]) -> tuple[dict[int, list[Process]], int]:
    """The processes by rank, and the number of ranks of their job.  What a rank started is its own."""
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
    return grouped((lowest if rank is None else rank, process) for rank, process in found), world_size


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
            endings[rank] = RankEnding(f"was killed together with breakscan, after {part.seconds:.1f} s")
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
    """Old folders with new ones: the longest that a path lies below counts.  Those and ``allowed`` may be read."""

    roots: Mapping[str, str]
    allowed: Sequence[str] = ()

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that the user named."""
        return (*self.roots.values(), *self.allowed)

    def path(self, path: str) -> str:
        plain = path.replace("\\", "/")
        for old in sorted(self.roots, key=len, reverse=True):
            folder = old.replace("\\", "/").rstrip("/")
            if plain.startswith(f"{folder}/"):
                return self.roots[old].rstrip("/") + plain[len(folder) :]
        return path

    def record(self, record: Record) -> Record:
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


class TraceError(InputError):
    """There is no trace to read.  Says why, and what to do."""


def explain_logs(
    paths: Sequence[Path], rules: Iterable[Rule], relocation: Relocation, cwd: Path, files: SourceFiles
) -> Explanation:
    """The explanation of logs, and of the logs in folders.  ``files`` decides which sources are read; it gets the
    lines that the logs have of them.  Raises TraceError where there is no log, and OSError where one cannot be read."""
    rules = tuple(rules)
    logs = [log for path in paths for log in _logs(path)]
    trace = read_trace(logs)
    if not trace.processes:
        raise TraceError(
            f"{', '.join(path.name for path in logs)}: empty, as nothing was compiled while TORCH_TRACE was set"
        )
    for process in trace.processes:
        files.know({(relocation.path(path), line): text for (path, line), text in process.texts.items()})

    def show(path: str) -> str:
        return shown_path(path, str(cwd))

    def explain(recording: Sequence[Process]) -> Explanation:
        here = [[relocation.record(record) for record in process] for process in recording]
        return explain_processes(here, rules=rules, show=show, files=files)

    recordings, _ = ranks_of([process.recording() for process in trace.processes])
    by_rank = {rank: replace(explain(recording), notices=()) for rank, recording in recordings.items()}
    # Torch gives each process a new log: those of several runs can lie in one folder.
    count, by_process = len(trace.processes), {process.rank for process in trace.processes}
    several = f" for {len(by_process)} ranks" if len(by_process) > 1 else ""
    text = f"{count} processes{several} left logs here, of one run or of several: all are counted in"
    # A log does not say how its process ended.
    missing = {rank: NO_LOG for rank in range(max(by_rank)) if rank not in by_rank}
    is_one = len(by_rank) == 1
    merged = next(iter(by_rank.values())) if is_one else merge(by_rank, max(by_rank) + 1, missing)
    return replace(
        merged,
        trace=first_few([show(str(path)) for path in paths], 1),
        processes=count,
        notices=(
            *merged.notices,
            *version_notice(merged.torch),
            *([Notice("several-logs", text)] if count > len(by_process) else []),
            *(Notice(f"log-{fault.value}", text) for fault, text in trace.problems),
            *unread_sources((*merged.breaks, *merged.recompiles, *merged.frames), files, show),
            TRACE_ONLY,
        ),
    )


def _logs(path: Path) -> list[Path]:
    if path.is_dir():
        logs = logs_in(path)
        if not logs:
            raise TraceError(
                f"{path} holds no log of torch's trace ({NAME}*.log, as TORCH_TRACE={path} makes it), and no recording "
                "that breakscan explain --save kept"
            )
        return logs
    if path.stat().st_size and not is_log(path):
        raise TraceError(f"{path} is no log of torch's trace: TORCH_TRACE=FOLDER makes one when something is compiled")
    return [path]
