"""``breakscan diff``: what counts as the same, what as worse, and what is said of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

PROGRAM = """import torch


def f(x):
    y = x.sin()
    print("a")
    return y.cos()


compiled = torch.compile(f, backend="eager")
compiled(torch.ones(3))
compiled(torch.ones(4))
"""


def site(path: str, line: int) -> dict[str, Any]:
    return {"path": path, "line": line, "column": 5, "end_line": line, "end_column": 9}


def problem(kind: str, at: dict[str, Any], function: str, **values: Any) -> Any:
    return {
        "kind": kind, "site": at, "functions": [function], "rule": None, "gb_type": None, "gb_id": None, "reason": "",
        "why": "", "code": None, "count": 1, "verdict": "eager", "head": None, "rest_only": False, **values,
    }  # fmt: skip


def broken(code: str, *, line: int = 5, function: str = "f", rule: str | None = "BRK401", **values: Any) -> Any:
    at = site(values.pop("path", "model.py"), line)
    kind = {"rule": rule, "gb_type": "print", "gb_id": "GB0059", "verdict": "splits"}
    return problem("break", at, function, code=code, **{**kind, **values})


def frame(function: str, verdict: str | None = "eager") -> Any:
    return problem("function", site("model.py", 3), function, verdict=verdict)


def recompile(subject: str, count: int = 1) -> Any:
    return problem("recompiles", site("model.py", 4), "f", rule="BRK711", reason=subject, count=count)


def report(*problems: Any, **changes: Any) -> Any:
    kinds = [one["kind"] for one in problems]
    return {
        "schema": 2,
        "environment": {"torch": changes.get("torch", "2.13.0"), "python": "3.11", "device": "cpu"},
        "script": {"argv": ["train.py"], "exit_status": 0},
        "summary": {
            "break_sites": kinds.count("break"), "break_events": 1, "eager_frames": kinds.count("function"),
            "graphs": 2, "ops": 1234, "recompiles": kinds.count("recompiles"),
            "compile_seconds": changes.get("seconds", 1.25),
        },
        "problems": list(problems), "graphs": [], "notices": [],
    }  # fmt: skip


@pytest.fixture
def diff(breakscan: Run, folder: Path) -> Run:
    """Compares two reports; the result as JSON comes with the exit status."""

    def run(before: Any, after: Any, *options: str) -> Any:
        for name, value in (("before.json", before), ("after.json", after)):
            (folder / name).write_text(json.dumps(value), encoding="utf-8")
        return breakscan("diff", "before.json", "after.json", *(options or ("--format", "json")))

    return run


A, B = broken('print("a")'), broken("y = x.item()", line=9, rule="BRK201")


class TestWhatIsWorse:
    @pytest.mark.parametrize(
        ("before", "after", "said"),
        [
            (report(A), report(A, B), ["1 new break site"]),
            (report(A), report({**A, "verdict": "eager"}), ["1 worse break site"]),
            (report(), report(recompile("x.shape[0]", 2)), ["2 more recompiles"]),
            (report(), report(frame("f")), ["1 new eager function"]),
            (report(A), report({**A, "functions": ["g"]}), ["1 new break site"]),
            (report(A), report({**A, "site": site("other.py", 5)}), ["1 new break site"]),
        ],
    )
    def test_it_is_told_and_fails(self, diff: Run, before: Any, after: Any, said: list[str]) -> None:
        done = diff(before, after)
        assert (done.status, done.json["regressions"]) == (1, said)

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (report(A, B), report(A)),
            (report({**A, "verdict": "eager"}), report(A)),
            (report(A), report({**A, "count": 5})),
            (report(A), report({**A, "site": site("model.py", 99)})),
            (report(A), report(broken('print("b")'))),
            (report(A), report({**A, "rule": None, "gb_type": "call"})),
            (report(recompile("n", 2)), report(recompile("m"))),
            (report(frame("f")), report(frame("g", None))),
            (report(seconds=1.0), report(seconds=9.0)),
        ],
    )
    def test_other_changes_pass(self, diff: Run, before: Any, after: Any) -> None:
        done = diff(before, after)
        assert (done.status, done.json["regressions"]) == (0, [])


def test_installed_files_are_the_same_on_every_machine(diff: Run) -> None:
    places = ("/venv/a/lib/python3.11/site-packages/pkg/m.py", "/b/Lib/site-packages/pkg/m.py")
    done = diff(*(report(broken("a", path=path)) for path in places))
    assert (done.json["new"], done.json["gone"]) == ([], [])


def test_a_report_without_the_text_of_lines_is_compared_by_function(diff: Run) -> None:
    old = {**A, "code": None}
    done = diff(report(old), report({**old, "site": site("model.py", 70)}))
    assert (done.status, done.json["changed"]) == (0, [])


def test_people_are_told_where(diff: Run) -> None:
    before = report(A, recompile("x.shape[0]"), torch="2.13.0")
    after = report({**A, "verdict": "eager"}, B, frame("f"), torch="2.15.0", seconds=3.0)
    done = diff(before, after, "--format", "terminal")
    assert done.status == 1
    assert [" ".join(line.split()) for line in done.out.splitlines()] == [
        "Regression: 1 new break site, 1 worse break site, 1 new eager function.",
        "before after",
        "break sites 1 2",
        "breaks 1 1",
        "eager functions 0 1",
        "recompiles 1 0",
        "graphs 2 2",
        "operations 1,234 1,234",
        "compile time 1.2 s 3.0 s",
        "torch 2.13.0 → 2.15.0",
        "New graph break: model.py:9 splits the graph BRK201 in f: y = x.item()",
        'Worse graph break: model.py:5 splits the graph → runs eager BRK401 in f: print("a")',
        "New eager function: model.py f",
        "Fewer recompiles: model.py BRK711 x.shape[0] in f: 1 → 0",
    ]


def test_markdown_shows_code_as_text(diff: Run) -> None:
    done = diff(report(), report(broken("x = `a``b` | <b>\x1b[31m")), "--format", "markdown")
    assert ": x &#61; &#96;a&#96;&#96;b&#96; &#124; &#60;b&#62;␛&#91;31m\n" in done.out.replace(": x =", ": x &#61;")
    assert "### breakscan diff: Regression: 1 new break site\n" in done.out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "after.json is not JSON"),
        ("[]", "after.json is not a report of breakscan explain --format json"),
        (json.dumps({**report(), "problems": [{}]}), "is damaged"),
    ],
)
def test_what_is_no_report_is_told(breakscan: Run, folder: Path, text: str, problem: str) -> None:
    (folder / "before.json").write_text(json.dumps(report()), encoding="utf-8")
    (folder / "after.json").write_text(text, encoding="utf-8")
    done = breakscan("diff", "before.json", "after.json")
    assert (done.status, done.out) == (2, "")
    assert problem in done.err


@pytest.mark.torch
def test_two_runs(process: Run, breakscan: Run, folder: Path) -> None:
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    process("explain", "--format", "json", "--output", "before.json", "--save", "before", "program.py")
    same = breakscan("diff", "before.json", "before", "--format", "json")
    assert (same.status, same.json["changed"], same.json["moved"]) == (0, [], [])

    program.write_text("# Shifted.\n\n" + PROGRAM.replace("y.cos()", "y.cos() + y.sum().item()"), encoding="utf-8")
    process("explain", "--format", "json", "--output", "after.json", "program.py")
    worse = breakscan("diff", "before.json", "after.json", "--format", "json")
    assert worse.status == 1
    assert [(one["rule"], one["code"], one["line"]) for one in worse.json["new"]] == [
        ("BRK201", "return y.cos() + y.sum().item()", 9)
    ]
    assert worse.json["gone"] == []
