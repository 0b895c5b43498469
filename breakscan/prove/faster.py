"""Decides whether something is faster: times several processes in short blocks, one process at a time, in turns.

Whatever slows the machine down for longer than a block slows all processes down.  The blocks of one round are compared.
How far two processes that run the same program lie apart is measured as well, and no smaller difference is claimed.
"""

from __future__ import annotations

import functools
import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from breakscan.prove.candidate import Candidate
from breakscan.prove.commands import CommandHandler
from breakscan.prove.protocol import BlockTime, StepKind
from breakscan.prove.regions import RegionalCompiler
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.worker import Worker

ROUNDS = 24
FEWEST_ROUNDS = 8
MOST_ROUNDS = 96
BLOCK = 0.04
"""Seconds of a block, at least, of what is slowest; and of what is fastest, unless the slowest then takes longer than
:data:`LONGEST_BLOCK`."""
LONGEST_BLOCK = 0.2
LONGEST = 20.0
"""Seconds of all rounds, where that leaves :data:`FEWEST_ROUNDS`."""
SHARP = 1.03
"""How wide an interval may be before more rounds are run: on a quiet machine :data:`ROUNDS` are enough."""
DRAWS = 800
LEAST = 1.02
"""What counts as faster at all."""
CLOSE = 1.25
"""How many times as fast something must be in one process to count as faster without further ones: those of the same
program were up to 20% apart on a machine of changing speed."""
PROCESSES = 4
"""Those in which one thing is timed where more than one is."""
STUDENT = 3.182
"""How many standard errors the mean of so many values may lie off: the quantile 0.975 of Student's t."""

Block = Callable[[int], BlockTime]
"""Runs so many steps."""


class Unsteady(Exception):
    """The block with this ``name`` compiles again and again while it is timed."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as fast: the median, or the mean of those of several processes, and its interval of 95%."""

    median: float
    low: float
    high: float


def interleave(
    blocks: Mapping[str, Block],
    seconds: Sequence[float],
    longest: float = LONGEST,
    decided: Callable[[Mapping[str, Sequence[float]]], bool] = lambda _: False,
) -> dict[str, list[float]]:
    """The seconds of a step of each, round by round.  ``seconds`` is about the time of their steps, ``longest`` the
    limit for all rounds together.  All run the same number of steps.  No more rounds are run than :data:`ROUNDS` where
    the times of those are ``decided``.

    Raises Unsteady where one compiles in its blocks for the third time.
    """
    fastest, slowest = max(min(seconds), 1e-7), max(*seconds, 1e-7)
    calls = max(1, round(BLOCK / slowest), min(round(BLOCK / fastest), round(LONGEST_BLOCK / slowest)))
    found: dict[str, list[float]] = {name: [] for name in blocks}
    spoilt = dict.fromkeys(blocks, 0)
    began = time.monotonic()
    done = 0
    while done < FEWEST_ROUNDS or (done < MOST_ROUNDS and time.monotonic() - began < longest):
        if done >= ROUNDS and done % FEWEST_ROUNDS == 0 and (_is_sharp(list(found.values())) or decided(found)):
            break
        order = list(blocks) if done % 2 == 0 else list(blocks)[::-1]
        times = {name: blocks[name](calls) for name in order}
        late = [name for name in order if times[name].compiles]
        for name in late:
            spoilt[name] += 1
            if spoilt[name] > 2:
                raise Unsteady(name)
        if not late:
            for name in order:
                found[name].append(times[name].seconds)
            done += 1
    return found


def _is_sharp(times: Sequence[Sequence[float]]) -> bool:
    """Returns whether more rounds would add little.

    Only the widths of the intervals decide that, not their positions. Otherwise, measuring would go on until it gives
    the desired result.
    """
    intervals = [ratio(times[:1], other) for other in times[1:]]
    return all(one.high < SHARP * one.low for one in intervals)


def ratio(references: Sequence[Sequence[float]], other: Sequence[float]) -> Ratio:
    """How many times as fast the other is as the references, from pairs of blocks of one round.

    The references are not averaged first: the mean of two noisy times tends to be longer than one of them.
    """
    rounds = _by_round(references, other)
    medians = _resampled(rounds)
    return Ratio(statistics.median(chain(*rounds)), medians[round(0.025 * DRAWS)], medians[round(0.975 * DRAWS) - 1])


def is_decided(first: Sequence[float], second: Sequence[float], other: Sequence[float]) -> bool:
    """Whether another one is faster than two equal processes in every resample, or slower in every one.

    That is far more certain than an interval of 95%, so it may be asked after every few rounds.
    """
    same, claim = (
        Ratio(medians[len(medians) // 2], medians[0], medians[-1])
        for medians in (_resampled(_by_round([first], second)), _resampled(_by_round([first, second], other)))
    )
    return is_faster(claim, same) or is_slower(claim, same)


def is_surely_slower(reference: Sequence[float], other: Sequence[float], same: Ratio) -> bool:
    """Whether another one is slower in every resample, as in :func:`is_decided`. ``same`` is the ratio of two equal
    processes.
    """
    medians = _resampled(_by_round([reference], other))
    return is_slower(Ratio(medians[len(medians) // 2], medians[0], medians[-1]), same)


def _by_round(references: Sequence[Sequence[float]], other: Sequence[float]) -> list[list[float]]:
    return [[one[at] / time for one in references] for at, time in enumerate(other)]


def _resampled(rounds: Sequence[Sequence[float]]) -> list[float]:
    """The medians of bootstrap samples of the rounds, sorted."""
    source = random.Random(0)
    return sorted(statistics.median(chain(*source.choices(rounds, k=len(rounds)))) for _ in range(DRAWS))


def ratio_of_processes(ratios: Sequence[Ratio]) -> Ratio:
    """The geometric mean of :data:`PROCESSES` that did the same, and Student's interval of it, but no narrower than
    that of one of them: processes that run one after another may lie close together by the machine's state.

    See Kalibera and Jones, "Rigorous benchmarking in reasonable time" (2013), on why processes have to be repeated,
    and not rounds alone.
    """
    logs = [math.log(one.median) for one in ratios]
    middle = statistics.fmean(logs)
    either_way = STUDENT * statistics.stdev(logs) / math.sqrt(PROCESSES)
    return Ratio(
        math.exp(middle),
        min(math.exp(middle - either_way), statistics.median(one.low for one in ratios)),
        max(math.exp(middle + either_way), statistics.median(one.high for one in ratios)),
    )


def repeated(claim: Ratio, same: Ratio, again: Callable[[], Ratio]) -> Ratio:
    """A claim that is close, measured in up to :data:`PROCESSES`: the mean, and an interval that holds those of all.

    By chance, one process of three that do the same can be faster than both others. No more are run once one does not
    show the claim.
    """
    found = [claim]
    while claim.low < CLOSE and len(found) < PROCESSES and is_faster(found[-1], same):
        found.append(again())
    middle = math.exp(statistics.fmean(math.log(one.median) for one in found))
    return Ratio(middle, min(one.low for one in found), max(one.high for one in found))


def is_faster(claim: Ratio, same: Ratio) -> bool:
    """Whether the claim holds: all of its interval lies above what two processes of the same program show."""
    return claim.low > max(LEAST, apart(same))


def is_slower(claim: Ratio, same: Ratio) -> bool:
    """Like :func:`is_faster`, for the opposite claim."""
    return claim.high < 1 / max(LEAST, apart(same))


def apart(same: Ratio) -> float:
    """Returns how many times as fast as an equal process a process can appear to be."""
    return max(same.high, 1 / same.low)


@dataclass(frozen=True, slots=True)
class Pace:
    """The seconds of steps, round by round, and the peak memory of compiled ones in bytes."""

    eager: list[float]
    compiled: list[float]
    memory_bytes: int | None

    @property
    def step_seconds(self) -> float:
        """The median of a compiled step, in seconds."""
        return statistics.median(self.compiled)

    @property
    def ratio(self) -> Ratio:
        """How many times as fast as an eager step a compiled one is."""
        return ratio([self.eager], self.compiled)


def compile_in(worker: Worker, variant: Candidate) -> None:
    """Makes a worker compile as a variant does from now on."""
    if variant.options is not None:
        worker.ask(CommandHandler.compile, dict(variant.options))
    if variant.regional is not None:
        worker.ask(RegionalCompiler.compile, variant.regional)


def prepare(worker: Worker) -> None:
    """Compiles what a worker is to be timed with, without the recorder. Raises WorkerError."""
    worker.ask(StepTimer.prepare, StepKind.COMPILED)


def pace_of(worker: Worker, longest: float, same: Ratio) -> Pace:
    """Times a worker that is prepared, for ``longest`` seconds at most. By how much something is slower than eager is
    not worth more of them. ``same`` is the ratio of two eager processes. Raises Unsteady and WorkerError.
    """
    compiled = worker.ask(StepTimer.warm_up, StepKind.COMPILED)
    memory = worker.ask(StepTimer.memory, StepKind.COMPILED)
    eager = worker.prepare(StepKind.EAGER)
    blocks: dict[str, Block] = {
        kind: functools.partial(worker.block, kind=kind) for kind in (StepKind.EAGER, StepKind.COMPILED)
    }

    def is_decided(times: Mapping[str, Sequence[float]]) -> bool:
        return is_surely_slower(times[StepKind.EAGER], times[StepKind.COMPILED], same)

    times = interleave(blocks, [eager, compiled], longest, is_decided)
    return Pace(times[StepKind.EAGER], times[StepKind.COMPILED], memory)
