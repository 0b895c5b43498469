"""What the reader of a report must know of the recording itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from breakscan.model.findings import Site
from breakscan.model.torch_versions import supported_range
from breakscan.model.words import counted
from breakscan.recording.tracelog.lines import Fault
from breakscan.recording.tracelog.read import LogProblem
from breakscan.source.source_files import LARGEST, NotRead


class NoticeKind(Enum):
    """``name``, ``text``, ``names``, ``numbers`` and ``sites`` are those of the notice."""

    NO_VERSION = "no-version"
    """``text`` is recorded as the version of torch, and is none."""
    OLD_TORCH = "old-torch"
    """``text`` is an older version than the supported ones."""
    NEW_TORCH = "new-torch"
    PROFILE_KEPT = "profile-kept"
    """Torch remembers the sizes of earlier runs."""
    HOOK_MISSING = "hook-missing"
    """Torch, of the version ``text``, lacks what the hook ``name`` needs; ``names`` say what is missing without it."""
    HOOK_FAILED = "hook-failed"
    """The hook ``name`` raised ``text``; ``names`` say what is missing without it."""
    PROCESSES = "processes"
    """Several processes compiled: ``names`` are those of their programs, or empty for forked ones."""
    NEVER_IMPORTED = "never-imported"
    """The program never imported the module ``text``, which ``--compile name`` names."""
    NEVER_BOUND = "never-bound"
    """The script never bound what ``--compile name`` names."""
    NOT_COMPILED = "not-compiled"
    """Why ``--compile name`` compiled nothing is ``text``; the nearest of ``names`` may be meant."""
    SET_ASIDE = "set-aside"
    """Without ``--keep-going``, torch would raise at the first of ``sites``, called from the second."""
    RESTARTED = "restarted"
    """The job was started again; ``names`` are the folders of the earlier starts."""
    CUT_OFF = "cut-off"
    """The folder ``name`` took no more records, for the error ``text``."""
    RUNNING = "running"
    KILLED_WITH_US = "killed-with-us"
    TRACE_ONLY = "trace-only"
    """Torch's trace does not tell all that a recording does."""
    FORKED_LOGS = "forked-logs"
    """The first of ``numbers`` processes were forked and left logs."""
    SEVERAL_LOGS = "several-logs"
    """``numbers`` of processes left logs, for so many ranks."""


@dataclass(frozen=True, slots=True)
class Notice:
    kind: NoticeKind
    name: str = ""
    text: str = ""
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class SourcesUnread:
    """Files that the report speaks of and cannot show, and why."""

    reason: NotRead
    paths: tuple[str, ...]


AnyNotice = Notice | SourcesUnread | LogProblem
_MOST_LINES = 3
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


def notice_words(notice: AnyNotice) -> str:
    """The notice as a sentence without its full stop."""
    if isinstance(notice, SourcesUnread):
        others = f" and {len(notice.paths) - 1} more" if len(notice.paths) > 1 else ""
        return f"source not read: {notice.paths[0]}{others} ({_NOT_READ[notice.reason]})"
    if isinstance(notice, LogProblem):
        return _of_log(notice)
    name, text = notice.name, notice.text
    match notice.kind:
        case NoticeKind.NO_VERSION:
            return f"{text!r:.80} is no version of torch: the recording is damaged, or of another program"
        case NoticeKind.OLD_TORCH | NoticeKind.NEW_TORCH:
            age = "older" if notice.kind is NoticeKind.OLD_TORCH else "newer"
            known = supported_range()
            return f"torch {text} is {age} than those breakscan was tried with ({known}): something may be missing"
        case NoticeKind.PROFILE_KEPT:
            return (
                "TORCH_COMPILE_JOB_ID is set: torch remembers sizes of earlier runs, so a first run recompiles more "
                "often"
            )
        case NoticeKind.HOOK_MISSING:
            version = f"torch {text}" if text else "this torch"
            return f"{version} lacks what breakscan hooks into for {name}: {notice.names[0]}"
        case NoticeKind.HOOK_FAILED:
            return f"breakscan's hook for {name} failed, so {notice.names[0]} ({text})"
        case NoticeKind.NEVER_IMPORTED:
            return f"--compile {name} compiled nothing: the program never imported {text}"
        case NoticeKind.NEVER_BOUND:
            return f"--compile {name} compiled nothing: the script never bound it"
        case NoticeKind.NOT_COMPILED:
            nearest = "".join(f"; nearest: {one}" for one in notice.names)
            return f"--compile {name} compiled nothing: {text.rstrip('.')}{nearest}"
        case NoticeKind.SET_ASIDE:
            site, *callers = notice.sites
            called = "".join(f", called from {caller.path}:{caller.line}" for caller in callers)
            return (
                "fullgraph=True was set aside (--keep-going): without that, torch.compile raises first at "
                f"{site.path}:{site.line}:{site.column}{called}"
            )
        case _:
            return _of_processes(notice)


def _of_processes(notice: Notice) -> str:
    """A notice of how the processes and logs of the run ended and belong together."""
    match notice.kind:
        case NoticeKind.PROCESSES:
            kinds = Counter(name or "forked" for name in notice.names).most_common()
            named = ", ".join(f"{number} × {kind}" if number > 1 else kind for kind, number in kinds)
            return f"{len(notice.names)} processes compiled, each for itself, and are counted together: {named}"
        case NoticeKind.RESTARTED:
            times = "once" if len(notice.names) == 1 else f"{len(notice.names)} times"
            shown = ", ".join(notice.names)
            return f"the job was started again {times}; this is its last start. The earlier ones are in {shown}"
        case NoticeKind.CUT_OFF:
            return f"not all was recorded, so anything may be missing: {notice.name} took no more ({notice.text})"
        case NoticeKind.RUNNING:
            return "the program is still running: this is what was recorded until now"
        case NoticeKind.KILLED_WITH_US:
            return "breakscan itself was killed: how the program ended is not known, and this was recorded until then"
        case NoticeKind.FORKED_LOGS:
            return f"forked processes compiled too, and are counted in: {notice.numbers[0]}"
        case NoticeKind.SEVERAL_LOGS:
            processes, ranks = notice.numbers
            several = f" for {ranks} ranks" if ranks > 1 else ""
            return (
                f"{processes} processes{several} left logs here, of one run or of several that wrote to the same "
                "folder: all are counted in"
            )
        case _:
            return (
                "a torch trace says nothing of generators and of functions that the compiler passed over, of columns, "
                "of the last value that a guard met, of how often graphs ran and of what breaks cost, and leaves out "
                "some calls: breakscan explain tells all that"
            )


def _of_log(problem: LogProblem) -> str:
    log, lines = problem.log, problem.lines
    match problem.fault:
        case Fault.EMPTY:
            return f"{log} is empty"
        case Fault.NO_RECORD:
            return f"{log} holds no record of the trace"
        case Fault.FOREIGN:
            return f"{log}: {_counted(lines, 'line is no record', 'lines are no records')}, left out"
        case Fault.DAMAGED:
            return f"{log}: {_counted(lines, 'record is damaged', 'records are damaged')}, left out"
        case Fault.CHECKSUM:
            differ = _counted(lines, "payload differs from its checksum", "payloads differ from their checksums")
            return f"{log}: {differ}, read as far as possible"
        case Fault.CUT_OFF:
            return f"{log} ends within the record at line {lines[0]}: the process was ended as it wrote, or still runs"
        case Fault.NAMELESS:
            return (
                f"{log} names {problem.files} files by numbers that another log explains, of the process that this "
                "one was forked off"
            )


def _counted(lines: Sequence[int], one: str, many: str) -> str:
    """``1 record is damaged (line 7)``."""
    shown = ", ".join(map(str, lines[:_MOST_LINES])) + (", …" if len(lines) > _MOST_LINES else "")
    return f"{counted(len(lines), one, many)} (line{'' if len(lines) == 1 else 's'} {shown})"
