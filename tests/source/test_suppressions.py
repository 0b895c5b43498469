"""Comments that silence findings, comments that try to, and comments that are added to any statement."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakscan.model.findings import Confidence, Finding, Kind, Severity, Site
from breakscan.source.module import parse_module
from breakscan.source.suppressions import Suppressions, with_suppressions

RULES = {"BRK101": "branch-on-tensor", "BRK102": "while-on-tensor", "BRK201": "item"}


def read(text: str) -> Suppressions:
    return Suppressions.read(parse_module(text, Path("x.py"), "x.py"))


def finding(line: int, rule: str = "BRK101") -> Finding:
    return Finding(
        rule, RULES.get(rule, "name"), Kind.GRAPH_BREAK, Severity.WARNING, Confidence.CERTAIN, "m",
        Site("x.py", line, 1, line, 2), None, None, (), "2.13",
    )  # fmt: skip


def silenced(text: str, rule: str = "BRK101") -> list[int]:
    suppressions = read(text)
    assert suppressions.malformed == ()
    return [n for n, _ in enumerate(text.splitlines(), 1) if suppressions.covers(finding(n, rule))]


def problem_with(word: str) -> str | None:
    is_known = any(rule.startswith(word.upper()) or name == word for rule, name in RULES.items())
    return None if is_known else f"no rule is called {word!r}: did you mean BRK101?"


@pytest.mark.parametrize(
    ("comment", "rules"),
    [
        ("# breakscan: ignore", {"BRK101", "BRK102", "BRK201"}),
        ("# breakscan: ignore it is fine here", {"BRK101", "BRK102", "BRK201"}),
        ("# breakscan: ignore[BRK101]", {"BRK101"}),
        ("# breakscan: ignore[BRK101] debug output, never compiled", {"BRK101"}),
        ("# breakscan: ignore[brk101,item]", {"BRK101", "BRK201"}),
        ("# breakscan: ignore[ BRK101 , while-on-tensor ]", {"BRK101", "BRK102"}),
        ("# breakscan: ignore[BRK1]", {"BRK101", "BRK102"}),
        ("# breakscan: ignore[ALL]", {"BRK101", "BRK102", "BRK201"}),
        ("#breakscan:ignore[BRK101]", {"BRK101"}),
        ("# breakscan: ignore [BRK101]", {"BRK101"}),
        ("# type: ignore  # breakscan: ignore[BRK101]  # noqa: E501", {"BRK101"}),
        ("# breakscan: ignore[BRK101]  # breakscan: ignore[BRK201]", {"BRK101", "BRK201"}),
        ("# noqa", set()),
        ("# breakscan is a tool", set()),
    ],
)
def test_a_comment_silences_the_rules_that_it_names(comment: str, rules: set[str]) -> None:
    assert {rule for rule in RULES if silenced(f"x = 1  {comment}\n", rule)} == rules


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a = 1\nb = 2  # breakscan: ignore\nc = 3\n", [2]),
        ("f(\n    a,\n    b,  # breakscan: ignore\n    c,\n)\nd = 1\n", [1, 2, 3, 4, 5]),
        ("f(\n    a,\n)  # breakscan: ignore\nd = 1\n", [1, 2, 3]),
        ("f(  # breakscan: ignore\n    a,\n)\nd = 1\n", [1, 2, 3]),
        ("f(\n    # breakscan: ignore\n    a,\n)\nd = 1\n", [1, 2, 3, 4]),
        ("x = 1 + \\\n    2  # breakscan: ignore\ny = 1\n", [1, 2]),
        ("x = '''\n'''  # breakscan: ignore\ny = 1\n", [1, 2]),
        ("if (\n    a\n):  # breakscan: ignore\n    b = 1\n", [1, 2, 3]),
        ("if a:  # breakscan: ignore\n    b = 1\nelif c:\n    d = 1\n", [1]),
        ("if a:\n    b = 1\nelif c:  # breakscan: ignore\n    d = 1\nelse:\n    e = 1\n", [3]),
        ("for a in (\n    b  # breakscan: ignore\n):\n    c = 1\n", [1, 2, 3]),
        ("with (\n    a as b,\n    c as d,  # breakscan: ignore\n):\n    e = 1\n", [1, 2, 3, 4]),
        ("def f(\n    a,  # breakscan: ignore\n):\n    return a\n", [1, 2, 3]),
        ("@g\ndef f():  # breakscan: ignore\n    return 1\n", [2]),
        ("a = 1; b = 2  # breakscan: ignore\nc = 1\n", [1]),
        ("a = 1\n# breakscan: ignore\nb = f(\n    c\n)\nd = 1\n", [3, 4, 5]),
        ("if a:\n    # breakscan: ignore\n\n    b = 1\n    c = 1\n", [4]),
        ("a = 1  # breakscan: ignore", [1]),
        ("a = 1\n# breakscan: ignore", []),
        ("x = '# breakscan: ignore'\n", []),
        ("x = f'{1}# breakscan: ignore'\n", []),
        ('"""\n# breakscan: ignore\n"""\nx = 1\n', []),
    ],
)
def test_a_comment_speaks_for_its_statement(text: str, lines: list[int]) -> None:
    assert silenced(text) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a = 1\n# breakscan: ignore-file\nb = 1\n", [1, 2, 3]),
        ("a = 1\n# breakscan: ignore-file[BRK1] generated\nb = 1\n", [1, 2, 3]),
        ("def f():\n    # breakscan: ignore-file[BRK101]\n    pass\n", [1, 2, 3]),
        ("# breakscan: ignore-file[BRK201]\na = 1\n", []),
        ("x = '''\n# breakscan: ignore-file\n'''\n", []),
    ],
)
def test_ignore_file_speaks_for_the_file(text: str, lines: list[int]) -> None:
    assert silenced(text) == lines


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# breakscan: ignore[BRK101", "write ignore[BRK101, …]: no ] in the brackets"),
        ("# breakscan: ignore[]", "write ignore[BRK101, …]: no rule in the brackets"),
        ("# breakscan: ignore[ , ]", "write ignore[BRK101, …]: no rule in the brackets"),
        ("# breakscan: ignore BRK101", "put the rule into brackets: ignore[BRK101]"),
        ("# breakscan: ignore: BRK101 as it must", "put the rule into brackets: ignore[BRK101]"),
        ("# breakscan: ignore=brk1", "put the rule into brackets: ignore[brk1]"),
        ("# breakscan: ignore branch-on-tensor", "put the rule into brackets: ignore[branch-on-tensor]"),
        ("# breakscan: noqa", "'breakscan: noqa' is not known: write ignore[…] or ignore-file[…]"),
        ("# breakscan: ignored[BRK101]", "'breakscan: ignored' is not known: write ignore[…] or ignore-file[…]"),
        ("# breakscan: disable=BRK101", "'breakscan: disable' is not known: write ignore[…] or ignore-file[…]"),
        ("# breakscan: ignore-file", "ignore-file must stand on a line of its own: write ignore for this statement"),
    ],
)
def test_a_malformed_comment_silences_nothing_and_is_reported(comment: str, said: str) -> None:
    suppressions = read(f"a = 1\nx = 1  {comment}\n")
    assert not any(suppressions.covers(finding(line, rule)) for line in (1, 2) for rule in RULES)
    problem = suppressions.problems(problem_with)[0]
    assert (problem.path, problem.line, problem.column) == ("x.py", 2, 8)
    assert problem.message == f"this comment silences nothing: {said}"


def test_an_unknown_rule_silences_nothing_and_is_reported_the_others_count() -> None:
    suppressions = read("größe = 1  # breakscan: ignore[BRK111, BRK201, wile-on-tensor]\n")
    assert [rule for rule in RULES if suppressions.covers(finding(1, rule))] == ["BRK201"]
    assert [(p.line, p.column, p.message) for p in suppressions.problems(problem_with)] == [
        (1, 12, "suppression: no rule is called 'BRK111': did you mean BRK101?"),
        (1, 12, "suppression: no rule is called 'wile-on-tensor': did you mean BRK101?"),
    ]


words = st.sampled_from(["BRK101", "BRK1", "item", "ALL", "BRK999", "x", "", "]", "[", ",", "#", " ", "ü"])


@given(st.lists(words, max_size=6), st.sampled_from(["ignore", "ignore-file", "ignor", ""]), st.text(max_size=8))
def test_no_comment_silences_more_than_it_names(inside: list[str], kind: str, reason: str) -> None:
    comment = f"# breakscan: {kind}[{','.join(inside)}] {reason}".splitlines()[0].replace("\0", "").replace("\r", "")
    suppressions = read(f"x = 1  {comment}\ny = 2\n")
    assert not suppressions.covers(finding(2)), "the comment stands behind line 1"
    named = comment.partition("[")[2].partition("]")[0].upper()
    for rule, name in RULES.items():
        if suppressions.covers(finding(1, rule)):
            assert kind == "ignore"
            assert any(
                word and (rule.startswith(word) or word in (name.upper(), "ALL"))
                for word in (w.strip() for w in named.split(","))
            )


def suppresses(text: str, line: int, rule: str) -> bool:
    suppressions = read(text)
    assert not suppressions.malformed
    return suppressions.covers(finding(line, rule))


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
    assert suppresses(after, line, "BRK101")


def test_all_rules_of_a_statement_are_in_one_comment() -> None:
    text = with_suppressions("x = f(\n    a,\n)\n", {2: ["BRK201", "BRK101"], 3: ["BRK401"]}, "later")
    assert suppresses(text, 2, "BRK101")
    assert suppresses(text, 2, "BRK201")
    assert suppresses(text, 3, "BRK401")


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
        assert suppresses(after, line, "BRK101")
        assert suppresses(after, line, "BRK201")
