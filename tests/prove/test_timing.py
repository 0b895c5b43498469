"""How times become a verdict: a program is not faster than itself, and what is faster is found."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from breakscan.prove import faster as measure
from breakscan.prove.faster import (
    Ratio,
    Unsteady,
    apart,
    interleave,
    is_decided,
    is_faster,
    is_slower,
    is_surely_slower,
    ratio,
    ratio_of_processes,
    repeated,
)
from breakscan.prove.protocol import BlockTime


class Clock:
    """Blocks of steps that take about so long."""

    def __init__(self, seconds: float, source: random.Random, noise: float, compiles: int = 0) -> None:
        self.seconds = seconds
        self.source = source
        self.noise = noise
        self.compiles = compiles
        self.asked = 0

    def __call__(self, calls: int) -> BlockTime:
        assert calls > 0
        self.asked += 1
        busy = 1 + self.noise * self.source.expovariate(1.0)
        return BlockTime(self.seconds * busy, int(self.asked <= self.compiles))


def three(speed: float, seed: int, noise: float = 0.2, apart_by: float = 0.01) -> dict[str, Clock]:
    """The processes of a change that makes a step so many times as fast, which differ a little by themselves."""
    source = random.Random(seed)
    luck = [source.gauss(1, apart_by) for _ in range(3)]
    return {
        "before": Clock(1e-3 * luck[0], source, noise),
        "same": Clock(1e-3 * luck[1], source, noise),
        "after": Clock(1e-3 * luck[2] / speed, source, noise),
    }


def decided(times: Mapping[str, Sequence[float]]) -> bool:
    return is_decided(times["before"], times["same"], times["after"])


def verdict(speed: float, seed: int, noise: float = 0.2, apart_by: float = 0.01) -> tuple[bool, bool, Ratio]:
    """Of a change that makes a step so many times as fast, where processes differ a little by themselves."""
    times = interleave(three(speed, seed, noise, apart_by), [1e-3], decided=decided)
    same = ratio([times["before"]], times["same"])
    claim = ratio([times["before"], times["same"]], times["after"])
    return is_faster(claim, same), is_slower(claim, same), claim


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "DRAWS", 200)
    monkeypatch.setattr(measure, "MOST_ROUNDS", 40)


def test_a_program_is_not_faster_than_itself() -> None:
    found = [verdict(1.0, seed)[0] for seed in range(100)]
    assert sum(found) <= 5, f"{sum(found)} of 100"


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_half_the_time_is_faster(noise: float) -> None:
    for seed in range(10):
        faster, slower, claim = verdict(2.0, seed, noise)
        assert faster
        assert not slower
        assert claim.low < claim.median < claim.high or noise == 0.0


@pytest.mark.parametrize("speed", [2.0, 0.5])
def test_what_is_decided_is_not_timed_longer_on_a_noisy_machine(speed: float) -> None:
    short, long = (len(interleave(three(speed, 1, 0.5), [1e-3], decided=one)["after"]) for one in (decided, never))
    assert short == measure.ROUNDS < long


def test_how_much_something_is_slower_than_eager_is_not_timed_longer() -> None:
    def slower(times: Mapping[str, Sequence[float]]) -> bool:
        return is_surely_slower(times["before"], times["after"], Ratio(1.0, 0.97, 1.03))

    rounds = [len(interleave(three(speed, 1, 0.5), [1e-3], decided=slower)["after"]) for speed in (0.5, 2.0, 1.0)]
    assert rounds[0] == measure.ROUNDS < min(rounds[1:])


def never(_: Mapping[str, Sequence[float]]) -> bool:
    return False


def test_twice_the_time_is_slower() -> None:
    faster, slower, _ = verdict(0.5, 1)
    assert slower
    assert not faster


def test_the_interval_holds_the_truth_most_of_the_time() -> None:
    held = sum(
        claim.low <= 1.5 <= claim.high
        for seed in range(50)
        for _, _, claim in [verdict(1.5, seed, noise=0.1, apart_by=0.0)]
    )
    assert held >= 43


def in_processes(source: random.Random, apart_by: float) -> list[Ratio]:
    """Those of as many processes as are run, of something twice as fast as eager."""
    found = []
    for _ in range(measure.PROCESSES):
        way = Clock(0.5e-3 * source.gauss(1, apart_by), source, 0.02)
        times = interleave({"eager": Clock(1e-3, source, 0.02), "way": way}, [1e-3])
        found.append(ratio([times["eager"]], times["way"]))
    return found


@pytest.mark.parametrize("apart_by", [0.0, 0.05])
def test_the_interval_of_several_processes_holds_how_they_differ(apart_by: float) -> None:
    single = several = 0
    for seed in range(100):
        ratios = in_processes(random.Random(seed), apart_by)
        whole = ratio_of_processes(ratios)
        assert min(one.median for one in ratios) <= whole.median <= max(one.median for one in ratios)
        single += ratios[0].low <= 2.0 <= ratios[0].high
        several += whole.low <= 2.0 <= whole.high
    assert several >= 89, f"{several} of 100"
    assert single < 50 or not apart_by, f"one process alone tells {single} of 100"


def test_several_processes_tell_no_more_than_one_where_they_agree() -> None:
    whole = ratio_of_processes([Ratio(2.0, 1.9, 2.1)] * measure.PROCESSES)
    assert (whole.median, whole.low, whole.high) == (pytest.approx(2.0), 1.9, 2.1)


def pair(speed: float, source: random.Random, noise: float, apart_by: float) -> Ratio:
    """The ratio that a new process of a change shows against a new one of the unchanged program."""
    clocks = {
        "before": Clock(1e-3 * source.gauss(1, apart_by), source, noise),
        "after": Clock(1e-3 * source.gauss(1, apart_by) / speed, source, noise),
    }
    times = interleave(clocks, [1e-3])
    return ratio([times["before"]], times["after"])


def test_a_program_is_not_faster_than_itself_where_its_processes_differ() -> None:
    alone = further = 0
    for seed in range(60):
        times = interleave(three(1.0, seed, noise=0.02, apart_by=0.06), [1e-3])
        same = ratio([times["before"]], times["same"])
        claim = ratio([times["before"], times["same"]], times["after"])
        source = random.Random(1000 + seed)
        alone += is_faster(claim, same)
        further += is_faster(repeated(claim, same, lambda of=source: pair(1.0, of, 0.02, 0.06)), same)
    assert alone > 5, "one process alone can tell"
    assert further <= 1


def test_a_small_gain_is_told_where_processes_agree() -> None:
    source = random.Random(0)
    claim = repeated(Ratio(1.1, 1.09, 1.11), Ratio(1.0, 0.99, 1.01), lambda: pair(1.1, source, 0.02, 0.0))
    assert is_faster(claim, Ratio(1.0, 0.99, 1.01))
    assert claim.low <= 1.1 <= claim.high


@pytest.mark.parametrize(
    ("claim", "more"), [(Ratio(1.3, 1.26, 1.4), 0), (Ratio(1.0, 0.9, 1.1), 0), (Ratio(1.1, 1.05, 1.2), 1)]
)
def test_further_processes_run_only_for_a_close_claim_and_until_one_does_not_show_it(claim: Ratio, more: int) -> None:
    ran = []

    def again() -> Ratio:
        ran.append(1)
        return Ratio(1.0, 0.98, 1.02)

    found = repeated(claim, Ratio(1.0, 0.99, 1.01), again)
    assert len(ran) == more
    assert is_faster(found, Ratio(1.0, 0.99, 1.01)) is (claim.low > 1.25)


def test_a_claim_must_beat_what_equal_processes_show() -> None:
    claim = Ratio(1.1, 1.08, 1.12)
    assert is_faster(claim, Ratio(1.0, 0.99, 1.01))
    assert not is_faster(claim, Ratio(1.05, 1.0, 1.09))
    assert not is_faster(claim, Ratio(0.95, 0.91, 1.0))
    assert apart(Ratio(0.95, 0.9, 1.0)) == pytest.approx(1 / 0.9)
    assert not is_faster(Ratio(1.015, 1.011, 1.019), Ratio(1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("seconds", "steps"), [([1e-3], 40), ([1e-3, 2e-3], 40), ([1e-3, 10e-3], 20), ([1e-3, 0.1], 2), ([0.5, 1.0], 1)]
)
def test_a_block_is_long_enough_for_the_fastest_and_not_too_long_for_the_slowest(
    seconds: list[float], steps: int
) -> None:
    asked: set[int] = set()

    def block(calls: int) -> BlockTime:
        asked.add(calls)
        return BlockTime(1e-3, 0)

    interleave({"before": block, "after": block}, seconds)
    assert asked == {steps}


def test_rounds_in_which_something_is_compiled_do_not_count() -> None:
    source = random.Random(0)
    workers = {"before": Clock(1e-3, source, 0.0), "after": Clock(1e-3, source, 0.0, compiles=2)}
    times = interleave(workers, [1e-3])
    assert len(times["after"]) == len(times["before"]) == measure.ROUNDS
    assert workers["after"].asked == measure.ROUNDS + 2


def test_what_is_compiled_again_and_again_is_not_timed() -> None:
    source = random.Random(0)
    workers = {"before": Clock(1e-3, source, 0.0), "after": Clock(1e-3, source, 0.0, compiles=99)}
    with pytest.raises(Unsteady, match="after"):
        interleave(workers, [1e-3])
