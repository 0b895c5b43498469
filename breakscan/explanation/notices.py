"""Notices: what the reader of a report must know of the recording itself."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from breakscan.explanation.breaks import BreakSite, BreakSites
from breakscan.explanation.context import ExplainContext
from breakscan.explanation.frames import UncompiledFrame
from breakscan.explanation.recompiles import Recompile
from breakscan.model.findings import Origin
from breakscan.model.torch_versions import is_too_new, is_too_old, is_version, supported_range
from breakscan.model.words import first_few
from breakscan.recording.bootstrap.eager_compile import MAIN
from breakscan.recording.records import (
    BreakSeen,
    CompileCalled,
    CompileMet,
    CompileStarted,
    FrameEnded,
    HookFailed,
    HookInstalled,
    ProcessStarted,
    Record,
    StepsProfiled,
)
from breakscan.source.source_files import LARGEST, NotRead, SourceFiles


@dataclass(frozen=True, slots=True)
class Notice:
    """``text`` is a sentence without its full stop."""

    id: str
    text: str


RUNNING = Notice("running", "the program is still running: this is what was recorded until now")
KILLED = Notice(
    "killed", "breakscan itself was killed: how the program ended is not known, and this was recorded until then"
)
TRACE_ONLY = Notice(
    "trace-only",
    "a torch trace says nothing of generators and of functions that the compiler passed over, of columns, of the last "
    "value that a guard met, of how often graphs ran and of what breaks cost, and leaves out some calls: breakscan "
    "explain reports all of it",
)
_NOT_READ = {
    NotRead.OUTSIDE: (
        "outside the working directory: --source-root FOLDER allows to read the files below a folder, and "
        "--source-root OLD=NEW says where the files of the run are"
    ),
    NotRead.GONE: "cannot be read here: --source-root OLD=NEW says where the files of the run are",
    NotRead.CHANGED: (
        "changed since the run: check out the commit that ran, or --source-root OLD=NEW says where its files are"
    ),
    NotRead.NOT_PYTHON: "not a Python file: only those are read",
    NotRead.NOT_REGULAR: "not a regular file: only those are read",
    NotRead.TOO_LARGE: f"larger than {LARGEST >> 20} MiB",
}


def notices(processes: Sequence[Sequence[Record]]) -> Iterator[Notice]:
    records = [record for process in processes for record in process]
    started = next((record for record in records if isinstance(record, ProcessStarted)), None)
    if started:
        yield from version_notice(started.torch)
    if started and started.profile_kept:
        kept = (
            "TORCH_COMPILE_JOB_ID is set: torch remembers sizes of earlier runs, so a first run recompiles more often"
        )
        yield Notice("profile-kept", kept)
    for record in records:
        if isinstance(record, HookFailed):
            text = f"breakscan's hook for {record.name} failed, so {record.without} ({record.error})"
            yield Notice("hook-failed", text)
        elif isinstance(record, HookInstalled) and not record.available:
            if record.name == "skips" and not _is_untried(records):
                continue  # before torch 2.13, it is always missing
            version = f"torch {started.torch}" if started and started.torch else "this torch"
            lacks = f"{version} lacks what breakscan hooks into for {record.name}"
            yield Notice("hook-missing", f"{lacks}: {record.without}")


def _is_untried(records: Sequence[Record]) -> bool:
    """Return whether something was to be compiled on which Dynamo was never seen to start."""
    tried = {record.code for record in records if isinstance(record, CompileStarted)}
    tried |= {record.frame for record in records if isinstance(record, FrameEnded)}
    return any(record.code not in tried for record in records if isinstance(record, CompileCalled))


def version_notice(torch: str) -> Iterator[Notice]:
    """A notice if breakscan was not tried with this torch; none if the version is not known."""
    if torch and not is_version(torch):
        text = f"{torch!r:.80} is no version of torch: the recording is damaged, or of another program"
        yield Notice("no-version", text)
    elif torch and (is_too_old(torch) or is_too_new(torch)):
        age, known = "older" if is_too_old(torch) else "newer", supported_range()
        text = f"torch {torch} is {age} than those breakscan was tried with ({known}): something may be missing"
        yield Notice(f"{age}-torch", text)


def unread_sources(
    things: Iterable[BreakSite | Recompile | UncompiledFrame], files: SourceFiles, show: Callable[[str], str]
) -> Iterator[Notice]:
    """Notices of the files that a report names and cannot show, with the reason and what to do.  Torch's own do not
    count, nor does any in a run that breakscan has just made: there, nobody else chose them."""
    if files.is_trusted:
        return
    shown = {thing.site.path for thing in things if thing.origin is not Origin.FRAMEWORK}
    unread = {show(path): reason for path, reason in files.not_read.items()}
    for reason in NotRead:
        paths = sorted(path for path in shown if unread.get(path) is reason and not path.startswith("<"))
        if paths:
            yield Notice("source-not-read", f"source not read: {first_few(paths, 1)} ({_NOT_READ[reason]})")


def set_aside_notice(keys: BreakSites, context: ExplainContext) -> Iterator[Notice]:
    """One notice, where something would have raised."""
    ended = (r for records in context.processes for r in records if isinstance(r, BreakSeen | FrameEnded))
    first = next((record for record in ended if record.set_aside), None)
    if first is None:
        return
    site = keys.key(first)[0] if isinstance(first, BreakSeen) else context.site_of(first.frame)
    begun = context.started.get(first.compile_id or "") if isinstance(first, BreakSeen) else None
    caller = context.nearest(begun.stack) if begun else None
    called = f", called from {caller.path}:{caller.line}" if caller else ""
    yield Notice(
        "set-aside",
        "fullgraph=True was set aside (--keep-going): without that, torch.compile raises first at "
        f"{site.path}:{site.line}:{site.column}{called}",
    )


def unmet_requests(asked: Iterable[str], records: Iterable[Record]) -> Iterator[Notice]:
    """A notice for each ``--compile`` that compiled nothing, with the reason."""
    met: dict[str, CompileMet] = {}
    for record in records:
        if isinstance(record, CompileMet) and (record.target not in met or record.problem is None):
            met[record.target] = record
    for text in dict.fromkeys(asked):
        answer = met.get(text)
        if answer is None:
            module = text.partition(":")[0]
            of_script = module in ("", MAIN)
            why = "the script never bound it" if of_script else f"the program never imported {module}"
            yield Notice("never-bound" if of_script else "never-imported", f"--compile {text} compiled nothing: {why}")
        elif answer.problem is not None:
            named = get_close_matches(text.partition(":")[2], answer.names, 1)
            why = f"{answer.problem.rstrip('.')}{''.join(f'; nearest: {one}' for one in named)}"
            yield Notice("not-compiled", f"--compile {text} compiled nothing: {why}")


def profile_notices(context: ExplainContext) -> Iterator[Notice]:
    """A notice where a profile was asked for, and there is none."""
    asked = any(hook.name == "profile" and hook.available for hook in context.of(HookInstalled))
    if asked and not context.of(StepsProfiled):
        yield Notice(
            "no-profile",
            "no steps were profiled: nothing compiled was called eight times more in one thread after it was compiled, "
            "or the program runs a profiler itself",
        )
