"""How times become a verdict: a program is not faster than itself, and what is faster is found."""

import functools
import hashlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from breakscan.prove import faster as measure
from breakscan.prove.faster import (
    Ratio,
    Rounds,
    Unsteady,
    apart,
    interleave,
    is_faster,
    is_slower,
    is_unclear,
    ratio_of_processes,
    repeated,
)
from breakscan.prove.protocol import BlockTime
from breakscan.prove.step_timer import _timed


@dataclass
class Clock:
    """Blocks of steps that take about so long."""

    seconds: float
    source: random.Random
    noise: float
    compiles: int = 0
    disturbed: float = 0.0
    asked: int = 0

    def __call__(self, calls: int) -> BlockTime:
        assert calls > 0
        self.asked += 1
        busy = 1 + self.noise * self.source.expovariate(1.0)
        disturbed = self.source.random() < self.disturbed
        return BlockTime(self.seconds * busy * (5 if disturbed else 1), int(self.asked <= self.compiles), disturbed)


def three(speed: float, seed: int, noise: float = 0.2, apart_by: float = 0.01) -> dict[str, Clock]:
    """The processes of a change that makes a step so many times as fast, which differ a little by themselves."""
    source = random.Random(seed)
    luck = [source.gauss(1, apart_by) for _ in range(3)]
    return {
        "before": Clock(1e-3 * luck[0], source, noise),
        "same": Clock(1e-3 * luck[1], source, noise),
        "after": Clock(1e-3 * luck[2] / speed, source, noise),
    }


ABOUT = {"before": 1e-3, "same": 1e-3, "after": 1e-3, "eager": 1e-3, "way": 1e-3}


def decided(rounds: Rounds) -> bool:
    claim, same = rounds.ratio("after", "before", "same", certainty=1), rounds.ratio("same", "before", certainty=1)
    return is_faster(claim, same) or is_slower(claim, same)


def verdict(speed: float, seed: int, noise: float = 0.2, apart_by: float = 0.01) -> tuple[bool, bool, Ratio]:
    """Of a change that makes a step so many times as fast, where processes differ a little by themselves."""
    rounds = interleave(three(speed, seed, noise, apart_by), ABOUT, decided=decided)
    same = rounds.ratio("same", "before")
    claim = rounds.ratio("after", "before", "same")
    return is_faster(claim, same), is_slower(claim, same), claim


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "DRAWS", 200)
    monkeypatch.setattr(measure, "MOST_ROUNDS", 40)


def test_no_faster_is_only_said_where_the_median_is_that_of_equal_processes() -> None:
    calm, apart_by_half = Ratio(1.0, 0.98, 1.02), Ratio(1.6, 1.55, 1.65)
    assert not is_unclear(Ratio(1.01, 0.99, 1.03), calm)
    # The interval only reaches below what equal processes show.
    assert is_unclear(Ratio(1.18, 1.01, 1.26), calm)
    # Equal processes are that far apart, each of them steady.
    assert is_unclear(Ratio(1.5, 1.45, 1.55), apart_by_half)
    assert Ratio(2.0, 1.5, 2.5).is_noisy
    assert not Ratio(2.0, 1.9, 2.1).is_noisy


def test_a_program_is_not_faster_than_itself() -> None:
    found = [verdict(1.0, seed)[0] for seed in range(100)]
    assert sum(found) <= 5, f"{sum(found)} of 100"


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_half_the_time_is_faster_and_twice_the_time_slower(noise: float) -> None:
    for seed in range(10):
        *found, claim = verdict(2.0, seed, noise)
        assert found == [True, False]
        assert claim.low < claim.median < claim.high or noise == 0.0
    assert verdict(0.5, 1, noise)[:2] == (False, True)


@pytest.mark.parametrize("speed", [2.0, 0.5])
def test_what_is_decided_is_not_timed_longer_on_a_noisy_machine(speed: float) -> None:
    short, long = (
        len(interleave(three(speed, 1, 0.5), ABOUT, decided=one).seconds["after"]) for one in (decided, lambda _: False)
    )
    assert short == measure.ROUNDS < long


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
        found.append(interleave({"eager": Clock(1e-3, source, 0.02), "way": way}, ABOUT).ratio("way", "eager"))
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


@pytest.mark.parametrize("processes", [6, 9])
def test_one_process_of_many_does_not_widen_the_interval(processes: int) -> None:
    held = narrow = 0
    for seed in range(200):
        source = random.Random(seed)
        # Each process has a step that compiles or waits: its own interval says nothing.
        ratios = [
            Ratio(2.0 * source.lognormvariate(0, 0.05), 0.5, 8.0, source.random() < 0.2) for _ in range(processes)
        ]
        whole = ratio_of_processes(ratios)
        held += whole.low <= 2.0 <= whole.high
        narrow += whole.high < 1.5 * whole.low and not whole.disturbed
    assert held >= 184, f"{held} of 200"
    assert narrow >= 180, f"{narrow} of 200"


def pair(speed: float, source: random.Random, noise: float, apart_by: float) -> Ratio:
    """The ratio that a new process of a change shows against a new one of the unchanged program."""
    clocks = {
        "before": Clock(1e-3 * source.gauss(1, apart_by), source, noise),
        "after": Clock(1e-3 * source.gauss(1, apart_by) / speed, source, noise),
    }
    return interleave(clocks, ABOUT).ratio("after", "before")


def test_a_program_is_not_faster_than_itself_where_its_processes_differ() -> None:
    alone = further = 0
    for seed in range(60):
        rounds = interleave(three(1.0, seed, noise=0.02, apart_by=0.06), ABOUT)
        same = rounds.ratio("same", "before")
        claim = rounds.ratio("after", "before", "same")
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


def test_blocks_take_about_as_long_so_that_noise_hits_each_as_often() -> None:
    asked: dict[str, int] = {}
    seconds = {"fast": 1e-4, "slow": 1e-3, "slowest": 0.5}

    def run(name: str, calls: int) -> BlockTime:
        asked[name] = calls
        return BlockTime(seconds[name], 0)

    interleave({name: functools.partial(run, name) for name in seconds}, seconds)
    assert asked == {"fast": 400, "slow": 40, "slowest": 1}


def test_rounds_that_other_programs_disturb_do_not_count() -> None:
    source = random.Random(0)
    clocks = {"before": Clock(2e-3, source, 0.01, disturbed=0.6), "after": Clock(1e-3, source, 0.01)}
    claim = interleave(clocks, ABOUT).ratio("after", "before")
    assert claim.low <= 2.0 <= claim.high
    assert not claim.is_noisy


def test_nothing_is_claimed_where_hardly_any_round_is_undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "FEWEST_ROUNDS", 4)
    source = random.Random(0)
    clocks = {"before": Clock(2e-3, source, 0.01, disturbed=1.0), "after": Clock(1e-3, source, 0.01)}
    claim = interleave(clocks, ABOUT, longest=0.0).ratio("after", "before")
    assert claim.low > 5
    assert claim.disturbed
    assert claim.is_noisy
    assert not is_faster(claim, Ratio(1.0, 0.99, 1.01))


def test_rounds_in_which_something_is_compiled_do_not_count() -> None:
    source = random.Random(0)
    workers = {"before": Clock(1e-3, source, 0.0), "after": Clock(1e-3, source, 0.0, compiles=2)}
    rounds = interleave(workers, ABOUT)
    assert len(rounds.seconds["after"]) == len(rounds.seconds["before"]) == measure.ROUNDS
    assert workers["after"].asked == measure.ROUNDS + 2
    with pytest.raises(Unsteady, match="after"):
        interleave({**workers, "after": Clock(1e-3, source, 0.0, compiles=99)}, ABOUT)


counts_waits = pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="Linux does not count waits here")


@pytest.fixture
def busy_core() -> Iterator[None]:
    """This process shares a core with four others that never wait."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        for one in busy:
            one.kill()
            one.wait()


@counts_waits
@pytest.mark.process
@pytest.mark.parametrize(("size", "cycles"), [(10_000, 400), (1_000_000, 8)])
def test_the_time_for_which_a_step_waits_for_a_core_does_not_count(size: int, cycles: int, busy_core: None) -> None:
    # The first call imports torch.
    _timed(lambda count: None, 1)
    began, used = time.perf_counter(), time.process_time()
    seconds, disturbed = _timed(lambda count: [sum(range(size)) for _ in range(count)] and None, cycles)
    wall, own = (time.perf_counter() - began) / cycles, (time.process_time() - used) / cycles
    assert wall > 2 * own, "the core was not busy"
    assert not disturbed
    assert seconds == pytest.approx(own, rel=0.25)


@counts_waits
@pytest.mark.process
def test_a_step_of_several_threads_is_disturbed_where_others_have_the_cores(busy_core: None) -> None:
    data = bytes(20_000_000)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(hashlib.sha256, [data[:10]] * 2))
        _, disturbed = _timed(lambda count: list(pool.map(hashlib.sha256, [data] * 2 * count)) and None, 8)
    assert disturbed
