"""Ranks in words: which they are, how they ended, and what they did not do alike."""

from __future__ import annotations

import pytest

from breakscan.explanation.frames import FrameStatus
from breakscan.explanation.rank_report import (
    EndingKind,
    Fallback,
    FunctionOrder,
    GraphsMade,
    RankDifference,
    RankEnding,
    RankShare,
    RankTopic,
    RunsBefore,
    Times,
    alike,
    difference_words,
    ending_words,
    ranks_in_words,
    share_words,
)
from breakscan.model.findings import Site
from breakscan.recording.parsers.frames import Skip

SITE = Site("/x/lib/python3.12/site-packages/nets/block.py", 41, 1, 41, 9)
TOPICS = [
    (RankDifference(RankTopic.BREAKS, SITE, {}, "BRK401 print"), "graph breaks at nets/block.py:41 (BRK401 print)"),
    (RankDifference(RankTopic.FALLBACK, SITE, {}, "f"), "f at nets/block.py:41"),
    (RankDifference(RankTopic.RECOMPILES, SITE, {}, "f"), "recompiles of f at nets/block.py:41"),
    (
        RankDifference(RankTopic.RECOMPILES, SITE, {}, None, "x.shape[0]"),
        "recompiles of a function at nets/block.py:41, because of x.shape[0]",
    ),
    (RankDifference(RankTopic.STEPS, SITE, {}, "f"), "when f at nets/block.py:41 is recompiled"),
    (RankDifference(RankTopic.EXPORTS, SITE, {}, "f"), "what ends exports at nets/block.py:41 (f)"),
    (RankDifference(RankTopic.ORDER, None, {}), "the order of recompiles"),
    (RankDifference(RankTopic.ALL_GRAPHS, None, {}), "what was compiled in all"),
    (RankDifference(RankTopic.GRAPHS, None, {}), "graphs of a function"),
]
SHARES: dict[RankShare, str] = {
    Times(0): "never",
    Times(1, ("3", "4")): "once: 3, then 4",
    Times(5, tuple("123456")): "5 times: 1, then 2, then 3, then 4",
    Fallback(): "no fallback to eager",
    Fallback(FrameStatus.EAGER, Skip.NO_TENSOR): "runs eager: it was called without a tensor",
    RunsBefore((4,)): "after 4 runs of graphs",
    RunsBefore((1, 2, 3, 4, 5, 6)): "after 1, 2, 3, 4 and 2 more runs of graphs",
    FunctionOrder(("f", None)): "f and a function",
    FunctionOrder(()): "none",
    GraphsMade(0, ()): "no graph",
    GraphsMade(1, (3,)): "1 graph of 3 operations",
    GraphsMade(2, (3, 2)): "2 graphs of 3 and 2 operations",
}
ENDINGS = {
    RankEnding(EndingKind.ENDED): "ended in a way that was not recorded",
    RankEnding(EndingKind.ENDED, 0): "finished with exit status 0",
    RankEnding(EndingKind.ENDED, -15, 2.04): "was ended by SIGTERM after 2.0 s",
    RankEnding(EndingKind.ENDED, 1, 3.0, True): "finished with exit status 1 after 3.0 s, the first to end",
    RankEnding(EndingKind.KILLED_WITH_US, seconds=1.0): "was killed together with breakscan, after 1.0 s",
    RankEnding(EndingKind.RUNNING): "is still running",
    RankEnding(EndingKind.NO_RECORDING): "left no recording",
    RankEnding(EndingKind.NO_LOG): "left no log",
}


def test_what_the_ranks_differ_in() -> None:
    assert [difference_words(one) for one, _ in TOPICS] == [words for _, words in TOPICS]
    assert {one.topic for one, _ in TOPICS} == set(RankTopic)


def test_how_a_rank_ended() -> None:
    assert [ending_words(one) for one in ENDINGS] == list(ENDINGS.values())
    assert {one.kind for one in ENDINGS} == set(EndingKind)


@pytest.mark.parametrize(("share", "words"), SHARES.items(), ids=SHARES.values())
def test_what_one_rank_did(share: RankShare, words: str) -> None:
    assert share_words(share) == words


def test_ranks_are_named_in_few_words() -> None:
    assert ranks_in_words([3]) == "rank 3"
    assert ranks_in_words([5, 0, 1, 2]) == "ranks 0-2 and 5"
    difference = RankDifference(RankTopic.BREAKS, SITE, {0: Times(1), 1: Times(0), 2: Times(0)}, "f")
    assert alike(difference) == [("ranks 1-2", "never"), ("rank 0", "once")]
