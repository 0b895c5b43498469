"""What stands at a recorded place: span, function, the form of a branch, what encloses it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from breakscan.explanation.user_source import UserSource
from breakscan.model.findings import Place, Site
from breakscan.recording.records import StackFrame
from breakscan.source.source_files import SourceFiles


@pytest.fixture
def write(tmp_path: Path) -> object:
    def writer(text: str) -> tuple[UserSource, str]:
        path = tmp_path / "model.py"
        path.write_text(text, encoding="utf-8")
        return UserSource(lambda recorded: Path(recorded).name, SourceFiles.trusted()), str(path)

    return writer


def place_of(text: str, code: str) -> tuple[int, int, int]:
    """Line, column and end column of ``code``, as CPython counts them."""
    before, _, _ = text.partition(code)
    line = before.count("\n") + 1
    column = len(before.rpartition("\n")[2].encode())
    return line, column, column + len(code.encode())


BRANCHES = [
    ("if t.any():\n    y = 1\n", "t.any()", "if"),
    ("if not t.any():\n    y = 1\n", "t.any()", "if"),
    ("if t.any():\n    raise ValueError\n", "t.any()", "guard"),
    ("while t.any():\n    pass\n", "t.any()", "while"),
    ("y = 1 if t.any() else 2\n", "t.any()", "ternary"),
    ("y = [v for v in t if v > 0]\n", "v > 0", "filter"),
    ("y = t.any() and t.all()\n", "t.any()", "and"),
    ("if t.any() or t.all():\n    y = 1\n", "t.any()", "or"),
    ("y = not t.any()\n", "not t.any()", "not"),
    ("assert t.any(), 'text'\n", "t.any()", "assert"),
    ("assert t.any(), f'{t}'\n", "t.any()", "assert-message"),
    ("y = t.sum() in [1, 2]\n", "t.sum() in [1, 2]", "in"),
    ("y = t.item()\n", "t.item()", None),
]


@pytest.mark.parametrize(("text", "code", "form"), BRANCHES)
def test_the_form_of_a_branch(write, text: str, code: str, form: str | None) -> None:
    sources, path = write(text)
    assert sources.form(path, *place_of(text, code)) == form


@pytest.mark.parametrize(("text", "code", "form"), [b for b in BRANCHES if b[2] not in ("not", "in")])
def test_the_form_without_columns(write, text: str, code: str, form: str | None) -> None:
    """Python 3.10 has none, and torch 2.11 only for the function that it compiles."""
    sources, path = write(text)
    assert sources.form(path, 1, None, None) == form


def test_a_span_counts_characters_and_ends_where_the_expression_ends(write) -> None:
    text = "é = (t\n  .item())\n"
    sources, path = write(text)
    assert sources.site(path, 1, 6, 9) == Site("model.py", 1, 6, 2, 10)


def test_without_a_column_the_span_is_the_statements_head(write) -> None:
    sources, path = write("for x in (1,\n          2):\n    x += 1\n")
    assert sources.site(path, 1) == Site("model.py", 1, 1, 2, 13)


def test_a_function_is_named_with_what_it_stands_in(write) -> None:
    sources, path = write(
        "class A:\n    @property\n    def f(self):\n        def g():\n            return 1\n        return g\n"
    )
    assert sources.function(path, 2) == "A.f"
    assert sources.function(path, 5) == "A.f.g"
    assert sources.function(path, 1) is None


def test_what_encloses_a_place_ends_at_its_function(write) -> None:
    text = """for i in r:
    def f():
        with a:
            try:
                x
            finally:
                pass
"""
    sources, path = write(text)
    assert sources.places(path, 5) == {Place.WITH, Place.TRY}
    assert sources.places(path, 2) == {Place.LOOP}


def test_a_parameter_is_found(write) -> None:
    sources, path = write("@deco\ndef f(a, *, b=1):\n    pass\n")
    assert sources.parameter(path, 1, "b") == Site("model.py", 2, 13, 2, 14)
    assert sources.parameter(path, 1, "c") is None


@pytest.mark.parametrize("text", [None, "def broken(:\n", "\x00"])
def test_a_file_that_cannot_be_read_still_has_a_site(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "gone.py"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    sources = UserSource(str, SourceFiles.trusted())
    assert sources.site(str(path), 3, 4, 9) == Site(str(path), 3, 5, 3, 10)
    assert sources.function(str(path), 3) is None
    assert sources.form(str(path), 3, 4, 9) is None


@pytest.mark.parametrize(
    ("call", "expression"),
    [
        ("zero(batch.x)", "batch.x"),
        ("zero(g.reshape(2, -1)).view(g.shape)", None),  # what view is given is not what zero is given
        ("step(batch.x).view(g.shape)", "batch.x"),
        ("loss(model(batch.x), target)", None),
    ],
)
def test_what_a_call_passes_is_that_of_the_call_of_the_function(
    call: str, expression: str | None, write: Callable[[str], tuple[UserSource, str]]
) -> None:
    source, path = write(f"def zero(x):\n    return x\n{call}\n")
    assert source.passed(StackFrame(path, 3, "<module>"), path, 1, "x") == expression


@pytest.mark.parametrize(
    ("code", "compares"),
    [
        ("print((rope(q) - fast(q)).abs().max())", True),
        ("torch.testing.assert_close(rope(q, 1), fast(q, 1))", True),
        ("print(rope(q) + fast(q))", False),
        ("print(rope(q) - fast(k))", False),
        ("print(rope(q) - rope(q))", False),
    ],
)
def test_a_line_that_compares_two_functions(write, code: str, compares: bool) -> None:
    sources, path = write(f"{code}\n")
    assert sources.compares(path, 1) is compares


@pytest.mark.parametrize(
    ("code", "passes_on", "calls"),
    [
        ("f(*args, **kwargs)", True, True),
        ("f(args)", False, True),
        ("g(*args)", True, False),
        ("g(*others)", False, False),
    ],
)
def test_a_line_that_calls_what_it_was_given(write, code: str, passes_on: bool, calls: bool) -> None:
    sources, path = write(f"def wrapper(f, *args, **kwargs):\n    return {code}\n")
    assert (sources.passes_on(path, 2), sources.calls_parameter(path, 2)) == (passes_on, calls)
