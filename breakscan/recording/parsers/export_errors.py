"""Reads why torch could not export something (the supported versions of torch)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class ExportProblem(str, Enum):
    """The kinds of problems of an export."""

    TEST = "data-dependent-test"
    """The code goes one way or another by data."""
    NUMBER = "data-dependent-number"
    """The code needs a number out of data."""
    SIZES = "sizes"
    """The code does not leave the sizes free that ``dynamic_shapes`` declares."""
    EXAMPLE = "example-size"
    """A size of the example is 0 or 1, which an export fixes."""
    NO_FAKE_KERNEL = "no-fake-kernel"
    INPUT = "input-type"
    """It is given an object of a type that an export cannot take apart."""
    OUTPUT = "output-type"
    """It returns such an object."""
    UNTRACEABLE = "graph-break"
    """Dynamo cannot trace it: ``strict=True``."""
    ERROR = "error"
    """Anything else that was raised."""


@dataclass(frozen=True, slots=True)
class ProblemRead:
    """A problem, what it is about (an expression, an operator, a size, a class), what torch says of it, and the fixes
    that it suggests."""

    problem: ExportProblem
    about: str
    said: str = ""
    fixes: tuple[str, ...] = ()


_PATTERNS = (
    (ExportProblem.TEST, re.compile(r"Could not guard on data-dependent expression (.+?) \(unhinted")),
    (
        ExportProblem.NUMBER,
        re.compile(r"Could not extract specialized integer from data-dependent expression (.+?) \(unhinted"),
    ),
    (ExportProblem.NO_FAKE_KERNEL, re.compile(r"no fake impl registered for <CustomOpDef\(([^)]+)\)>")),
    (ExportProblem.NO_FAKE_KERNEL, re.compile(r"unsupported operator: ([\w.:]+)")),
    (ExportProblem.SIZES, re.compile(r"Constraints violated \((.+?)\)!")),
    (ExportProblem.OUTPUT, re.compile(r"Found <class '([^']+)'> in output, which is not a known type")),
    (ExportProblem.OUTPUT, re.compile(r"unrecognized type \w+Variable\(([^)]+)\) at output \d+")),
    (ExportProblem.INPUT, re.compile(r"Unsupported input type <class '([^']+)'>")),
    (ExportProblem.INPUT, re.compile(r"one of the inputs with type `<class '([^']+)'>` is not supported")),
)
_SYMBOL = re.compile(r"z?u[a-z]?\d+")
"""A number, of which no outcome of a test is asked."""
_FIXED = re.compile(r"specialized it to be a constant \((\d+)\)")
_EACH_SIZE = re.compile(r"^  - (.+)$", re.M)
_FIXES = re.compile(r"^Suggested fixes:\n((?:[ \t]+\S.*(?:\n|$))+)", re.M)


def problem_of(error: str, text: str) -> ProblemRead:
    """The problem of an exception, by its type and its text."""
    if error == "UnsupportedOperatorException" and text:
        # Its text is the name of the operator, with what ``export`` adds.
        return ProblemRead(ExportProblem.NO_FAKE_KERNEL, _operator(text.split()[0]))
    for problem, pattern in _PATTERNS:
        if found := pattern.search(text):
            return _read(problem, found[1], text)
    return ProblemRead(ExportProblem.UNTRACEABLE if error == "Unsupported" else ExportProblem.ERROR, "")


def _read(problem: ExportProblem, about: str, text: str) -> ProblemRead:
    if problem is ExportProblem.TEST and _SYMBOL.fullmatch(about):
        return ProblemRead(ExportProblem.NUMBER, about)
    if problem is ExportProblem.SIZES:
        said = next((one[1] for one in _EACH_SIZE.finditer(text)), "")
        fixed, fixes = _FIXED.search(said), _FIXES.search(text)
        if fixed and fixed[1] in ("0", "1"):
            return ProblemRead(ExportProblem.EXAMPLE, about)
        each = tuple(line.strip() for line in fixes[1].splitlines()) if fixes else ()
        return ProblemRead(problem, about, f"it can only be {fixed[1]}" if fixed else said, each)
    if problem in (ExportProblem.INPUT, ExportProblem.OUTPUT):
        return ProblemRead(problem, about.rpartition(".")[2])
    return ProblemRead(problem, _operator(about) if problem is ExportProblem.NO_FAKE_KERNEL else about)


def _operator(name: str) -> str:
    """``lib::op`` for ``lib.op.default``."""
    namespace, _, rest = name.partition(".")
    return f"{namespace}::{rest.removesuffix('.default')}" if rest else name
