"""The report of ``explain`` for pull requests."""

from dataclasses import replace

import explain_results as made
import pytest

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.problems import break_problem
from breakscan.report.markdown import LIMIT, code, paragraph, prose


def written(told: Explanation) -> str:
    return made.written("markdown", told)


def rows_of(text: str, title: str) -> list[list[str]]:
    """The rows of the table whose first title it is."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {title} |"))
    end = next((n for n, line in enumerate(lines[start:], start) if not line.startswith("|")), len(lines))
    return [line.strip("| ").split(" | ") for line in lines[start + 2 : end]]


def test_it_begins_with_its_mark_and_the_headline() -> None:
    lines = written(made.explanation()).splitlines()
    assert lines[0] == "<!-- breakscan explain -->"
    assert lines[1].startswith("### breakscan: 1 function fails to compile.  3 sites break the graph 5 times")
    assert lines[3].startswith("train.py finished with exit status 0 · 212 s")


def test_a_break_says_where_why_what_instead_and_its_price() -> None:
    text = written(made.explanation())
    (first,) = rows_of(text, "graph break")
    assert first == [
        "runs eager 3×",
        "`src/model.py:3` in `Block.forward`",
        "BRK201 tensor-item: the number exists only once the graph has run, so the graph ends here<br>"
        "Block.forward runs as plain Python, without a graph, from this call on: the break is inside a loop.",
        prose(break_problem(made.BREAK).advice or ""),
        prose(made.PRICE.words),
    ]
    (raising, failing) = rows_of(text, "failed to compile")
    assert raising[1] == "`src/model.py:9` in `Block.forward`<br>from `train.py:41`"
    assert raising[3] == prose(break_problem(made.RAISES).advice or "")
    assert failing[0] == "`bad` 2×"


def test_breaks_in_libraries_are_folded_and_name_the_users_line() -> None:
    folded = written(made.explanation()).partition("<summary>1 break in library code</summary>\n\n")[2]
    (row,) = rows_of(folded, "graph break")
    assert row[1] == "`lib/attention.py:88` in `attend`<br>from `src/model.py:3`"


def test_recompiles_say_what_changed_and_what_came_of_it() -> None:
    (row,) = rows_of(written(made.explanation()), "recompiled")
    assert row[0] == "`Block.forward` 2×"
    assert row[2] == (
        "x.shape&#91;0&#93; was 32, then 31, 30 (BRK711 changing-size)<br>"
        "Block.forward runs eager from then on: 8 versions of it are compiled, which is the limit "
        "(torch.&#95;dynamo.config.recompile&#95;limit), so further variants run eager."
    )
    assert row[1] == "`src/model.py:2`<br>from `train.py:41`"


def test_a_clean_run_is_two_lines() -> None:
    told = made.explanation(
        breaks=(), recompiles=(), frames=(), ranks=None, cudagraph_skips=(), specialisations=(), notices=(),
        compiles=(), graphs=(replace(made.UNTOLD, number=0),), calls=(), exports=(), export_problems=(),
    )  # fmt: skip
    text = written(told)
    assert "### breakscan: No graph breaks and no recompiles: 1 graph of 74 operations." in text
    assert "|" not in text


@pytest.mark.parametrize("number", [100, 5000])
def test_a_long_report_is_cut_where_github_would_refuse_it(number: int) -> None:
    breaks = [replace(made.BREAK, site=replace(made.SITE, line=n, end_line=n)) for n in range(1, number + 1)]
    text = written(made.explanation(breaks=breaks))
    assert len(text) <= LIMIT < 65_536
    cut = text.rstrip().endswith("`breakscan explain --format html` or `--format json` shows everything.")
    assert cut == (number == 5000)
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("x.sin()", "`x.sin()`"),
        ("a|b", "<code>a&#124;b</code>"),
        ("a`b", "<code>a&#96;b</code>"),
        ("a\\", "<code>a&#92;</code>"),
        ("@me|", "<code>&#64;&#8203;me&#124;</code>"),
        ("", "<code></code>"),
    ],
)
def test_code(text: str, markdown: str) -> None:
    assert code(text) == markdown


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("plain, words: 1.5 (so)", "plain, words: 1.5 (so)"),
        ("<b> & *x*_y_", "&#60;b&#62; &#38; &#42;x&#42;&#95;y&#95;"),
        ("see #12, @me", "see &#35;&#8203;12, &#64;&#8203;me"),
        ("https://a.b www.c.d GH-1", "https:&#8203;//a.b www&#8203;.c.d GH-&#8203;1"),
        ("x" * 400, "x" * 299 + "…"),
    ],
)
def test_prose(text: str, markdown: str) -> None:
    assert prose(text) == markdown


def test_a_paragraph_begins_no_list() -> None:
    assert paragraph("1. first") == "&#49;. first"
    assert paragraph("- first") == "&#45; first"
