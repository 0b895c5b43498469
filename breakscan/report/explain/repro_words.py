"""What became of a reproduction, in words."""

from __future__ import annotations

from breakscan.explain.repro.declined import NotReproducible, Obstacle
from breakscan.explain.repro.problem import RecordedProblem
from breakscan.explain.repro.reproduction import Reproduction, ReproStatus
from breakscan.explain.repro.run_again import MOST_SECONDS
from breakscan.model.words import listed, short_path
from breakscan.report.explain.library_words import package_of

_OUTCOMES = {
    "splits": "splits the graph",
    "eager": "runs eager",
    "raises": "raises",
    "raised": "fails to compile",
    "recompiled": "recompiles",
}
_MOST_MET = 3


def repro_sentence(made: Reproduction) -> str:
    """``repro_train_41.py reproduces train.py:41: it splits the graph there (GB0059).``"""
    told = _told(made)
    return f"{told}. {issue_sentence(made.problem, made.issue)}" if made.issue else told


def issue_sentence(problem: RecordedProblem, path: str) -> str:
    """Where the text for an issue tracker is."""
    return f"A text for the issue tracker of {package_of(problem.site.path)} is in {path}"


def _told(made: Reproduction) -> str:
    where = _place(made.problem)
    match made.status:
        case ReproStatus.REPRODUCED:
            told = f"{made.path} reproduces {where}: run alone, it {_happens(made.problem)} at the same line"
            then = f". It then ends with an error that comes of the stand-ins: {made.error}" if made.error else ""
            return told + then
        case ReproStatus.DIFFERENT:
            told = f"{made.path} does not reproduce {where}: run alone, it {_met(made)}"
        case ReproStatus.FAILED:
            told = f"{made.path} does not reproduce {where}: run alone, it ends with {made.error or 'an error'}"
        case ReproStatus.TIMED_OUT:
            told = f"{made.path} does not reproduce {where}: run alone, it had not ended after {MOST_SECONDS} s"
        case ReproStatus.NOT_RUN:
            told = f"{made.path} may reproduce {where}: it was not run, because torch is not installed here"
    return f"{told}. {_missing(made)}" if made.program.unknown else told


def obstacle_words(error: NotReproducible) -> str:
    """Why there is no program."""
    match error.obstacle:
        case Obstacle.NO_FUNCTION:
            return "the recording does not say in which function of the program it happened"
        case Obstacle.NO_VALUES:
            return f"the values that {error.about} was called with were not recorded"
        case Obstacle.NO_SOURCE:
            return f"the source of {error.about} cannot be read here"
        case Obstacle.SAME_NAME:
            return f"two files of the program mean different things by {error.about}"


def _place(problem: RecordedProblem) -> str:
    return f"{short_path(problem.site.path)}:{problem.site.line}"


def _happens(problem: RecordedProblem) -> str:
    cause = problem.gb_id or problem.gb_type or problem.rule
    return f"{_OUTCOMES[problem.outcome]}{f' ({cause})' if cause else ''}"


def _met(made: Reproduction) -> str:
    if not made.met:
        return "compiles without a problem"
    return listed([f"{_happens(one)} at {one.code!r}" for one in made.met[:_MOST_MET]], "problem")


def _missing(made: Reproduction) -> str:
    return f"Not recorded: {', '.join(made.program.unknown)}"
