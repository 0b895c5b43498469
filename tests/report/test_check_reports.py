"""The reports of ``check``: full, concise, github, JSON, and their last line."""

import json
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from report_results import BEHIND, EAGER, LIBRARY, SOURCE, SPLIT, UNPARSED, Terminal, checked, report, result
from rich.cells import cell_len

import breakscan
from breakscan.model.findings import (
    Assumption,
    CheckResult,
    CheckTarget,
    Confidence,
    Finding,
    Kind,
    Mode,
    Place,
    Region,
    Severity,
    Site,
    Verdict,
)
from breakscan.report.check import summary_line
from breakscan.report.check_terminal import write_full


def full(found: CheckResult, texts: dict[str, str] | None = None, fixable: int = 0) -> str:
    return checked("full", found, texts, fixable=fixable)


def as_json(found: CheckResult) -> Any:
    text = checked("json", found)
    assert text.isascii()
    assert text.endswith("}\n")
    return json.loads(text)


RULE = LIBRARY.select("BRK101")[0]


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
    """  # noqa: E501
    assert full(result(EAGER)) == textwrap.dedent(expected)


def test_fix_is_named_with_the_number_of_its_edits() -> None:
    assert "breakscan fix" not in full(result(EAGER))
    assert "'breakscan fix' shows a diff for 2 of these findings." in full(result(EAGER), fixable=2)


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
    assert full(result(SPLIT)).startswith(textwrap.dedent(expected))


@pytest.mark.parametrize(
    ("verdict", "place", "via", "sentence"),
    [
        (Verdict.EAGER, Place.LOOP, "Net.forward", "Net.forward calls this in a loop: torch 2.13 runs all of Net.forw"),
        (Verdict.EAGER, Place.TRY, "Net.forward", "Net.forward calls this inside a try: torch 2.13 cannot resume ther"),
        (Verdict.EAGER, Place.TRY, None, "inside a try: torch 2.13 cannot resume there and runs the rest of"),
        (Verdict.EAGER, Place.WITH, None, "inside a with block: torch 2.13 cannot resume there and runs the rest of"),
        (Verdict.EAGER, Place.PLAIN, None, "torch 2.13 cannot resume after it and runs the rest of the function"),
        (Verdict.RAISES, Place.PLAIN, None, "torch 2.13 raises an error here when it compiles; plain Python does not."),
        (Verdict.UNUSED, Place.PLAIN, None, "Nothing is ever compiled."),
    ],
)
def test_what_the_verdict_means_is_said(verdict: Verdict, place: Place, via: str | None, sentence: str) -> None:
    assert sentence in " ".join(full(result(replace(EAGER, verdict=verdict, place=place, via=via))).split())


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
    assert full(result(replace(EAGER, region=region))).splitlines()[0].endswith(f"    {words}")


def test_a_module_level_finding_says_only_why() -> None:
    region = Region("m.py", 5, "torch.compile(step)", "step")
    first = full(result(replace(EAGER, function=None, region=region))).splitlines()[0]
    assert first.endswith("branch-on-tensor    compiled from m.py:5 via step")


def test_the_root_has_a_line_of_its_own_where_the_first_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    head = "src/model.py:3:8  error  BRK101 branch-on-tensor"
    region = "in Block.forward, compiled from train.py:41 via Model.forward"
    monkeypatch.setenv("COLUMNS", str(len(head) + 4 + len(region)))
    assert full(result(EAGER)).splitlines()[0] == f"{head}    {region}"
    monkeypatch.setenv("COLUMNS", str(len(head) + 4 + len(region) - 1))
    assert full(result(EAGER)).splitlines()[:2] == [head, f"   {region}"]


def at(line: int, column: int = 9) -> Finding:
    return replace(BEHIND, site=replace(BEHIND.site, line=line, end_line=line, column=column))


@pytest.mark.parametrize(
    ("behind", "sentence"),
    [
        ([at(4)], "It hides 1 more finding (line 4), which appears once this one is fixed."),
        ([at(4), at(4, 20)], "It hides 2 more findings (line 4), which appear once this one is fixed."),
        ([at(4), at(7), at(7, 20)], "It hides 3 more findings (lines 4 and 7), which appear once this one is fixed."),
        (
            [at(n) for n in range(4, 13)],
            "It hides 9 more findings (lines 4, 5, 6, 7, 8, 9, 10 and 2 more lines), which",
        ),
    ],
)
def test_findings_behind_another_are_folded_under_it(behind: list[Finding], sentence: str) -> None:
    recompile = replace(SPLIT, kind=Kind.RECOMPILE, rule="BRK701", name="other")
    lines = full(result(EAGER, *behind, recompile)).splitlines()
    said = next(i for i, line in enumerate(lines) if line.startswith("   It hides "))
    assert lines[said].strip().startswith(sentence)
    assert lines[said - 1].startswith("   Instead: ")
    assert lines[said + 1] == ""
    assert [line.split()[0] for line in lines if line.startswith("src/")] == ["src/model.py:3:8", "src/model.py:5:4"]


def test_a_file_that_could_not_be_parsed_is_shown_with_its_line() -> None:
    text = full(result(errors=(UNPARSED,)), {"src/bad.py": "x = 1\ndef f(:\n"})
    expected = """\
        src/bad.py:2:7  not checked
             1 │ x = 1
             2 │ def f(:
               │       ━ cannot be parsed: invalid syntax

        nothing found in 41 files (0.4 s) · 0 compiled functions · torch 2.13, default mode · 1 path not checked
    """
    assert text == textwrap.dedent(expected)


def test_without_the_source_the_message_stands_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = full(result(EAGER, errors=(UNPARSED,)), {}).splitlines()
    assert lines[1] == "   a Python branch on a tensor's value"
    assert "   cannot be parsed: invalid syntax" in lines


def test_sources_are_read_by_their_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "model.py").write_bytes("# coding: latin-1\r\n\r\nwährend.any()\r\n".encode("latin-1"))
    assert " 3 │ während.any()\n" in full(result(EAGER), {})


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_lines_fit_the_width_and_only_the_head_line_may_be_longer(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    source = SOURCE.replace("x.any()", "x.any()" + " + 1" * 40)
    lines = full(result(EAGER, SPLIT), {"src/model.py": source}).splitlines()
    body = [line for line in lines if line.startswith("   ")]
    assert len(body) > 10
    assert max(map(cell_len, body)) <= columns


def test_square_brackets_in_code_are_code() -> None:
    assert "x[red].any()" in full(result(EAGER), {"src/model.py": "\n\nif x[red].any(): [bold]\n"})


def test_colour_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    def styled() -> bool:
        stream = Terminal()
        write_full(report(result(EAGER), {"src/model.py": SOURCE}), stream)
        return "\x1b[" in stream.getvalue()

    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" not in full(result(EAGER))
    assert styled()
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    write_full(report(result(EAGER), {"src/model.py": SOURCE}), stream)
    assert "31m" not in stream.getvalue()


def test_a_rule_that_is_not_in_the_library_is_still_reported() -> None:
    text = full(result(replace(EAGER, rule="BRK999", name="gone", severity=Severity.INFO)))
    assert "info  BRK999 gone" in text
    assert "Why:" not in text


END = "1 error, 1 warning in 41 files (0.4 s) · torch 2.13, default mode · 1 path not checked\n"


@pytest.fixture(autouse=True)
def no_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)


def test_concise() -> None:
    assert checked("concise", result(EAGER, SPLIT, errors=(UNPARSED,))) == (
        "src/model.py:3:8: error BRK101 a Python branch on a tensor's value\n"
        "src/model.py:5:4: warning BRK101 a Python branch on a tensor's value (only when `mask` is given)\n"
        "src/bad.py:2:7: not checked cannot be parsed: invalid syntax\n" + END
    )


def test_findings_behind_another_are_listed_and_say_so() -> None:
    found = result(EAGER, replace(BEHIND, conditions=SPLIT.conditions))
    said = "BRK101 a Python branch on a tensor's value (only when `mask` is given) (hidden by line 3)"
    assert checked("concise", found).splitlines()[1:] == [
        f"src/model.py:4:9: error {said}",
        "1 error in 41 files (0.4 s) · torch 2.13, default mode · 1 hidden",
    ]
    message = "A Python branch on a tensor's value (only when `mask` is given) (hidden by line 3)"
    assert f"::src/model.py:4:9: BRK101 branch-on-tensor: {message}. " in checked("github", found).splitlines()[1]


def test_concise_never_wraps_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert len(checked("concise", result(replace(EAGER, message="word " * 100))).splitlines()) == 2


def test_github() -> None:
    assert checked("github", result(EAGER, SPLIT, errors=(UNPARSED,))) == (
        "::error title=not checked,file=src/bad.py,line=2,endLine=2,col=7,endColumn=8"
        "::src/bad.py:2:7: not checked: cannot be parsed: invalid syntax\n"
        "::error title=BRK101 branch-on-tensor,file=src/model.py,line=3,endLine=3,col=8,endColumn=15"
        "::src/model.py:3:8: BRK101 branch-on-tensor: A Python branch on a tensor's value. The break is inside a loop: "
        "torch 2.13 runs the whole function eager (0 graphs), not just this line. In Block.forward, compiled from "
        f"train.py:41 via Model.forward. Instead: {RULE.instead}.\n"
        "::warning title=BRK101 branch-on-tensor,file=src/model.py,line=5,endLine=7"
        "::src/model.py:5:4: BRK101 branch-on-tensor: A Python branch on a tensor's value (only when `mask` is given). "
        f"Instead: {RULE.instead}.\n" + END
    )


def test_github_calls_a_hint_a_notice() -> None:
    assert checked("github", result(replace(EAGER, severity=Severity.INFO))).startswith("::notice ")


def test_github_escapes_what_would_end_a_property_or_the_command() -> None:
    found = replace(EAGER, site=Site("a,b:c%d.py", 1, 1, 1, 2), message="100%\r\nfoo::bar, baz")
    line = checked("github", result(found)).splitlines()[0]
    assert ",file=a%2Cb%3Ac%25d.py,line=1," in line
    assert "::a,b:c%25d.py:1:1: BRK101 branch-on-tensor: 100%25␍ foo::bar, baz. " in line


SCHEMA = json.loads((Path(breakscan.__file__).parent / "schemas" / "check.schema.json").read_text(encoding="utf-8"))

TRIED = list(RULE.rewrites)
REMEDIES = [
    {
        "kind": "edit",
        "name": RULE.name,
        "text": RULE.instead,
        "settings": [],
        "write": None,
        "rewrites": TRIED,
        "tried": False,
        "command": f"breakscan verify --rewrite {','.join(TRIED)}",
    }
]


def valid(data: Any) -> bool:
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(data)


def test_the_whole_object() -> None:
    data = as_json(
        result(EAGER, SPLIT, errors=(UNPARSED,), suppressed=2, targets=(CheckTarget("2.13", "2.13", Mode.FULLGRAPH),))
    )
    assert valid(data)
    assert data["tool"]["version"] == breakscan.__version__
    assert data["targets"] == [data["target"]] == [{"torch": "2.13", "fullgraph": True, "mode": "fullgraph"}]
    first, second = data["findings"]
    assert first["site"] == {"path": "src/model.py", "line": 3, "column": 8, "end_line": 3, "end_column": 15}
    assert first["region"] == {"path": "train.py", "line": 41, "how": "torch.compile(model)", "entry": "Model.forward"}
    assert (first["gb"], first["rewrite"]) == (["GB0170", "GB7000"], {"id": "where", "safety": "unsafe"})
    assert (first["rewrites"], first["remedies"]) == (TRIED, REMEDIES)
    assert (first["severity"], first["confidence"], first["condition"]) == ("error", "certain", None)
    assert (second["severity"], second["confidence"], second["condition"]) == (
        *("warning", "conditional", "`mask` is given"),
    )
    assert (second["function"], second["region"], second["rewrite"]) == (None, None, None)
    message = "cannot be parsed: invalid syntax"
    assert data["errors"] == [{"path": "src/bad.py", "line": 2, "column": 7, "message": message, "syntax": True}]
    assert data["summary"] == {"files": 41, "findings": 2, "known": 0, "by_rule": {"BRK101": 2}}


def test_findings_behind_another_are_listed_and_name_its_site() -> None:
    data = as_json(result(EAGER, BEHIND))
    assert valid(data)
    assert [f["behind"] for f in data["findings"]] == [None, data["findings"][0]["site"]]
    assert data["summary"]["findings"] == 2


def test_a_root_whose_function_has_no_name() -> None:
    data = as_json(result(replace(EAGER, region=Region("train.py", 41, "torch.compile(lambda x: x)"))))
    assert valid(data)
    assert data["findings"][0]["region"]["entry"] is None


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("severity", list(Severity))
def test_every_word_is_in_the_schema(kind: Kind, severity: Severity) -> None:
    findings = [replace(EAGER, kind=kind, severity=severity, confidence=confidence) for confidence in Confidence]
    assert valid(as_json(result(*findings)))


def test_names_beyond_ascii_and_beyond_unicode_come_back() -> None:
    error = replace(UNPARSED, path="模型/\udcff.py")
    data = as_json(result(errors=(error,)))
    assert valid(data)
    assert data["errors"][0]["path"] == "模型/\udcff.py"


@pytest.mark.parametrize("change", ["extra", "missing", "line", "kind", "rule"])
def test_the_schema_refuses_what_is_not_the_contract(change: str) -> None:
    data = as_json(result(EAGER))
    finding = data["findings"][0]
    if change == "extra":
        finding["more"] = 1
    elif change == "missing":
        del finding["gb"]
    elif change == "line":
        finding["site"]["line"] = 0
    elif change == "kind":
        finding["kind"] = "break"
    else:
        data["summary"]["by_rule"] = {"E501": 1}
    assert not valid(data)


HINT = replace(EAGER, severity=Severity.INFO)
NOTHING = "nothing found in 41 files (1.2 s) · 0 compiled functions · torch "


@pytest.mark.parametrize(
    ("findings", "changes", "line"),
    [
        ([], {}, f"{NOTHING}2.13, default mode"),
        ([EAGER], {"files": 1}, "1 error in 1 file (1.2 s) · torch 2.13, default mode"),
        ([EAGER, EAGER, SPLIT, HINT, HINT], {}, "2 errors, 1 warning, 2 hints in 41 files (1.2 s) · torch 2.13, de"),
        ([SPLIT], {"suppressed": 3}, "1 warning in 41 files (1.2 s) · torch 2.13, default mode · 3 suppressed"),
        ([EAGER, BEHIND, BEHIND], {}, "1 error in 41 files (1.2 s) · torch 2.13, default mode · 2 hidden"),
        ([], {"targets": (CheckTarget("2.13", "2.13", Mode.FULLGRAPH),)}, f"{NOTHING}2.13, fullgraph=True"),
        (
            [replace(EAGER, mode=Mode.EXPORT), SPLIT],
            {},
            "1 error, 1 warning in 41 files (1.2 s) · torch 2.13, default mode and torch.export",
        ),
        (
            [],
            {"targets": (CheckTarget("2.14", "2.13", Mode.DEFAULT), CheckTarget("2.13", "2.13", Mode.FULLGRAPH))},
            f"{NOTHING}2.14 (judged by the verdicts of 2.13) and 2.13, default mode and fullgraph=True",
        ),
        ([], {"errors": (UNPARSED, UNPARSED)}, f"{NOTHING}2.13, default mode · 2 paths not checked"),
    ],
)
def test_says_what_was_found_and_for_which_target(findings: list[Finding], changes: dict[str, Any], line: str) -> None:
    assert summary_line(report(result(*findings, **changes), seconds=1.23)).startswith(line)
