"""Each remedy of docs/remedies.md is offered for the first program of its section, and the second has no problem."""

import re
import runpy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import breakscan
from breakscan.explanation.explanation import Explanation
from breakscan.model.problem import AROUND_COMPILER, Problem
from breakscan.model.remedy import DYNAMO, Remedy, RemedyKind
from breakscan.rulebook.remedies import remedy_table

pytestmark = pytest.mark.torch
CATALOGUE = Path(__file__).parents[2] / "docs" / "remedies.md"

WITHOUT_A_CASE = {
    # Of libraries, and of what torch's own code wants.
    "break-of-library", "dynamic-sources", "outside", "part-without-library",
    # Of stances and modes, which say so themselves.
    "outside-mode", "outside-stance", "warm-up-before-stance",
    # Of a problem about which nothing need be done.
    "emulate_precision_casts", "unbacked",
    "made-once", "remove-break-above", "same-arguments", "set-before",
}  # fmt: skip


class Case(NamedTuple):
    """A program that has a problem, what becomes of it (None where the remedy is applied as it is), and the breaks
    and recompiles that are left."""

    name: str
    before: str
    after: str | None
    leaves: int


def cases() -> Iterator[Case]:
    for section in re.split(r"^## ", CATALOGUE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        pattern = r'^```python title="(before|after)(?:, leaves (\d+))?"\n(.*?)^```$'
        fences = re.findall(pattern, section, re.M | re.S)
        texts = {word: text for word, _, text in fences}
        left = sum(int(number) for _, number, _ in fences if number)
        yield Case(section.split("\n", 1)[0].strip(), texts["before"], texts.get("after"), left)


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
    kept = [one for one in explanation.problems if one.cause is None and (one.verdict or one.kind in AROUND_COMPILER)]
    nothing = RemedyKind.NOTHING
    return [one for one in kept if not any(remedy.kind is nothing for remedy in one.remedies[:1])]


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
    offered = {remedy.name: remedy for problem in before for remedy in problem.remedies}
    assert case.name in offered
    for text in filter(None, (case.after, applied(offered[case.name], case.before))):
        left = problems(explained(tmp_path, text))
        assert sum(problem.count for problem in left) == case.leaves
        assert not any(problem.shared and problem.shared.limit for problem in left)
    assert case.after or applied(offered[case.name], case.before)


def test_each_remedy_that_changes_something_has_a_case() -> None:
    names = {name for name, entry in remedy_table().items() if entry["kind"] != RemedyKind.NOTHING.value}
    assert names - {case.name for case in cases()} == WITHOUT_A_CASE
