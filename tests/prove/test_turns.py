"""Nothing works on any device while steps are timed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from breakscan.prove.lanes import TimingTurns

WAIT = 20.0


class Doing:
    """Runs something in a turn until it is told to end."""

    def __init__(self, pool: ThreadPoolExecutor, turn: Callable[[], object]) -> None:
        self.began = threading.Event()
        self._end = threading.Event()
        self._done: Future[None] = pool.submit(self._run, turn)

    def _run(self, turn: Callable[[], object]) -> None:
        with turn():  # type: ignore[attr-defined]
            self.began.set()
            assert self._end.wait(WAIT)

    def end(self) -> None:
        self._end.set()
        self._done.result(WAIT)


@pytest.mark.parametrize("kind", ["working", "timing"])
def test_the_same_is_done_at_the_same_time(kind: str) -> None:
    turns = TimingTurns()
    with ThreadPoolExecutor(2) as pool:
        both = [Doing(pool, getattr(turns, kind)) for _ in range(2)]
        assert all(one.began.wait(WAIT) for one in both)
        for one in both:
            one.end()


@pytest.mark.parametrize(("first", "second"), [("working", "timing"), ("timing", "working")])
def test_one_waits_for_the_other(first: str, second: str) -> None:
    turns = TimingTurns()
    with ThreadPoolExecutor(2) as pool:
        one = Doing(pool, getattr(turns, first))
        assert one.began.wait(WAIT)
        other = Doing(pool, getattr(turns, second))
        assert not other.began.wait(0.1)
        one.end()
        assert other.began.wait(WAIT)
        other.end()


def test_who_waits_to_time_goes_before_new_work() -> None:
    turns = TimingTurns()
    with ThreadPoolExecutor(3) as pool:
        work = Doing(pool, turns.working)
        assert work.began.wait(WAIT)
        time = Doing(pool, turns.timing)
        assert not time.began.wait(0.1)
        more = Doing(pool, turns.working)
        assert not more.began.wait(0.1), "the work would go on for ever"
        work.end()
        assert time.began.wait(WAIT)
        assert not more.began.wait(0.1)
        time.end()
        assert more.began.wait(WAIT)
        more.end()
