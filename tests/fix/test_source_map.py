"""An edit says where its lines come from."""

import libcst as cst
from hypothesis import given, settings
from hypothesis import strategies as st

from breakscan.fix.apply import applied
from breakscan.fix.source_map import SourceMap
from breakscan.fix.support.context import Edit, FileTree
from breakscan.model.facts import FileFacts

BEFORE = """\
def f(x):
    if not x.sum():
        return 0

    y = x[x > 0]
    return y.mean()
"""
AFTER = """\
def f(x):
    y = x[x > 0]
    return where(
        x.sum() == 0,
        0,
        y.mean(),
    )

"""


def test_a_line_that_stays_is_found_where_it_was() -> None:
    lines = SourceMap.of_change(BEFORE, AFTER)
    assert [lines.before(number) for number in (1, 2)] == [1, 5]
    assert lines.changed_lines() >= {3, 4, 5, 6, 7}
    assert 2 in lines.changed_lines()


def test_of_equal_lines_none_is_said_to_have_moved() -> None:
    lines = SourceMap.of_change("a = 1\nif c:\n    b = 2\nelse:\n    b = 2\n", "a = 1\nb = 2\n")
    assert lines.before(2) == 2


# -- random edits -----------------------------------------------------------------------------------------------------

Statement = st.sampled_from(["s{n} = {n}", "if c{n}:\n    t{n} = 1\n    u{n} = 2", "# note {n}\nv{n} = f({n})"])
Change = st.sampled_from(["keep", "drop", "grow", "name"])


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[str]]:
    kinds = draw(st.lists(Statement, min_size=1, max_size=8))
    text = "".join(kind.replace("{n}", str(number)) + "\n" for number, kind in enumerate(kinds))
    return text, draw(st.lists(Change, min_size=len(kinds), max_size=len(kinds)))


def edited(text: str, changes: list[str], mark: str) -> tuple[str, SourceMap]:
    """Each statement of the file is kept, dropped, replaced by several, or has its first name replaced."""
    tree = FileTree(text, FileFacts())
    edits = []
    statements = [one for one in tree.module.body if "import" not in tree.module.code_for_node(one)]
    for statement, change in zip(statements, changes, strict=False):
        if change == "drop":
            edits.append(Edit({statement: None}))
        elif change == "grow":
            more = [cst.parse_statement(f"{mark}{number} = {number}") for number in range(3)]
            edits.append(Edit({statement: [*more, statement]}))
        elif change == "name":
            target = statement.test if isinstance(statement, cst.If) else statement.body[0].value
            edits.append(Edit({target: cst.Name(f"{mark}x")}))
    after = applied(tree, edits, ["zz"] if mark == "a" else [])
    return after, SourceMap.of_change(text, after)


@settings(deadline=None, max_examples=60)
@given(programs(), st.lists(Change, min_size=12, max_size=12))
def test_unchanged_lines_map_to_themselves_and_rounds_compose(program: tuple[str, list[str]], again: list[str]) -> None:
    text, changes = program
    once, first = edited(text, changes, "a")
    twice, second = edited(once, again, "b")
    whole = first.then(second)
    for lines, before, after in ((first, text, once), (second, once, twice), (whole, text, twice)):
        old, new = before.split("\n"), after.split("\n")
        assert len(lines.origins) == len(new)
        for number, line in enumerate(new, 1):
            assert 1 <= lines.before(number) <= len(old)
            if lines.kept[number - 1]:
                assert old[lines.before(number) - 1] == line
        # Each line has its own number: what is there on both sides is found again, wherever it stands.
        for number, line in enumerate(new, 1):
            if line.strip() and old.count(line) == new.count(line) == 1:
                assert old[lines.before(number) - 1] == line
    step_by_step = [first.before(second.before(number)) for number in range(1, len(whole.origins) + 1)]
    assert step_by_step == [whole.before(number) for number in range(1, len(whole.origins) + 1)]
