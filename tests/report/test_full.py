"""The report that people read."""

from __future__ import annotations

import io
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from report_results import BEHIND, EAGER, LIBRARY, SOURCE, SPLIT, UNPARSED, report, result
from rich.cells import cell_len

from breakscan.model.findings import Assumption, CheckResult, Finding, Kind, Place, Region, Severity, Verdict
from breakscan.report.check_terminal import write_full

RULE = LIBRARY.select("BRK101")[0]


def written(found: CheckResult, texts: dict[str, str] | None = None) -> str:
    stream = io.StringIO()
    write_full(report(found, {"src/model.py": SOURCE} if texts is None else texts), stream)
    return stream.getvalue()


def test_a_finding_shows_where_what_why_and_what_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    expected = f"""\
        src/model.py:3:8  error  BRK101 branch-on-tensor    in Block.forward, compiled from train.py:41 via Model.forward
             2 │ for h in heads:
             3 │     if x.any():
               │        ━━━━━━━ a Python branch on a tensor's value
           Why: {RULE.why}.
           The break is inside a loop: torch 2.13 runs the whole function eager (0 graphs), not just this line.
           Instead: {RULE.instead}.

        1 error in 41 files (0.4 s) · torch 2.13, default mode
        'breakscan rule BRK101' explains the rule, with examples that compile.
        'breakscan fix' shows a diff of those that it can rewrite.
    """  # noqa: E501
    assert written(result(EAGER)) == textwrap.dedent(expected)


def test_a_span_over_several_lines_and_a_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    expected = f"""\
        src/model.py:5:4  warning  BRK101 branch-on-tensor
             4 │         pass
             5 │ if (
               │    ━
             6 │         y.sum()
               │         ━━━━━━━
             7 │     ):
               │     ━ a Python branch on a tensor's value
           Why: {RULE.why}.
           Only when `mask` is given.
           Instead: {RULE.instead}.
    """
    assert written(result(SPLIT)).startswith(textwrap.dedent(expected))


@pytest.mark.parametrize(
    ("verdict", "place", "sentence"),
    [
        (Verdict.EAGER, Place.TRY, "inside a try: torch 2.13 cannot resume there and runs the rest of the function"),
        (Verdict.EAGER, Place.WITH, "inside a with block: torch 2.13 cannot resume there and runs the rest of"),
        (Verdict.EAGER, Place.PLAIN, "torch 2.13 cannot resume after it and runs the rest of the function eagerly"),
        (Verdict.RAISES, Place.PLAIN, "torch 2.13 raises an error here when it compiles; plain Python does not."),
        (Verdict.UNUSED, Place.PLAIN, "Nothing is ever compiled."),
    ],
)
def test_what_the_verdict_means_is_said(verdict: Verdict, place: Place, sentence: str) -> None:
    assert sentence in " ".join(written(result(replace(EAGER, verdict=verdict, place=place))).split())


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (Place.LOOP, "Net.forward calls this in a loop: torch 2.13 runs all of Net.forward eager"),
        (
            Place.TRY,
            "Net.forward calls this inside a try: torch 2.13 cannot resume there and runs the rest of Net.forward",
        ),
    ],
)
def test_the_caller_that_is_given_up_is_named(place: Place, sentence: str) -> None:
    assert sentence in " ".join(written(result(replace(EAGER, place=place, via="Net.forward"))).split())


@pytest.mark.parametrize(
    ("region", "words"),
    [
        (Region("src/model.py", 5, "", None, Assumption.FORWARD), "in Block.forward, from line 5, assumed compiled"),
        (Region("src/model.py", 5, "", "Block.forward", Assumption.FORWARD), "in Block.forward, assumed compiled"),
        (
            Region("src/model.py", 5, "", "Net.forward", Assumption.FORWARD),
            "in Block.forward, from Net.forward (line 5), assumed compiled",
        ),
        (
            Region("m.py", 5, "", "Block.forward", Assumption.FORWARD),
            "in Block.forward, from Block.forward (m.py:5), assumed compiled",
        ),
        (Region("m.py", 5, "", "step", Assumption.FUNCTION), "in Block.forward, from step (m.py:5), assumed compiled"),
        (Region("m.py", 5, "", None, Assumption.FUNCTION), "in Block.forward, from m.py:5, assumed compiled"),
        (Region("m.py", 5, "@torch.compile"), "in Block.forward, compiled from m.py:5"),
        (Region("m.py", 5, "@torch.compile", "Block.forward"), "in Block.forward, compiled from m.py:5"),
        (Region("src/model.py", 5, "@torch.compile", "step"), "in Block.forward, compiled from line 5 via step"),
        (None, "in Block.forward"),
    ],
)
def test_why_the_code_counts_as_compiled_is_said(region: Region | None, words: str) -> None:
    assert written(result(replace(EAGER, region=region))).splitlines()[0].endswith(f"    {words}")


def test_a_module_level_finding_says_only_why() -> None:
    region = Region("m.py", 5, "torch.compile(step)", "step")
    first = written(result(replace(EAGER, function=None, region=region))).splitlines()[0]
    assert first.endswith("branch-on-tensor    compiled from m.py:5 via step")


def test_the_root_has_a_line_of_its_own_where_the_first_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    head = "src/model.py:3:8  error  BRK101 branch-on-tensor"
    region = "in Block.forward, compiled from train.py:41 via Model.forward"
    monkeypatch.setenv("COLUMNS", str(len(head) + 4 + len(region)))
    assert written(result(EAGER)).splitlines()[0] == f"{head}    {region}"
    monkeypatch.setenv("COLUMNS", str(len(head) + 4 + len(region) - 1))
    assert written(result(EAGER)).splitlines()[:2] == [head, f"   {region}"]


def at(line: int, column: int = 9) -> Finding:
    return replace(BEHIND, site=replace(BEHIND.site, line=line, end_line=line, column=column))


@pytest.mark.parametrize(
    ("behind", "sentence"),
    [
        ([at(4)], "It hides 1 more finding (line 4), which appears once this one is fixed."),
        ([at(4), at(4, 20)], "It hides 2 more findings (line 4), which appear once this one is fixed."),
        ([at(4), at(7), at(7, 20)], "It hides 3 more findings (lines 4, 7), which appear once this one is fixed."),
        ([at(n) for n in range(4, 12)], "It hides 8 more findings (lines 4, 5, 6, 7, 8, 9, 10, 11), which appear once"),
        (
            [at(n) for n in range(4, 13)],
            "It hides 9 more findings (lines 4 to 12), which appear once this",
        ),
    ],
)
def test_findings_behind_another_are_folded_under_it(behind: list[Finding], sentence: str) -> None:
    recompile = replace(SPLIT, kind=Kind.RECOMPILE, rule="BRK701", name="other")
    lines = written(result(EAGER, *behind, recompile)).splitlines()
    said = next(i for i, line in enumerate(lines) if line.startswith("   It hides "))
    assert lines[said].strip().startswith(sentence)
    assert lines[said - 1].startswith("   Instead: ")
    assert lines[said + 1] == ""
    assert [line.split()[0] for line in lines if line.startswith("src/")] == ["src/model.py:3:8", "src/model.py:5:4"]


def test_a_file_that_could_not_be_parsed_is_shown_with_its_line() -> None:
    text = written(result(errors=(UNPARSED,)), {"src/bad.py": "x = 1\ndef f(:\n"})
    expected = """\
        src/bad.py:2:7  not checked
             1 │ x = 1
             2 │ def f(:
               │       ━ cannot be parsed: invalid syntax

        nothing found in 41 files (0.4 s) · torch 2.13, default mode · 1 path not checked
    """
    assert text == textwrap.dedent(expected)


def test_without_the_source_the_message_stands_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = written(result(EAGER, errors=(UNPARSED,)), {}).splitlines()
    assert lines[1] == "   a Python branch on a tensor's value"
    assert "   cannot be parsed: invalid syntax" in lines


def test_sources_are_read_by_their_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "model.py").write_bytes("# coding: latin-1\r\n\r\nwährend.any()\r\n".encode("latin-1"))
    assert " 3 │ während.any()\n" in written(result(EAGER), {})


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_lines_fit_the_width_and_only_the_head_line_may_be_longer(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    source = SOURCE.replace("x.any()", "x.any()" + " + 1" * 40)
    lines = written(result(EAGER, SPLIT), {"src/model.py": source}).splitlines()
    body = [line for line in lines if line.startswith("   ")]
    assert len(body) > 10
    assert max(map(cell_len, body)) <= columns


def test_square_brackets_in_code_are_code() -> None:
    assert "x[red].any()" in written(result(EAGER), {"src/model.py": "\n\nif x[red].any(): [bold]\n"})


def test_colour_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def styled() -> bool:
        stream = Terminal()
        write_full(report(result(EAGER), {"src/model.py": SOURCE}), stream)
        return "\x1b[" in stream.getvalue()

    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" not in written(result(EAGER))
    assert styled()
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    write_full(report(result(EAGER), {"src/model.py": SOURCE}), stream)
    assert "\x1b[31m" not in stream.getvalue()
    assert "31m" not in stream.getvalue()


def test_a_rule_that_is_not_in_the_library_is_still_reported() -> None:
    text = written(result(replace(EAGER, rule="BRK999", name="gone", severity=Severity.INFO)))
    assert "info  BRK999 gone" in text
    assert "Why:" not in text
