"""What the reader of a report must know of the recording itself: what it lacks, and what colours it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from breakscan.explanation.breaks import BreakSite, BreakSites
from breakscan.explanation.context import ExplainContext
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.frames import UncompiledFrame
from breakscan.explanation.notice import Notice, NoticeKind, SourcesUnread
from breakscan.explanation.recompiles import Recompile
from breakscan.model.findings import Origin, Site
from breakscan.model.torch_versions import is_too_new, is_too_old, is_version
from breakscan.recording.recording import compiled
from breakscan.recording.records import (
    BreakSeen,
    CompileAsked,
    CompileMet,
    CompileStarted,
    FrameEnded,
    HookFailed,
    HookInstalled,
    HookLost,
    ProcessStarted,
    Record,
)
from breakscan.recording.requests_file import MAIN
from breakscan.source.source_files import NotRead, SourceFiles


def notices(processes: Sequence[Sequence[Record]]) -> Iterator[Notice]:
    """The notices of a recording."""
    started = next((r for records in processes for r in records if isinstance(r, ProcessStarted)), None)
    if started:
        yield from version_notice(started.torch)
    if started and started.profile_kept:
        yield Notice(NoticeKind.PROFILE_KEPT)
    lost = {r.name: r.without for records in processes for r in records if isinstance(r, HookLost)}
    for record in (r for records in processes for r in records):
        if isinstance(record, HookInstalled | HookFailed):
            without = (lost.get(record.name, "something is missing"),)
            if isinstance(record, HookFailed):
                yield Notice(NoticeKind.HOOK_FAILED, record.name, record.error, without)
            elif not record.available:
                yield Notice(NoticeKind.HOOK_MISSING, record.name, started.torch if started else "", without)
    names = tuple(_name(process) for process in processes if compiled(process))
    if len(names) > 1:
        yield Notice(NoticeKind.PROCESSES, names=names)


def _name(process: Sequence[Record]) -> str:
    """The name of a process's program; empty for a forked one."""
    first = process[0]
    if not isinstance(first, ProcessStarted):
        return ""
    return Path(first.argv[0]).name if first.argv and first.argv[0] else "python"


def version_notice(torch: str) -> Iterator[Notice]:
    """What to know where breakscan was not tried with this torch; nothing where the version is not known."""
    if torch and not is_version(torch):
        yield Notice(NoticeKind.NO_VERSION, text=torch)
    elif torch and is_too_old(torch):
        yield Notice(NoticeKind.OLD_TORCH, text=torch)
    elif torch and is_too_new(torch):
        yield Notice(NoticeKind.NEW_TORCH, text=torch)


def unread_sources(explanation: Explanation, files: SourceFiles, show: Callable[[str], str]) -> Iterator[SourcesUnread]:
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
    for reason in NotRead:
        paths = sorted(path for path in shown if unread.get(path) is reason and not path.startswith("<"))
        if paths:
            yield SourcesUnread(reason, tuple(paths))


def set_aside_notice(
    records: Iterable[Record], keys: BreakSites, started: Mapping[str, CompileStarted], context: ExplainContext
) -> Iterator[Notice]:
    """One notice, where something would have raised."""
    first = next((r for r in records if isinstance(r, BreakSeen | FrameEnded) and r.set_aside), None)
    if first is None:
        return
    site = keys.key(first)[0] if isinstance(first, BreakSeen) else context.site_of(first.frame)
    begun = started.get(first.compile_id or "") if isinstance(first, BreakSeen) else None
    callers = context.callers(begun.stack) if begun else ()
    called = [Site(caller.path, caller.line, 1, caller.line, 1) for caller in callers[-1:]]
    yield Notice(NoticeKind.SET_ASIDE, sites=(site, *called))


def unmet_requests(asked: Iterable[str], records: Iterable[Record]) -> Iterator[Notice]:
    """Why each ``--compile`` that compiled nothing did not."""
    met: dict[str, CompileMet] = {}
    for record in records:
        if isinstance(record, CompileMet) and (record.target not in met or record.problem is None):
            met[record.target] = record
    for text in dict.fromkeys(asked):
        answer = met.get(text)
        if answer is None:
            module = text.partition(":")[0]
            of_script = module in ("", MAIN)
            yield Notice(NoticeKind.NEVER_BOUND if of_script else NoticeKind.NEVER_IMPORTED, text, module)
        elif answer.problem is not None:
            nearest = get_close_matches(text.partition(":")[2], answer.names, 1)
            yield Notice(NoticeKind.NOT_COMPILED, text, answer.problem, tuple(nearest))


def asked_of(records: Iterable[Record]) -> list[str]:
    """The texts of the ``--compile`` that a recording was made with."""
    return [record.target for record in records if isinstance(record, CompileAsked)]
