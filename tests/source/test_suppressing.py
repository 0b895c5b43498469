"""Comments that suppress findings, added to any statement."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakscan.model.findings import Confidence, Finding, Kind, Severity, Site
from breakscan.source.module import parse_module
from breakscan.source.suppressions import Suppressions, with_suppressions


def finding(rule: str, line: int) -> Finding:
    return Finding(
        rule, "name", Kind.GRAPH_BREAK, Severity.WARNING, Confidence.CERTAIN, "message",
        Site("a.py", line, 1, line, 2), None, None, (), "2.13",
    )  # fmt: skip


def suppresses(text: str, rule: str, line: int) -> bool:
    suppressions = Suppressions.read(parse_module(text, Path("a.py"), "a.py"))
    assert not suppressions.malformed
    return suppressions.covers(finding(rule, line))


CASES = [
    # a line
    ("x = 1\n", 1, "x = 1  # breakscan: ignore[BRK101] later\n"),
    ("x = 1", 1, "x = 1  # breakscan: ignore[BRK101] later"),
    ("x = 1   \ny = 2\n", 1, "x = 1  # breakscan: ignore[BRK101] later\ny = 2\n"),
    # the header of a compound statement
    ("if x:\n    y = 1\n", 1, "if x:  # breakscan: ignore[BRK101] later\n    y = 1\n"),
    # another comment stays in front
    ("x = 1  # type: ignore\n", 1, "x = 1  # type: ignore  # breakscan: ignore[BRK101] later\n"),
    ("x = 1  # breakscan: ignore[BRK201] why\n", 1,
     "x = 1  # breakscan: ignore[BRK201] why  # breakscan: ignore[BRK101] later\n"),
    # lines that cannot end with a comment
    ('x = """a\nb\n"""\n', 1, 'x = """a\nb\n"""  # breakscan: ignore[BRK101] later\n'),
    ("x = 1 + \\\n    2\n", 1, "x = 1 + \\\n    2  # breakscan: ignore[BRK101] later\n"),
    ("x = f(\n    a,\n    b,\n)\n", 2, "x = f(\n    a,\n    b,\n)  # breakscan: ignore[BRK101] later\n"),
    # text that looks like a comment
    ('x = "# breakscan: ignore[BRK201]"\n', 1,
     'x = "# breakscan: ignore[BRK201]"  # breakscan: ignore[BRK101] later\n'),
    ("x = 1; y = 2\n", 1, "x = 1; y = 2  # breakscan: ignore[BRK101] later\n"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "line", "after"), CASES)
def test_a_comment_is_added(before: str, line: int, after: str) -> None:
    assert with_suppressions(before, {line: ["BRK101"]}, "later") == after
    assert suppresses(after, "BRK101", line)


def test_all_rules_of_a_statement_are_in_one_comment() -> None:
    text = with_suppressions("x = f(\n    a,\n)\n", {2: ["BRK201", "BRK101"], 3: ["BRK401"]}, "later")
    assert suppresses(text, "BRK101", 2)
    assert suppresses(text, "BRK201", 2)
    assert suppresses(text, "BRK401", 3)


def test_no_reason_leaves_no_blank() -> None:
    assert with_suppressions("x = 1\n", {1: ["BRK101"]}, "") == "x = 1  # breakscan: ignore[BRK101]\n"


PIECES = st.lists(
    st.sampled_from(
        [
            "x = 1", "y = f(\n    1,\n    2)", 'z = """a\n# b\n"""', "if x:\n    y = 2", "v = 1 + \\\n  2",
            "# note", "",
            "w = [  # c\n    1]", "u = f'''{x}\n'''", "t = 1  # breakscan: ignore[BRK9]", "def g():\n    '''d'''",
        ]
    ),
    min_size=1,
    max_size=8,
)  # fmt: skip


@given(PIECES, st.data())
def test_nothing_but_comments_changes(pieces: list[str], data: st.DataObject) -> None:
    text = "\n".join(pieces) + "\n"
    lines = sorted({node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)})
    if not lines:
        return
    chosen = data.draw(st.lists(st.sampled_from(lines), unique=True))
    after = with_suppressions(text, {line: ["BRK101", "BRK201"] for line in chosen}, "because")
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(text))
    assert len(after.split("\n")) == len(text.split("\n"))
    for line in chosen:
        assert suppresses(after, "BRK101", line)
        assert suppresses(after, "BRK201", line)
