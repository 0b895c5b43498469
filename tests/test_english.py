"""The words of code, pages and rules are those that users know from ruff, pytest and PyTorch."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

REFUSED = {
    r'^\s*r?"""(What|Whether|How|Which) ': "a docstring names the thing or the action: 'Return the …', 'The number …'",
    r"\b(told|tells?|telling)\b": "report, show, list, distinguish",
    r"\bbeside\b": "next to, compared with",
    r"\bknown again\b": "recognized",
    r"\bcomes to\b": "the result is",
    r"\blets go of\b": "releases",
    r"\bof which it is not known\b": "unknown",
    r"\bsays? whether\b": "report if",
    r"\btakes? (\w+ )?out of\b": "removes from",
    r"\bstands? for\b": "is, means",
    r"\bfor granted\b": "assume",
}
"""What is not written, as regular expressions of a line, each with what to write instead."""

PAGES = ("README.md", "CONTRIBUTING.md", "docs", "rules", "benchmarks", "tools")


def lines_of(place: str) -> Iterator[tuple[str, int, str]]:
    path = ROOT / place
    files = [path] if path.is_file() else [*path.rglob("*.py"), *path.rglob("*.md")]
    for file in sorted(files):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            yield file.relative_to(ROOT).as_posix(), number, line


def refused(line: str) -> str | None:
    return next((advice for pattern, advice in REFUSED.items() if re.search(pattern, line)), None)


ROOMS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "breakscan").iterdir()
    if path.suffix in ("", ".py") and path.name != "__pycache__"
)


@pytest.mark.parametrize("place", [*ROOMS, *PAGES])
def test_words_that_only_we_know_are_not_written(place: str) -> None:
    found = [
        f"{path}:{number}: {line.strip()}  ({advice})"
        for path, number, line in lines_of(place)
        if (advice := refused(line))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    ['"""What a call returns."""', "the user is told", "printed beside it", "says whether it ran", "stands for x"],
)
def test_such_a_line_is_found(line: str) -> None:
    assert refused(line)


def test_plain_english_is_not() -> None:
    assert refused('"""Return what a call returns.  Besides, the total is printed next to it."""') is None
