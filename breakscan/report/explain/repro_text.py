"""The file of a reproduction, its result, and a text for the issue tracker of a library."""

from __future__ import annotations

from breakscan.explanation.breaks import BreakSite, break_page
from breakscan.explanation.context import package_of
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.frames import FrameStatus, UncompiledFrame
from breakscan.explanation.problems import break_problem, frame_problem
from breakscan.explanation.remedies import of_authors
from breakscan.explanation.repro.needed_code import LAZY_ANNOTATIONS
from breakscan.explanation.repro.problem import NotReproducible, Obstacle, RecordedProblem
from breakscan.explanation.repro.program import MinimalProgram
from breakscan.explanation.repro.reproduction import MOST_SECONDS, Reproduction, ReproStatus
from breakscan.model.findings import Verdict
from breakscan.model.problem import Problem, ProblemKind
from breakscan.model.words import listed, place, short_path
from breakscan.report.markdown import code, prose
from breakscan.report.printable import printable, visible

_MOST_MET = 3


def repro_sentence(made: Reproduction) -> str:
    """``repro_train_41.py reproduces train.py:41: it splits the graph there (GB0059).``"""
    result = _result(made)
    return f"{result}. {issue_sentence(made.problem, made.issue)}" if made.issue else result


def issue_sentence(problem: RecordedProblem, path: str) -> str:
    """Where the text for an issue tracker is."""
    return f"A text for the issue tracker of {package_of(problem.site.path)} is in {path}"


def _result(made: Reproduction) -> str:
    where = f"{short_path(made.problem.site.path)}:{made.problem.site.line}"
    match made.status:
        case ReproStatus.REPRODUCED:
            words = f"{made.path} reproduces {where}: run alone, it {_happens(made.problem)} at the same line"
            then = f". It then ends with an error that comes of the stand-ins: {made.error}" if made.error else ""
            return words + then
        case ReproStatus.DIFFERENT:
            words = f"{made.path} does not reproduce {where}: run alone, it {_met(made)}"
        case ReproStatus.FAILED:
            words = f"{made.path} does not reproduce {where}: run alone, it ends with {made.error or 'an error'}"
        case ReproStatus.TIMED_OUT:
            words = f"{made.path} does not reproduce {where}: run alone, it had not ended after {MOST_SECONDS} s"
        case ReproStatus.NOT_RUN:
            words = f"{made.path} may reproduce {where}: it was not run, because torch is not installed here"
    return f"{words}. Not recorded: {', '.join(made.program.unknown)}" if made.program.unknown else words


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


def _happens(problem: RecordedProblem) -> str:
    cause = problem.gb_id or problem.gb_type or problem.rule
    happens = "recompiles" if problem.kind is ProblemKind.RECOMPILES else problem.what
    return f"{happens}{f' ({cause})' if cause else ''}"


def _met(made: Reproduction) -> str:
    if not made.met:
        return "compiles without a problem"
    return listed([f"{_happens(one)} at {one.code!r}" for one in made.met[:_MOST_MET]], "problem")


def repro_text(problem: RecordedProblem, program: MinimalProgram, explanation: Explanation) -> str:
    """The program as a file of Python."""
    where = f"{short_path(problem.site.path)}:{problem.site.line}"
    cause = " ".join(filter(None, (problem.gb_id, problem.gb_type or problem.rule)))
    outcome = problem.verdict.value if problem.verdict else ""
    head = [f"Reproduces what torch {explanation.torch} did at {where} ({outcome}: {cause})."]
    head += [page] if (page := break_page(problem.gb_id)) else []
    head.append("Made by breakscan of a recorded run. Values are stand-ins of the recorded kinds and sizes.")
    if program.unknown:
        head.append(f"Not recorded: {', '.join(program.unknown)}.")
    if program.own_backend is not None:
        head.append(f"The program's own backend, {program.own_backend}, is replaced by eager.")
    parts = [
        "\n".join(f"# {visible(line)}" for line in head),
        "\n".join((LAZY_ANNOTATIONS, "", *program.imports)),
    ]
    if program.placeholder is not None:
        parts.append(f"{program.placeholder} = None  # put in what the program passed")
    parts += program.definitions
    parts.append("\n".join(("torch.manual_seed(0)", *program.calls)))
    return "\n\n\n".join(parts) + "\n"


_FENCE = "````"
"""Longer than one in a docstring."""


def issue_library(problem: RecordedProblem, explanation: Explanation) -> str | None:
    """The library whose authors alone can do something about it; None if the program's user can, or it is not known
    whose code it is."""
    found = _found(problem, explanation)
    return package_of(problem.site.path) if found is not None and of_authors(found) else None


def issue_text(problem: RecordedProblem, explanation: Explanation, made: Reproduction | None, text: str) -> str:
    """The Markdown of an issue.  ``text`` is the program of ``made``, which is shown if it reproduces the problem."""
    found = _found(problem, explanation)
    assert found is not None
    found = printable(found)
    shown = break_problem(found) if isinstance(found, BreakSite) else frame_problem(found)
    library = package_of(problem.site.path) or ""
    version = explanation.libraries.get(library)
    versions = [
        f"{library} {version}" if version else library,
        f"torch {explanation.torch}",
        f"Python {explanation.python}",
    ]
    inside = f", in {code(shown.function)}" if shown.function else ""
    parts = [
        f"# {_title(shown)}",
        ", ".join(prose(visible(one)) for one in versions),
        f"**Where:** {code(place(shown.site))}{inside}",
        f"{_FENCE}python\n{visible(problem.code or '')}\n{_FENCE}",
        f"**What happens:** {prose(_what_happens(shown))}",
        f"**Why:** {_why(problem, found)}",
    ]
    if found.rule:
        parts.append(f"**What could be written instead:** {prose(found.rule.instead)}")
    if made and made.status is ReproStatus.REPRODUCED:
        after = f" It then ends with {prose(visible(made.error))}, which comes of the stand-ins." if made.error else ""
        parts.append(f"**Reproduction**, with stand-ins for the values; breakscan ran it and saw the same.{after}")
        parts.append(f"{_FENCE}python\n{text.rstrip()}\n{_FENCE}")
    return "\n\n".join(parts) + "\n"


def _found(problem: RecordedProblem, explanation: Explanation) -> BreakSite | UncompiledFrame | None:
    """Return the break or function of a problem; None for recompiles, which the caller of a library causes."""
    for site in explanation.breaks:
        if (site.site, site.gb_type) == (problem.site, problem.gb_type):
            return site
    for frame in explanation.frames:
        if frame.status is FrameStatus.RAISED and (frame.failed_at or frame.site) == problem.site:
            return frame
    return None


def _title(problem: Problem) -> str:
    what = "graph break" if problem.gb_type else "failure"
    where = code(problem.function or place(problem.site))
    return f"torch.compile: {what} in {where}, {code(problem.gb_type or problem.name)}"


def _what_happens(problem: Problem) -> str:
    match problem.verdict:
        case Verdict.SPLITS:
            return "torch.compile ends the graph here, and begins another one after it."
        case Verdict.EAGER:
            return " ".join(problem.consequences)
    return "torch.compile raises here."


def _why(problem: RecordedProblem, found: BreakSite | UncompiledFrame) -> str:
    """In torch's own words."""
    said = found.reason if isinstance(found, BreakSite) else problem.reason
    page = break_page(problem.gb_id)
    return f"{prose(visible(said))}{f' ([{problem.gb_id}]({page}))' if page else ''}"
