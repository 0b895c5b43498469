"""Notices in words."""

from __future__ import annotations

import pytest

from breakscan.explanation.notice import AnyNotice, Notice, NoticeKind, SourcesUnread, notice_words
from breakscan.model.findings import Site
from breakscan.recording.tracelog.lines import Fault
from breakscan.recording.tracelog.read import LogProblem
from breakscan.source.source_files import NotRead

SITE = Site("train.py", 4, 2, 4, 9)
ONE_OF_EACH = (
    Notice(NoticeKind.NO_VERSION, text="two"),
    Notice(NoticeKind.OLD_TORCH, text="2.5"),
    Notice(NoticeKind.NEW_TORCH, text="3.0"),
    Notice(NoticeKind.PROFILE_KEPT),
    Notice(NoticeKind.HOOK_MISSING, "breaks", "2.13", ("breaks have no columns",)),
    Notice(NoticeKind.HOOK_FAILED, "breaks", "KeyError: 'gone'", ("breaks have no columns",)),
    Notice(NoticeKind.PROCESSES, names=("train.py", "", "train.py")),
    Notice(NoticeKind.NEVER_IMPORTED, "nets:f", "nets"),
    Notice(NoticeKind.NEVER_BOUND, ":f"),
    Notice(NoticeKind.NOT_COMPILED, "nets:g", "nets.py defines no g.", ("gg",)),
    Notice(NoticeKind.SET_ASIDE, sites=(SITE, SITE)),
    Notice(NoticeKind.RESTARTED, names=("a", "b")),
    Notice(NoticeKind.CUT_OFF, "a", "disk full"),
    Notice(NoticeKind.RUNNING),
    Notice(NoticeKind.KILLED_WITH_US),
    Notice(NoticeKind.TRACE_ONLY),
    Notice(NoticeKind.FORKED_LOGS, numbers=(2,)),
    Notice(NoticeKind.SEVERAL_LOGS, numbers=(3, 2)),
)
WORDS: dict[AnyNotice, str] = {
    Notice(NoticeKind.HOOK_MISSING, "memory", names=("its peak is missing",)): (
        "this torch lacks what breakscan hooks into for memory: its peak is missing"
    ),
    ONE_OF_EACH[6]: "3 processes compiled, each for itself, and are counted together: 2 × train.py, forked",
    ONE_OF_EACH[7]: "--compile nets:f compiled nothing: the program never imported nets",
    ONE_OF_EACH[9]: "--compile nets:g compiled nothing: nets.py defines no g; nearest: gg",
    ONE_OF_EACH[10]: (
        "fullgraph=True was set aside (--keep-going): without that, torch.compile raises first at train.py:4:2, "
        "called from train.py:4"
    ),
    SourcesUnread(NotRead.TOO_LARGE, ("a.py", "b.py")): "source not read: a.py and 1 more (larger than 16 MiB)",
    LogProblem("log0", Fault.FOREIGN, (2, 3)): "log0: 2 lines are no records (lines 2, 3), left out",
    LogProblem("log0", Fault.DAMAGED, (1, 2, 3, 4)): "log0: 4 records are damaged (lines 1, 2, 3, …), left out",
}


@pytest.mark.parametrize(("notice", "words"), WORDS.items(), ids=WORDS.values())
def test_a_notice(notice: AnyNotice, words: str) -> None:
    assert notice_words(notice) == words


def test_each_kind_has_words_of_its_own() -> None:
    assert {notice.kind for notice in ONE_OF_EACH} == set(NoticeKind)
    every = [*ONE_OF_EACH, *(LogProblem("log0", fault, (1,)) for fault in Fault)]
    every += [SourcesUnread(reason, ("a.py",)) for reason in NotRead]
    assert len(set(map(notice_words, every))) == len(every)
