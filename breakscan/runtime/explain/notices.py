"""What the reader of a report must know of the recording itself: what it lacks, and what colours it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from breakscan.findings import Origin
from breakscan.runtime.explain.explanation import BreakSite, Explanation, Recompile, UncompiledFrame
from breakscan.runtime.recording import compiled
from breakscan.runtime.records.processes import HookFailed, HookInstalled, ProcessStarted
from breakscan.runtime.records.record import Record
from breakscan.source.source_files import LARGEST, NotRead, SourceFiles
from breakscan.torch_versions import is_too_new, is_too_old, is_version, supported_range

_WITHOUT = {
    "trace": "compile times are missing",
    "breaks": "breaks are read from its structured trace: without columns, and without those that the trace leaves out",
    "recompiles": "recompiles are read from its structured trace: without the new value of what changed",
    "frames": "functions that run eager are read from its structured trace: those that it skips silently are missing",
    "graphs": "graphs are read from its structured trace, and what breaks cost is missing",
    "runs": "what calls of compiled code cost is missing",
    "targets": "what torch.compile was called for is missing",
    "fullgraph": "--keep-going could not set fullgraph=True aside",
    "skips": "compiled functions that the compiler passes over in silence may be missing",
    "guards": "the lines that asked for guards are missing",
    "bytes": "what kernels read and write is missing",
    "cudagraphs": "why graphs do not run as CUDA graphs is missing",
}

_NOT_READ = {
    NotRead.OUTSIDE: (
        "outside the working directory: --source-root FOLDER allows to read the files below a folder, and "
        "--source-root OLD=NEW tells where the files of the run are"
    ),
    NotRead.GONE: "cannot be read here: --source-root OLD=NEW tells where the files of the run are",
    NotRead.CHANGED: (
        "changed since the run: check out the commit that ran, or --source-root OLD=NEW tells where its files are"
    ),
    NotRead.NOT_PYTHON: "not a Python file: only those are read",
    NotRead.NOT_REGULAR: "not a regular file: only those are read",
    NotRead.TOO_LARGE: f"larger than {LARGEST >> 20} MiB",
}


def notices(processes: Sequence[Sequence[Record]]) -> Iterator[str]:
    """In plain words, each once."""
    started = next((r for records in processes for r in records if isinstance(r, ProcessStarted)), None)
    if started:
        yield from version_notice(started.torch)
    if started and started.profile_kept:
        yield "TORCH_COMPILE_JOB_ID is set: torch remembers sizes of earlier runs, so a first run recompiles more often"
    for record in (r for records in processes for r in records):
        if isinstance(record, HookInstalled) and not record.available:
            version = f"torch {started.torch}" if started else "this torch"
            yield f"{version} lacks what breakscan hooks into for {record.name}: {_missing_without(record.name)}"
        elif isinstance(record, HookFailed):
            yield f"breakscan's hook for {record.name} failed, so {_missing_without(record.name)} ({record.error})"
    yield from _of_processes(processes)


def _missing_without(hook: str) -> str:
    """The recording can be that of another breakscan, with other hooks."""
    return _WITHOUT.get(hook, "something is missing")


def _of_processes(processes: Sequence[Sequence[Record]]) -> Iterator[str]:
    kinds = Counter(_kind(process) for process in processes if compiled(process))
    if (count := sum(kinds.values())) > 1:
        named = ", ".join(f"{number} × {kind}" if number > 1 else kind for kind, number in kinds.most_common())
        yield f"{count} processes compiled, each for itself, and are counted together: {named}"


def _kind(process: Sequence[Record]) -> str:
    first = process[0]
    if not isinstance(first, ProcessStarted):
        return "forked"
    return Path(first.argv[0]).name if first.argv and first.argv[0] else "python"


def version_notice(torch: str) -> Iterator[str]:
    """What to know where breakscan was not tried with this torch; nothing where the version is not known."""
    if torch and not is_version(torch):
        yield f"{torch!r:.80} is no version of torch: the recording is damaged, or of another program"
    elif torch and (is_too_old(torch) or is_too_new(torch)):
        age = "older" if is_too_old(torch) else "newer"
        known = supported_range()
        yield f"torch {torch} is {age} than those breakscan was tried with ({known}): something may be missing"


def unread_sources(explanation: Explanation, files: SourceFiles, show: Callable[[str], str]) -> Iterator[str]:
    """Which of the files that a report speaks of it cannot show, why, and what to do.  Torch's own do not count, nor
    does any in a run that breakscan has just made: there, nobody else chose them."""
    if files.is_trusted:
        return
    told: list[BreakSite | Recompile | UncompiledFrame] = [
        *explanation.breaks,
        *explanation.recompiles,
        *explanation.frames,
    ]
    shown = {thing.site.path for thing in told if thing.origin is not Origin.FRAMEWORK}
    unread = {show(path): reason for path, reason in files.not_read.items()}
    for reason, words in _NOT_READ.items():
        paths = sorted(path for path in shown if unread.get(path) is reason and not path.startswith("<"))
        if paths:
            others = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            yield f"source not read: {paths[0]}{others} ({words})"
