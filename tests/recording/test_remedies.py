"""Each remedy of docs/remedies.md is offered for the first program of its section, and the second has no problem."""

from __future__ import annotations

import re
import runpy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import breakscan
from breakscan.explanation.explanation import Explanation
from breakscan.model.problem import Problem
from breakscan.model.remedy import DYNAMO, Remedy, RemedyKind

pytestmark = pytest.mark.torch
CATALOGUE = Path(__file__).parents[2] / "docs" / "remedies.md"


class Case(NamedTuple):
    """A program that has a problem, and what becomes of it."""

    name: str
    before: str
    after: str


def cases() -> Iterator[Case]:
    for section in re.split(r"^## ", CATALOGUE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        fences = re.findall(r"^```python (before|after)\n(.*?)^```$", section, re.M | re.S)
        befores, afters = ([text for word, text in fences if word == wanted] for wanted in ("before", "after"))
        for before, after in zip(befores, afters, strict=True):
            yield Case(section.split("\n", 1)[0].strip(), before, after)


def explained(folder: Path, text: str) -> Explanation:
    import torch

    config: Any = torch._dynamo.config
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    torch._dynamo.reset()
    kept = config.get_config_copy()
    try:
        with breakscan.record() as recording:
            runpy.run_path(str(program), run_name="__main__")
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # setting a deprecated flag, if only to what it was, warns
            config.load_config(kept)
    return recording.explain().explanation


def problems(explanation: Explanation) -> list[Problem]:
    """Those about which something can be done."""
    kept = [one for one in explanation.problems if one.cause is None and one.verdict is not None]
    return [one for one in kept if not (one.remedies and one.remedies[0].kind is RemedyKind.NOTHING)]


def applied(remedy: Remedy, text: str) -> str | None:
    """The program with what the remedy changes; None where only a person can."""
    lines = text.split("\n")
    if remedy.write is not None:
        at = remedy.write.line - 1
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        return "\n".join([*lines[:at], indent + remedy.write.code, *lines[at:]])
    if remedy.settings and all(setting.owner == DYNAMO for setting in remedy.settings):
        return "\n".join(["import logging, torch", *map(str, remedy.settings), text])
    return None


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_remedy_removes_the_problem(case: Case, tmp_path: Path) -> None:
    before = problems(explained(tmp_path, case.before))
    offered = [remedy for problem in before for remedy in problem.remedies]
    assert case.name in [remedy.name for remedy in offered]
    assert problems(explained(tmp_path, case.after)) == []
    text = applied(next(remedy for remedy in offered if remedy.name == case.name), case.before)
    assert text is None or problems(explained(tmp_path, text)) == []
