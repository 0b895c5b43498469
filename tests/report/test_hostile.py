"""No report breaks, executes or steers a terminal, whatever the strings of a program are."""

import io
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import explain_results as made
import pytest
from hostile import NASTY, STRINGS, poisoned
from hypothesis import example, given, settings
from report_results import BEHIND, EAGER, SPLIT, UNPARSED, Terminal, report, result, text_of

from breakscan.report.explain import ExplainReport
from breakscan.report.explain.markdown import MARK
from breakscan.report.explain.tables import LISTINGS
from breakscan.report.formats import CHECK, EXPLAIN
from breakscan.report.markdown import LIMIT
from breakscan.report.printable import LONGEST, visible
from tests.conftest import Valid

STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
STYLING = re.compile(
    r"\x1b\[[0-9;]*m|\x1b\]8;(?:;|id=\d+;https://meta-pytorch\.github\.io/compile-graph-break-site/gb/gb\d{4}\.html)\x1b\\"
)
"""Colours, and links to PyTorch's pages about breaks."""
COMMANDS = {"error", "warning", "notice", "group", "endgroup"}

hostile = settings(max_examples=8, deadline=None)
"""Each example replaces hundreds of strings."""


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_WORKSPACE", "GITHUB_ACTIONS", "COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def explained(format_: str, strings: list[str], stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    EXPLAIN.write(format_, ExplainReport(poisoned(made.explanation(), strings), tables=tuple(LISTINGS)), stream)
    return stream.getvalue()


def checked(format_: str, strings: list[str], **more: Any) -> str:
    found = poisoned(result(EAGER, SPLIT, BEHIND, errors=(UNPARSED,)), strings)
    return text_of(CHECK, format_, report(found, **more))


@hostile
@given(strings=STRINGS)
@example(strings=list(NASTY))
def test_json_is_valid_and_keeps_every_string(valid: Valid, strings: list[str]) -> None:
    text = explained("json", strings)
    assert text.isascii()
    data = valid(text, "explain")
    expected = poisoned(made.explanation(), strings)
    assert data["breaks"][0]["reason"] == expected.breaks[0].reason
    assert data["compiles"][0]["guards"][0]["text"] == expected.compiles[0].guards[0].text


@hostile
@given(STRINGS)
@example(list(NASTY))
def test_the_log_of_a_workflow_holds_only_our_commands(strings: list[str]) -> None:
    for text in (explained("github", strings), checked("github", strings)):
        assert text.endswith("\n")
        levels: Counter[str] = Counter()
        folded = 0
        for line in text[:-1].split("\n"):
            assert not STEERING.search(line)
            if not line.lstrip().startswith("::"):
                assert "##[" not in line
                continue
            command = re.fullmatch(r"::([a-z]+)( [^:]*)?::(.*)", line)
            assert command, line
            assert command[1] in COMMANDS
            levels[command[1]] += 1
            folded += {"group": 1, "endgroup": -1}.get(command[1], 0)
            keys = [pair.partition("=")[0] for pair in (command[2] or "").split(",") if pair]
            assert set(keys) <= {" title", "file", "line", "endLine", "col", "endColumn"}
            assert len(keys) == len(set(keys))
        assert folded == 0
        assert max(levels.values()) <= 10


@hostile
@given(STRINGS)
@example(list(NASTY))
@example(["compile-method"])
def test_the_terminal_is_not_steered(strings: list[str]) -> None:
    plain = [explained("terminal", strings), checked("concise", strings)]
    plain.append(checked("full", strings))
    for text in plain:
        assert not STEERING.search(text)
    coloured = explained("terminal", strings, Terminal())
    assert not STEERING.search(STYLING.sub("", coloured))


@hostile
@given(strings=STRINGS)
@example(strings=list(NASTY))
def test_people_s_reports_hold_no_command_in_a_workflow(strings: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_ACTIONS", "true")
        texts = [explained("terminal", strings), checked("concise", strings)]
        texts.append(checked("full", strings))
    for line in (line for text in texts for line in text.splitlines()):
        assert not line.lstrip().startswith("::")
        assert "##[" not in line


def test_a_hostile_line_of_source_is_shown_and_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    line = "if x.item():  # \x1b[31m \u202e ::error::\x9b"
    (tmp_path / "src" / "model.py").write_text(f"\n\n{line}\n", encoding="utf-8")
    text = io.StringIO()
    explanation = made.explanation(breaks=(replace(made.BREAK, code=line),))
    EXPLAIN.write("terminal", ExplainReport(explanation), text)
    assert "if x.item():  # ␛[31m � ::error::�" in text.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode 模型", "plain ünïcode 模型"),
        ("a\nb\tc", "a b c"),
        ("\x1b[31m\x00\r\x7f", "␛[31m␀␍␡"),
        ("\x9b \u202e \udcff", "� � �"),
        ("x" * (LONGEST + 5), "x" * LONGEST + "… (5 characters more)"),
    ],
)
def test_what_is_shown_of_a_string(text: str, shown: str) -> None:
    assert visible(text) == shown


class Page(HTMLParser):
    """What GitHub would show of a comment: its tags, its tables cell by cell, and the text outside of code."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.open: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.prose = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert not attrs, (tag, attrs)
        self.tags[tag] += 1
        if tag != "br":
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data
        if "code" not in self.open:
            self.prose += data

    def handle_comment(self, data: str) -> None:
        assert data == " breakscan explain "


TAGS = {
    "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "br", "details", "summary", "ul", "li", "strong",
}  # fmt: skip


@hostile
@given(STRINGS)
@example(list(NASTY))
@example([" "])
def test_markdown_holds_only_our_markup(strings: list[str]) -> None:
    cmarkgfm = pytest.importorskip("cmarkgfm", exc_type=ImportError)
    text = explained("markdown", strings)
    assert text.startswith(f"{MARK}\n### breakscan: ")
    assert len(text) <= LIMIT
    assert not STEERING.search(text)
    options = cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE
    html = cmarkgfm.markdown_to_html_with_extensions(
        text, options=options, extensions=["table", "autolink", "strikethrough", "tagfilter", "tasklist"]
    )
    page = Page(html)
    assert set(page.tags) <= TAGS, set(page.tags) - TAGS
    assert not page.open
    assert page.tags["h3"] == 1
    assert page.tags["ul"] == 3
    # GitHub links these in what it has rendered.
    assert not re.search(r"@\w|#\d|GH-\d|://|www\.", page.prose)
    expected = poisoned(made.explanation(), strings)
    assert page.tables[0][0][0] == "failed to compile"
    first = next(table for table in page.tables if table[0][0] == "graph break")[1]
    assert len(first) == 5
    assert first[0] == "runs eager 3×"
    assert first[4] == made.PRICE.words
    shown = _bare(visible(expected.breaks[0].function))[:250]
    assert _bare(first[1]).endswith(shown) if len(shown) < 250 else shown in _bare(first[1])


def _bare(text: str) -> str:
    return re.sub(r"[\s\u200b]+", "", text)
