"""Formats of services: SARIF, GitHub Actions, GitLab's Code Quality."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import explain_results as made
import pytest
from hostile import NASTY, STRINGS, poisoned
from hypothesis import example, given, settings
from report_results import BEHIND, EAGER, SOURCE, SPLIT, UNPARSED, checked, result
from sarif_validity import validate_sarif

from breakscan.explanation.explanation import Explanation
from breakscan.model.findings import CheckResult, Severity


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository as the working directory."""
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def parsed(format_: str, text: str) -> Any:
    """The data of a report; of SARIF its run."""
    assert text.isascii()
    assert text.endswith("\n")
    data = json.loads(text)
    if format_ != "sarif":
        return data
    validate_sarif(data)
    return data["runs"][0]


def read(format_: str, found: CheckResult, texts: dict[str, str] | None = None) -> Any:
    return parsed(format_, checked(format_, found, texts))


def sarif(found: CheckResult, texts: dict[str, str] | None = None) -> Any:
    return read("sarif", found, texts)


def explained(told: Explanation, **report: Any) -> Any:
    return parsed("sarif", made.written("sarif", told, **report))


def annotated(told: Explanation, **report: Any) -> list[str]:
    """The lines of a run in the log of GitHub Actions."""
    return made.written("github", told, **report).splitlines()


def place(location: Any) -> tuple[str, int]:
    physical = location["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


def fingerprints(run: Any) -> list[str]:
    return [result["partialFingerprints"]["breakscanSite/v1"] for result in run["results"]]


class TestCheck:
    def test_a_finding(self) -> None:
        run = sarif(result(EAGER, SPLIT, replace(EAGER, severity=Severity.INFO)))
        assert [found["level"] for found in run["results"]] == ["error", "warning", "note"]
        first, second, _ = run["results"]
        assert first["message"]["text"] == (
            "A Python branch on a tensor's value. The break is inside a loop: torch 2.13 runs the whole function eager "
            "(0 graphs), not just this line. In Block.forward, compiled from train.py:41 via Model.forward. "
            f"Instead: {made.LIBRARY.select('BRK101')[0].instead}."
        )
        assert first["locations"][0]["physicalLocation"] == {
            "artifactLocation": {"uri": "src/model.py", "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 3, "startColumn": 8, "endLine": 3, "endColumn": 15},
        }
        assert first["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "Block.forward"
        (root,) = first["relatedLocations"]
        assert place(root) == ("train.py", 41)
        assert root["message"]["text"] == "the compiler starts here: torch.compile(model)"
        assert "only when `mask` is given" in second["message"]["text"]
        assert run["invocations"][0]["executionSuccessful"]

    def test_a_rule_is_told_once_with_its_document(self) -> None:
        (rule,) = sarif(result(EAGER, SPLIT))["tool"]["driver"]["rules"]
        assert (rule["id"], rule["name"]) == ("BRK101", "branch-on-tensor")
        assert "## Breaks\n```python\n" in rule["help"]["markdown"]
        assert rule["help"]["text"].startswith("Why: ")
        assert rule["defaultConfiguration"] == {"level": "warning"}

    def test_what_hides_a_finding_is_related(self) -> None:
        hidden = sarif(result(EAGER, BEHIND))["results"][1]
        assert [place(at) for at in hidden["relatedLocations"]][1:] == [("src/model.py", 3)]

    def test_what_could_not_be_checked_is_a_notification(self) -> None:
        (invocation,) = sarif(result(errors=(UNPARSED,), warnings=(replace(UNPARSED, message="odd"),)))["invocations"]
        assert not invocation["executionSuccessful"]
        error, warning = invocation["toolExecutionNotifications"]
        assert (error["level"], warning["level"]) == ("error", "warning")
        assert error["message"]["text"] == "not checked: cannot be parsed: invalid syntax"
        assert place(error["locations"][0]) == ("src/bad.py", 2)

    def test_a_finding_is_known_again_when_its_line_moves(self) -> None:
        moved = replace(EAGER, site=replace(EAGER.site, line=6, end_line=6))
        before = sarif(result(EAGER))
        assert fingerprints(sarif(result(moved), {"src/model.py": "\n\n\n" + SOURCE})) == fingerprints(before)
        assert fingerprints(sarif(result(EAGER), {"src/model.py": SOURCE.replace("x.any", "y.any")})) != fingerprints(
            before
        )

    def test_equal_lines_of_a_function_are_told_apart(self) -> None:
        source = "\n\n    if x.any():\n    if x.any():\n"
        other = replace(EAGER, site=replace(EAGER.site, line=4, end_line=4))
        assert len(set(fingerprints(sarif(result(EAGER, other), {"src/model.py": source})))) == 2

    def test_paths_are_relative_to_the_checkout(self, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(checkout / "src")
        here = replace(EAGER, site=replace(EAGER.site, path="a b#%.py"))
        outside = replace(EAGER, site=replace(EAGER.site, path="/elsewhere/x y.py"))
        run = sarif(result(here, outside), {})
        assert [place(found["locations"][0])[0] for found in run["results"]] == [
            "src/a%20b%23%25.py",
            "file:///elsewhere/x%20y.py",
        ]
        assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == checkout.as_uri() + "/"
        monkeypatch.setenv("GITHUB_WORKSPACE", str(checkout / "src"))
        assert place(sarif(result(here), {})["results"][0]["locations"][0])[0] == "a%20b%23%25.py"


class TestExplain:
    def test_every_kind_of_point(self) -> None:
        run = explained(made.explanation())
        assert [(found["ruleId"], found["level"]) for found in run["results"]] == [
            ("BRK201", "error"),
            ("not-compiled", "error"),
            ("export", "error"),
            ("BRK201", "error"),
            ("not-compiled", "error"),
            ("not-compiled", "note"),
            ("graph-break", "warning"),
            ("BRK711", "warning"),
            ("rank-difference", "error"),
            ("cudagraph-skip", "warning"),
        ]
        assert (
            run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
            == "this torch lacks what breakscan hooks into for memory: something is missing"
        )
        assert run["invocations"][0]["executionSuccessful"]

    def test_a_break_shows_the_way_to_it(self) -> None:
        (found,) = explained(made.explanation(breaks=(made.BREAK,), **NOTHING_ELSE))["results"]
        assert found["occurrenceCount"] == 3
        steps = found["codeFlows"][0]["threadFlows"][0]["locations"]
        assert [place(step["location"]) for step in steps] == [("train.py", 41), ("src/model.py", 3)]
        assert found["message"]["text"].startswith(
            "The graph breaks here 3 times. Why: the number exists only once the graph has run, so the graph ends "
            "here. Block.forward runs as plain Python, without a graph, from this call on: the break is inside a "
            "loop. Takes: 1.2 ms a "
        )

    def test_a_break_in_a_library_is_shown_where_the_user_leads_to_it(self) -> None:
        (found,) = explained(made.explanation(breaks=(made.IN_LIBRARY,), **NOTHING_ELSE))["results"]
        assert place(found["locations"][0]) == ("src/model.py", 3)
        assert place(found["relatedLocations"][0]) == ("file:///site-packages/lib/attention.py", 88)
        assert "in attend (lib/attention.py:88), which this line leads to" in found["message"]["text"]

    def test_pytorchs_own_breaks_are_rules_by_their_ids(self) -> None:
        site = replace(made.IN_LIBRARY, gb_id="GB0170")
        (rule,) = explained(made.explanation(breaks=(site,), **NOTHING_ELSE))["tool"]["driver"]["rules"]
        assert (rule["id"], rule["name"]) == ("GB0170", "Data-dependent branching")


NOTHING_ELSE: dict[str, Any] = {
    "export_problems": (),
    "recompiles": (),
    "frames": (),
    "ranks": None,
    "cudagraph_skips": (),
    "specialisations": (),
    "notices": (),
}


INFO = replace(EAGER, severity=Severity.INFO)


def test_gitlab() -> None:
    first, second, third, unread = read("gitlab", result(EAGER, SPLIT, INFO, errors=(UNPARSED,)))
    assert first["description"].startswith("BRK101 branch-on-tensor: A Python branch on a tensor's value. The break is")
    assert first["check_name"] == "BRK101"
    assert first["location"] == {"path": "src/model.py", "lines": {"begin": 3, "end": 3}}
    assert second["location"]["lines"] == {"begin": 5, "end": 7}
    assert [one["severity"] for one in (first, second, third, unread)] == ["major", "minor", "info", "critical"]
    assert unread["check_name"] == "not-checked"
    assert len({one["fingerprint"] for one in (first, second, third, unread)}) == 4


def test_gitlab_paths_are_relative_to_the_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("src")
    here = result(replace(EAGER, site=replace(EAGER.site, path="model.py")))
    (one,) = read("gitlab", here)
    assert one["location"]["path"] == "src/model.py"
    monkeypatch.setenv("CI_PROJECT_DIR", str(checkout / "src"))
    (one,) = read("gitlab", here)
    assert one["location"]["path"] == "model.py"


@pytest.mark.parametrize("format_", ["gitlab", "sarif"])
@settings(max_examples=8, deadline=None)
@given(STRINGS)
@example([*NASTY])
def test_whatever_the_strings_are_readers_can_read_it(format_: str, strings: list[str]) -> None:
    found = poisoned(result(EAGER, SPLIT, BEHIND, errors=(UNPARSED,)), strings)
    told = poisoned(made.explanation(), strings)
    read(format_, found)
    parsed(format_, made.written(format_, told))


def test_the_headline_comes_first_as_plain_lines() -> None:
    lines = annotated(made.explanation())
    assert lines[0].startswith("train.py finished with exit status 0")
    assert lines[1].startswith("1 function fails to compile.  3 sites break the graph 5 times")
    assert lines[-1] == "Note: this torch lacks what breakscan hooks into for memory: something is missing."


def test_a_break_is_an_annotation_on_its_span() -> None:
    line = annotated(made.explanation(frames=(), export_problems=(), breaks=(made.BREAK,)))[2]
    assert line.startswith(
        "::error title=BRK201 tensor-item,file=src/model.py,line=3,endLine=3,col=8,endColumn=15::src/model.py:3:8: "
        "BRK201 tensor-item: The graph breaks here 3 times. Why: the number exists only once the graph has run, so the "
        "graph ends here. Block.forward runs as plain Python, without a graph, from this call on: the break is "
        "inside a loop. Takes: "
        f"{made.PRICE.words}. Instead: keep the 0-d tensor: y * y.sum() works as well"
    )


def test_what_github_would_drop_is_folded_in_the_log() -> None:
    splits = [replace(made.IN_LIBRARY, gb_type=f"type {n}") for n in range(13)]
    lines = annotated(made.explanation(breaks=splits, cudagraph_skips=(), recompiles=()))
    assert sum(line.startswith("::warning ") for line in lines) == 10
    start = lines.index("::group::3 more than GitHub shows as annotations (10 of each level)")
    assert lines[start + 4] == "::endgroup::"
    assert all(line.startswith("warning: src/model.py:3: type 1") for line in lines[start + 1 : start + 4])


def test_a_run_without_graphs_is_a_warning() -> None:
    lines = annotated(Explanation(("x.py",), 0, 0.1, "", "", (), False, None, (), (), (), (), (), 0, 0.0, ()))
    assert lines[1] == "::warning title=Nothing was compiled::Nothing was compiled: the program did not import torch."


def test_annotations_have_paths_relative_to_the_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "packages").mkdir()
    monkeypatch.chdir(checkout / "packages")
    for workspace, path in ((checkout, "packages/src/model.py"), (checkout / "packages", "src/model.py")):
        monkeypatch.setenv("GITHUB_WORKSPACE", str(workspace))
        assert f",file={path}," in annotated(made.explanation())[2]
        assert f",file={path}," in checked("github", result(EAGER))
