"""The rule of ``tune`` for what is better, on figures of runs."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from breakscan.model.remedy import RemedyKind
from breakscan.prove.faster import Ratio
from breakscan.prove.proof import Goal, ProgramChange, RunFigures
from breakscan.prove.protocol import RunReport
from breakscan.prove.tune import LEFT_EAGER, _Made, _Tune, _Turns
from breakscan.prove.tune_changes import NOT_COMPILED


@dataclass(frozen=True)
class Figures:
    """A run with these figures, of which ``lines`` were compiled."""

    breaks: int = 0
    recompiles: int = 0
    eager: int = 0
    graphs: int = 1
    lines: int = 100

    report = RunReport((), (), 0.0, None, None, False, False, (), (), ())

    def figures(self, _: int | None) -> RunFigures:
        return RunFigures(self.breaks, self.recompiles, self.eager, self.graphs, 1.0, 1.0)


AS_IT_IS = Figures(breaks=3, recompiles=2)
SAME, CLEAR = Ratio(1.0, 0.99, 1.01), (0.97, 1.03)


def made(run: Any, kind: RemedyKind = RemedyKind.SETTING, name: str = "a change") -> _Made:
    return _Made(run, changes=(ProgramChange(kind, name, lambda texts: texts),))


def reason(one: _Made, ratio: float, noise: tuple[float, float] = CLEAR, whole: float = 1.0) -> str | None:
    """Why a program is no better than the program as it is, whose steps take that many times as long."""
    tune: Any = object.__new__(_Tune)
    tune.base, tune.result = AS_IT_IS, None
    tune.chosen = _Made(tune.base)
    tune.question, tune.notes = SimpleNamespace(goal=Goal.STEP), []
    figures = AS_IT_IS.figures(None)
    turns = _Turns(Ratio(ratio, ratio * noise[0], ratio * noise[1]), SAME, figures, figures)
    tune._whole = lambda *_: whole
    found = tune._slowness(one, turns if ratio else None)
    return None if found is None else found[1]


REGION = RemedyKind.REGION
NO_BREAKS, NO_RECOMPILES = replace(AS_IT_IS, breaks=0), replace(AS_IT_IS, recompiles=0)
NOISY = (0.5, 2.0)


@pytest.mark.parametrize(
    ("one", "given", "is_better"),
    [
        (made(AS_IT_IS), (1.3,), True),
        (made(AS_IT_IS), (1.0,), False),
        (made(AS_IT_IS), (1.3, NOISY), False),
        # Fewer problems are better, unless steps are slower.
        (made(NO_BREAKS), (1.0,), True),
        (made(NO_BREAKS), (1.0, NOISY), True),
        (made(NO_BREAKS), (0.9,), False),
        (made(NO_BREAKS), (0.7, NOISY), False),
        # More are worse, unless steps are much faster.
        (made(replace(AS_IT_IS, breaks=4)), (1.1,), False),
        (made(replace(AS_IT_IS, breaks=4)), (1.3,), True),
        (made(replace(AS_IT_IS, breaks=0, eager=1)), (1.1,), False),
        # Less code that is compiled has to be faster, if nothing but breaks goes.
        (made(replace(NO_BREAKS, lines=79), REGION), (1.0,), False),
        (made(replace(NO_BREAKS, lines=79), REGION), (1.3,), True),
        (made(replace(NO_RECOMPILES, lines=79), REGION), (1.0,), True),
        (made(replace(NO_BREAKS, lines=81), REGION), (1.0,), True),
        # Slower steps are made up for by recompiles that a run from empty caches shows.
        (made(NO_RECOMPILES), (0.9,), False),
        (made(NO_RECOMPILES), (0.9, CLEAR, 1.2), True),
        (made(NO_RECOMPILES), (0.75, CLEAR, 1.2), False),
        (made(NO_BREAKS), (0.9, CLEAR, 1.2), False),
        # Nothing is compiled: only where that is meant, and faster.
        (made(Figures(graphs=0)), (1.3,), False),
        (made(Figures(graphs=0), REGION, NOT_COMPILED), (1.0,), False),
        (made(Figures(graphs=0), REGION, NOT_COMPILED), (1.3,), True),
        # Fewer problems are enough where no time was left for turns (0).
        (made(NO_BREAKS), (0,), True),
        (replace(made(NO_BREAKS), ratio=0.8), (0,), False),
        (made(AS_IT_IS), (0,), False),
        (made(replace(NO_BREAKS, lines=79), REGION), (0,), False),
        # Results of eager are worth slower steps.
        (replace(made(AS_IT_IS), exact=True), (0.5,), True),
    ],
)
def test_what_is_better(one: _Made, given: tuple[Any, ...], is_better: bool) -> None:
    assert (reason(one, *given) is None) is is_better


def test_code_that_is_left_eager_is_named_as_the_reason() -> None:
    assert (reason(made(replace(NO_BREAKS, lines=79), REGION), 1.0) or "").startswith(LEFT_EAGER)
