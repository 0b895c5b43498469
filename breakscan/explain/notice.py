"""What the reader of a report must know of the recording itself, as values: ``reports/explain/notice_words.py`` words
them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from breakscan.model.findings import Site
from breakscan.record.tracelog.read import LogProblem
from breakscan.source.source_files import NotRead


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
    """Torch, of the version ``text``, lacks what the hook ``name`` needs."""
    HOOK_FAILED = "hook-failed"
    """The hook ``name`` raised ``text``."""
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
