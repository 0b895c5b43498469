"""Explains the logs that TORCH_TRACE writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from breakscan.explanation import ranks
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.from_processes import explain_processes
from breakscan.explanation.from_recording import Process, Relocation, ranks_of
from breakscan.explanation.notices import TRACE_ONLY, Notice, unread_sources, version_notice
from breakscan.explanation.rank_report import NO_LOG
from breakscan.model.words import InputError
from breakscan.recording.tracelog.lines import is_log
from breakscan.recording.tracelog.processes import NAME, TracedProcess, logs_in, read_trace
from breakscan.rulebook.document import Rule
from breakscan.source.paths import shown_path
from breakscan.source.source_files import SourceFiles


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
        return explain_processes(
            here,
            argv=(),
            outcome=None,
            rules=rules,
            show=show,
            torch_imported=True,
            files=files,
        )

    recordings, _ = ranks_of([process.recording() for process in trace.processes])
    by_rank = {rank: replace(explain(recording), notices=()) for rank, recording in recordings.items()}
    merged = _merged(by_rank)
    return replace(
        merged,
        trace=_name(paths, cwd),
        processes=len(trace.processes),
        notices=(
            *merged.notices,
            *version_notice(merged.torch),
            *_several_processes(trace.processes),
            *(Notice(f"log-{problem.fault.value}", problem.text) for problem in trace.problems),
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


def _merged(by_rank: Mapping[int, Explanation]) -> Explanation:
    if len(by_rank) == 1:
        return next(iter(by_rank.values()))
    world_size = max(by_rank) + 1
    # A log does not say how its process ended.
    missing = {rank: NO_LOG for rank in range(world_size) if rank not in by_rank}
    return ranks.merge(by_rank, world_size=world_size, endings=missing)


def _name(paths: Sequence[Path], cwd: Path) -> str:
    first = shown_path(str(paths[0]), str(cwd))
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"


def _several_processes(processes: Sequence[TracedProcess]) -> Iterator[Notice]:
    """Torch gives each process a new log: those of several runs can lie in one folder."""
    ranks = {process.rank for process in processes}
    if len(processes) > len(ranks):
        several = f" for {len(ranks)} ranks" if len(ranks) > 1 else ""
        text = f"{len(processes)} processes{several} left logs here, of one run or of several: all are counted in"
        yield Notice("several-logs", text)
