"""The forms of the report that other programs read, of real runs."""

import io
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from programs import ZOO, Folder, Zoo

from breakscan.report.explain import ExplainReport
from breakscan.report.formats import EXPLAIN

pytestmark = pytest.mark.torch

PROGRAM = """import torch

def helper(x):
    return x.sum().item()  # break

def f(x):
    return x.sin() * helper(x)

f = torch.compile(f)
for size in (4, 5, 6):
    f(torch.ones(size))
torch.compile(lambda x: (x @ x.T).relu().sum())(torch.ones(3, 3, requires_grad=True)).backward()
print("no line end", end="")
"""


@pytest.fixture(autouse=True)
def no_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_WORKSPACE", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)


def written(zoo: Zoo, format_: str) -> str:
    stream = io.StringIO()
    EXPLAIN.write(format_, ExplainReport(zoo.explanation()), stream)
    return stream.getvalue()


def test_json_of_a_run_with_inductor_follows_its_schema(folder: Folder) -> None:
    folder.write("script.py", PROGRAM)
    _, report = folder.explain_json("script.py")
    schema = json.loads((resources.files("breakscan") / "schemas/explain.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(report)
    (found,) = report["breaks"]
    assert found["code"] == "return x.sum().item()  # break"
    assert report["script"]["seconds"] > 0
    assert report["compiles"]
    assert len(report["graphs"]) == report["summary"]["graphs"] > 0
    for graph in report["graphs"]:
        for generated in graph["generated"]:
            assert "code" not in generated


@pytest.mark.parametrize("format_", ["markdown", "sarif", "json"])
def test_what_no_person_reads_needs_a_place(folder: Folder, format_: str) -> None:
    folder.write("script.py", "print('ran')\n")
    done = folder.explain("--format", format_, "script.py")
    assert done.status == 2
    assert done.out == b""
    assert f"--format {format_} needs --output FILE" in done.err.decode()


def test_every_break_of_a_run_is_a_result_of_code_scanning(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(ZOO.parent))
    monkeypatch.chdir(ZOO.parent)
    (run,) = json.loads(written(zoo, "sarif"))["runs"]
    places = {_place(result) for result in run["results"]}
    explanation = zoo.explanation()
    for site in explanation.breaks:
        if site.site.path == "zoo.py":
            assert ("zoo.py", site.site.line) in places
    assert len(run["results"]) >= len(explanation.breaks)
    prints = [result["partialFingerprints"]["breakscanSite/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)


def _place(result: Any) -> tuple[str, int]:
    physical = result["locations"][0]["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


def test_every_break_of_a_run_is_in_the_comment(zoo: Zoo) -> None:
    text = written(zoo, "markdown")
    for site in zoo.explanation().breaks:
        assert re.search(rf"`[^`]*{re.escape(Path(site.site.path).name)}:{site.site.line}`", text)
    assert "**Cut here:**" not in text


def test_every_break_of_a_run_is_in_the_log(zoo: Zoo) -> None:
    text = written(zoo, "github")
    for site in zoo.explanation().breaks:
        assert f"{Path(site.site.path).name}:{site.site.line}" in text
