"""Decides whether something is faster: times several processes in short blocks, one process at a time, in turns.

Whatever slows the machine down for longer than a block slows all processes down.  The blocks of one round are compared.
How far two processes that run the same program lie apart is measured as well, and no smaller difference is claimed."""

import functools
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from breakscan.prove.protocol import BlockTime, StepKind
from breakscan.prove.worker import Worker

ROUNDS = 24
FEWEST_ROUNDS = 6
FEWEST_LONG_ROUNDS = 4
"""The same of steps of a second, if those decide."""
MOST_ROUNDS = 96
BLOCK = 0.04
"""Seconds of a block, at least.  All take about as long: what slows the machine down for a while hits each as often."""
LONGEST = 20.0
"""Seconds of all rounds, where that leaves :data:`FEWEST_ROUNDS`, and of further processes, where that leaves one."""
SHARP = 1.03
"""The width of an interval up to which no more rounds are run: on a quiet machine :data:`ROUNDS` are enough."""
WIDE = 1.25
"""The width of an interval up to which its middle says anything."""
DRAWS = 800
LEAST = 1.02
"""The least ratio that counts as faster."""
CLOSE = 1.25
"""The ratio that one process must show to count as faster without further ones: those of the same
program were up to 20% apart on a machine of changing speed."""
PROCESSES = 4
"""Those in which one thing is timed where more than one is."""
ENOUGH_PROCESSES = 6
"""Those from which on their medians alone say how far the true one may lie: between the least and the greatest of
six at 97%, between the second and the last but one of nine at 96% (the interval of the sign test)."""
Block = Callable[[int], BlockTime]
"""Runs so many steps."""


class Unsteady(Exception):
    """The block with this name compiles again and again while it is timed."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """The speed ratio: the median, or the mean of those of several processes, and its interval of 95%.

    ``disturbed`` says that other programs had the cores that the steps needed: nothing is claimed then."""

    median: float
    low: float
    high: float
    disturbed: bool = False

    @property
    def is_noisy(self) -> bool:
        """Return True if the machine was too noisy for the median to say anything."""
        return self.disturbed or self.high > WIDE * self.low


@dataclass(frozen=True, slots=True)
class Rounds:
    """The seconds of a step of each, round by round."""

    seconds: Mapping[str, Sequence[float]]
    disturbed: bool = False

    def ratio(self, other: str, *references: str, certainty: float = 0.95) -> Ratio:
        """The speed ratio of the other to the references, from pairs of blocks of one round: the mean of two noisy
        times tends to be longer than one of them.  The interval is that of bootstrap samples of the rounds; at a
        ``certainty`` of 1 it holds them all."""
        rounds = [[self.seconds[name][at] / time for name in references] for at, time in enumerate(self.seconds[other])]
        source = random.Random(0)
        medians = sorted(statistics.median(chain(*source.choices(rounds, k=len(rounds)))) for _ in range(DRAWS))
        left_out = round((1 - certainty) / 2 * DRAWS)
        return Ratio(statistics.median(chain(*rounds)), medians[left_out], medians[-1 - left_out], self.disturbed)

    def is_sharp(self) -> bool:
        """Return True if more rounds would add little.  Were it not for the widths of intervals alone, measuring would
        go on until it gives the desired result."""
        first, *others = self.seconds
        return all(one.high < SHARP * one.low for one in (self.ratio(other, first) for other in others))


Decided = Callable[[Rounds], bool]


def interleave(
    blocks: Mapping[str, Block],
    seconds: Mapping[str, float],
    longest: float = LONGEST,
    decided: Decided = lambda _: False,
) -> Rounds:
    """Times steps in turns.  ``seconds`` is about the time of a step of each, ``longest`` the limit for all rounds.
    They end where all bootstrap samples ``decided``: that is far more certain than an interval of 95%, so it may be
    asked after every few.  Rounds with a disturbed block do not count, unless there are too few others.  Raises
    Unsteady where one compiles in its blocks for the third time."""
    counts = {name: max(1, round(BLOCK / max(seconds[name], 1e-7))) for name in blocks}
    calm: list[dict[str, float]] = []
    rough: list[dict[str, float]] = []
    spoilt = dict.fromkeys(blocks, 0)
    began = time.monotonic()
    while len(calm) < MOST_ROUNDS:
        if len(calm) + len(rough) >= FEWEST_ROUNDS and time.monotonic() - began > longest:
            break
        is_late = len(calm) >= FEWEST_LONG_ROUNDS and time.monotonic() - began > longest / 2
        if is_late or (len(calm) >= ROUNDS and len(calm) % FEWEST_ROUNDS == 0):
            rounds = _rounds(calm)
            if decided(rounds) or (not is_late and rounds.is_sharp()):
                return rounds
        order = list(blocks) if (len(calm) + len(rough)) % 2 == 0 else list(blocks)[::-1]
        times = {name: blocks[name](counts[name]) for name in order}
        late = [name for name in order if times[name].compiles]
        for name in late:
            spoilt[name] += 1
            if spoilt[name] > 2:
                raise Unsteady(name)
        if not late:
            kind = rough if any(one.disturbed for one in times.values()) else calm
            kind.append({name: times[name].seconds for name in blocks})
    return _rounds(calm) if len(calm) >= FEWEST_ROUNDS else _rounds([*calm, *rough], disturbed=True)


def _rounds(found: Sequence[Mapping[str, float]], disturbed: bool = False) -> Rounds:
    return Rounds({name: [times[name] for times in found] for name in found[0]}, disturbed)


def ratio_of_processes(ratios: Sequence[Ratio]) -> Ratio:
    """The geometric mean of processes that did the same, and an interval that holds those of all; of
    :data:`ENOUGH_PROCESSES`, their median and its interval.  See Kalibera and Jones, "Rigorous benchmarking in
    reasonable time" (2013), on why processes have to be repeated, and not rounds alone."""
    if len(ratios) >= ENOUGH_PROCESSES:
        medians = sorted(one.median for one in ratios)
        end = 1 if len(ratios) > 8 else 0
        disturbed = 2 * sum(one.disturbed for one in ratios) > len(ratios)
        return Ratio(statistics.median(medians), medians[end], medians[-1 - end], disturbed)
    return Ratio(
        statistics.geometric_mean(one.median for one in ratios),
        min(one.low for one in ratios),
        max(one.high for one in ratios),
        any(one.disturbed for one in ratios),
    )


def repeated(claim: Ratio, same: Ratio, again: Callable[[], Ratio]) -> Ratio:
    """A claim that is close, measured in up to :data:`PROCESSES`: one of three that do the same can be faster than both
    others by chance.  No more are run once one does not show the claim, or where they take too long."""
    found = [claim]
    until = time.monotonic() + LONGEST
    while claim.low < CLOSE and len(found) < PROCESSES and is_faster(found[-1], same) and time.monotonic() < until:
        found.append(again())
    return ratio_of_processes(found)


def is_faster(claim: Ratio, same: Ratio) -> bool:
    """Return True if the claim holds: all of its interval lies above what two processes of the same program show."""
    return not claim.disturbed and claim.low > max(LEAST, apart(same))


def is_slower(claim: Ratio, same: Ratio) -> bool:
    """Like :func:`is_faster`, for the opposite claim."""
    return not claim.disturbed and claim.high < 1 / max(LEAST, apart(same))


def is_unclear(claim: Ratio, same: Ratio) -> bool:
    """Return True if a claim that is not shown may hold: too noisy, or only its interval reaches below the level."""
    level = max(LEAST, apart(same))
    return claim.is_noisy or same.is_noisy or level > WIDE or claim.median > level


def apart(same: Ratio) -> float:
    """Returns how many times as fast as an equal process a process can appear to be."""
    return max(same.high, 1 / same.low)


def race(steps: Mapping[str, tuple[Worker, StepKind]], longest: float, decided: Decided = lambda _: False) -> Rounds:
    """Times steps of workers, prepared one by one.  Raises Unsteady and WorkerError."""
    seconds = {name: one.prepare(kind) for name, (one, kind) in steps.items()}
    blocks = {name: functools.partial(one.block, kind=kind) for name, (one, kind) in steps.items()}
    return interleave(blocks, seconds, longest, decided)
