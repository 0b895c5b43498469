"""The findings in programs: the Markdown files of ``cases/``.

A case is a section with a block of code.  A comment marks each line with findings: ``# ! BRK101; BRK201``.  The words
after ``python`` are settings, such as ``regions=all``, and:

- ``exact``: the comment also has the condition, and the confidence if it is not certain: ``BRK101 likely if `n > 2```;
- ``compiled``: the program is also run, and the installed Dynamo breaks in ``f`` if and only if a line is marked.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from asked import IMPORTS, breaks, found

from breakscan.model.findings import CheckResult, Confidence, Finding
from breakscan.report.findings import conditions_in_words


class Case(NamedTuple):
    name: str
    words: list[str]
    source: str

    def marks(self) -> list[tuple[int, list[str]]]:
        """The lines with a comment, and the findings in it."""
        comments = ((n, line.partition("# ! ")[2]) for n, line in enumerate(self.source.splitlines(), 1))
        return [(number, text.split("; ")) for number, text in comments if text]

    def rules(self) -> set[tuple[int, str]]:
        return {(line, rule) for line, texts in self.marks() for rule in re.findall(r"BRK\d+", " ".join(texts))}


def cases() -> list[Case]:
    """All cases, in the order of their files."""
    found = []
    for path in sorted((Path(__file__).parent / "cases").glob("*.md")):
        section = r"^## (.+)\n(?:(?!```).*\n)*?```python(.*)\n((?:.*\n)*?)```$"
        for name, words, source in re.findall(section, path.read_text(encoding="utf-8"), re.MULTILINE):
            found.append(Case(f"{path.stem}-{name}", words.split(), source))
    return found


CASES = cases()
COMPILED = [case for case in CASES if "compiled" in case.words]


def exact(finding: Finding) -> str:
    confidence = "" if finding.confidence is Confidence.CERTAIN else f" {finding.confidence.value}"
    condition = conditions_in_words(finding.conditions)
    return f"{finding.rule}{confidence}{f' if {condition}' if condition else ''}"


@pytest.mark.parametrize("case", [case for case in CASES if case not in COMPILED], ids=lambda case: case.name)
def test_findings(case: Case, check: Callable[..., CheckResult]) -> None:
    settings = dict(word.split("=") for word in case.words if "=" in word)
    if "confidence" in settings:
        settings["confidence"] = Confidence(settings["confidence"])  # type: ignore[assignment]
    result = check(case.source, **settings)
    assert not result.errors
    first = IMPORTS.count("\n")
    if "exact" in case.words:
        lines: dict[int, list[str]] = {}
        for finding in result.findings:
            lines.setdefault(finding.site.line - first, []).append(exact(finding))
        assert sorted(lines.items()) == case.marks()
    else:
        assert {(one.site.line - first, one.rule) for one in result.findings} == case.rules()


@pytest.mark.parametrize("case", COMPILED, ids=lambda case: case.name)
def test_breaks_are_found(case: Case, tmp_path: Path) -> None:
    assert found(case.source, tmp_path) == case.rules()


@pytest.mark.torch
@pytest.mark.parametrize("case", COMPILED, ids=lambda case: case.name)
def test_the_compiler_agrees(case: Case, tmp_path: Path) -> None:
    assert breaks(case.source, tmp_path) is bool(case.marks())


@pytest.mark.torch
@pytest.mark.parametrize(("index", "broken"), [("at", False), ("at + 1", True)])
def test_the_compiler_knows_an_index_that_is_handed_in(index: str, broken: bool, tmp_path: Path) -> None:
    source = f"at = torch.tensor(2)\n\n\ndef f(x):\n    y = x.sin()\n    return y[{index}].cos()\n"
    assert breaks(source, tmp_path) is broken


def test_cases_have_names_of_their_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES) > 150
