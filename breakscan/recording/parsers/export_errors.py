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


_TEST = re.compile(r"Could not guard on data-dependent expression (.+?) \(unhinted")
_NUMBER = re.compile(r"Could not extract specialized integer from data-dependent expression (.+?) \(unhinted")
_SYMBOL = re.compile(r"z?u[a-z]?\d+")
"""A number, of which no outcome of a test is asked."""
_NO_FAKE_KERNEL = (
    re.compile(r"no fake impl registered for <CustomOpDef\(([^)]+)\)>"),
    re.compile(r"unsupported operator: ([\w.:]+)"),
)
_UNSUPPORTED_OPERATOR = "UnsupportedOperatorException"
"""Its text is the name of the operator, with what ``export`` adds."""
_TYPES = (
    (ExportProblem.OUTPUT, re.compile(r"Found <class '([^']+)'> in output, which is not a known type")),
    (ExportProblem.OUTPUT, re.compile(r"unrecognized type \w+Variable\(([^)]+)\) at output \d+")),
    (ExportProblem.INPUT, re.compile(r"Unsupported input type <class '([^']+)'>")),
    (ExportProblem.INPUT, re.compile(r"one of the inputs with type `<class '([^']+)'>` is not supported")),
)
_SIZES = re.compile(r"Constraints violated \((.+?)\)!")
_FIXED = re.compile(r"specialized it to be a constant \((\d+)\)")
_EACH_SIZE = re.compile(r"^  - (.+)$", re.M)
_FIXES = re.compile(r"^Suggested fixes:\n((?:[ \t]+\S.*(?:\n|$))+)", re.M)
_BREAK = "Unsupported"


def problem_of(error: str, text: str) -> ProblemRead:
    """The problem of an exception, by its type and its text."""
    if found := _TEST.search(text):
        return ProblemRead(ExportProblem.NUMBER if _SYMBOL.fullmatch(found[1]) else ExportProblem.TEST, found[1])
    if found := _NUMBER.search(text):
        return ProblemRead(ExportProblem.NUMBER, found[1])
    if error == _UNSUPPORTED_OPERATOR and text:
        return ProblemRead(ExportProblem.NO_FAKE_KERNEL, _operator(text.split()[0]))
    for pattern in _NO_FAKE_KERNEL:
        if found := pattern.search(text):
            return ProblemRead(ExportProblem.NO_FAKE_KERNEL, _operator(found[1]))
    if found := _SIZES.search(text):
        said = next((one[1] for one in _EACH_SIZE.finditer(text)), "")
        fixes = _FIXES.search(text)
        each = tuple(line.strip() for line in fixes[1].splitlines()) if fixes else ()
        if (fixed := _FIXED.search(said)) and fixed[1] in ("0", "1"):
            return ProblemRead(ExportProblem.EXAMPLE, found[1])
        return ProblemRead(ExportProblem.SIZES, found[1], f"it can only be {fixed[1]}" if fixed else said, each)
    for problem, pattern in _TYPES:
        if found := pattern.search(text):
            return ProblemRead(problem, found[1].rpartition(".")[2])
    return ProblemRead(ExportProblem.UNTRACEABLE if error == _BREAK else ExportProblem.ERROR, "")


def _operator(name: str) -> str:
    """``lib::op`` for ``lib.op.default``."""
    namespace, _, rest = name.partition(".")
    return f"{namespace}::{rest.removesuffix('.default')}" if rest else name
