"""Notebooks on the command line."""

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.conftest import Run
from tests.conftest import Valid

NET = """\
%%time
class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        y = x.sin()
        if x.any():
            y = torch.nan_to_num(y)
        return y
"""
USE = "net = torch.compile(Net())\n%timeit -n 3 net(torch.ones(3))\ntorch.compile?\n!nvidia-smi"
FIXED = """\
%%time
class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        y = x.sin()
        y = torch.where(x.any(), torch.nan_to_num(y), y)
        return y
"""


def cell(source: str, kind: str = "code", *, is_list: bool = True) -> dict[str, Any]:
    value = source.splitlines(keepends=True) if is_list else source
    own: dict[str, Any] = {"execution_count": None, "outputs": [{"data": {"n": 1e-7}}]} if kind == "code" else {}
    return {"cell_type": kind, "id": "ab12", "metadata": {}, "source": value, **own}


def notebook(*cells: dict[str, Any], language: str = "python", **more: Any) -> str:
    metadata = {"language_info": {"name": language}}
    document = {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5, **more}
    return json.dumps(document, indent=1) + "\n"


@pytest.fixture
def project(folder: Path) -> Path:
    for path in folder.iterdir():
        path.unlink()
    cells = (cell("# Net\n(((", "markdown"), cell("%matplotlib inline\nimport torch"), cell(NET), cell(USE))
    (folder / "train.ipynb").write_text(notebook(*cells), encoding="utf-8")
    return folder


@pytest.mark.parametrize("paths", [["train.ipynb"], ["."]])
def test_a_break_is_found_by_cell_and_line(breakscan: Run, project: Path, paths: list[str]) -> None:
    done = breakscan("check", *paths, "--format", "concise")
    assert (done.status, done.err) == (1, "")
    assert done.out.startswith(
        "train.ipynb:cell 3:5:12: warning BRK101 a Python branch on a tensor's value\n1 warning in"
    )


def test_the_code_that_is_shown_is_that_of_the_cell(breakscan: Run, project: Path) -> None:
    out = breakscan("check", "train.ipynb").out
    assert out.startswith("train.ipynb:cell 3:5:12  warning  BRK101 branch-on-tensor    in Net.forward, compiled from ")
    assert "from train.ipynb:cell 4:1\n" in out
    assert "     4 │         y = x.sin()\n     5 │         if x.any():\n       │            ━━━━━━━ a Python" in out


def test_the_second_run_takes_the_result_from_the_cache(breakscan: Run, project: Path) -> None:
    first = breakscan("check", "--format", "concise").out.splitlines()[0]
    assert breakscan("check", "--format", "concise").out.splitlines()[0] == first
    text = (project / "train.ipynb").read_text(encoding="utf-8")
    (project / "train.ipynb").write_text(
        text.replace("y = x.sin()\\n", 'pass\\n",\n    "        y = x.sin()\\n'), "utf-8"
    )
    assert breakscan("check", "--format", "concise").out.startswith("train.ipynb:cell 3:6:12: ")


def test_json_names_the_cell_apart(breakscan: Run, project: Path, valid: Valid) -> None:
    data = valid(breakscan("check", "--format", "json").out, "check")
    site = {"path": "train.ipynb", "cell": 3, "line": 5, "column": 12, "end_line": 5, "end_column": 19}
    assert data["findings"][0]["site"] == site
    region = {"path": "train.ipynb", "cell": 4, "line": 1, "how": "torch.compile(Net())", "entry": "Net.forward"}
    assert data["findings"][0]["region"] == region
    (project / "train.ipynb").write_text(notebook(cell("import torch"), cell("x = (1,\n", is_list=False)), "utf-8")
    data = valid(breakscan("check", "--format", "json").out, "check")
    error = {
        "path": "train.ipynb",
        "cell": 2,
        "line": 1,
        "column": 5,
        "message": "cannot be parsed: '(' was never closed",
        "syntax": True,
    }
    assert data["errors"] == [error]


def test_formats_of_services_point_to_the_notebook_and_name_the_cell(breakscan: Run, project: Path) -> None:
    (project / ".git").mkdir()
    github = breakscan("check", "--format", "github").out
    start = "::warning title=BRK101 branch-on-tensor,file=train.ipynb,line=1,endLine=1::"
    assert github.startswith(f"{start}train.ipynb:cell 3:5:12: BRK101 branch-on-tensor: ")
    (one,) = breakscan("check", "--format", "gitlab").json
    assert one["location"] == {"path": "train.ipynb", "lines": {"begin": 1, "end": 1}}
    assert one["description"].startswith("BRK101 branch-on-tensor: Cell 3, line 5: ")


def test_sarif_points_to_the_notebook(breakscan: Run, project: Path) -> None:
    def result() -> Any:
        return breakscan("check", "--format", "sarif").json["runs"][0]["results"][0]

    first = result()
    place = first["locations"][0]["physicalLocation"]
    assert (place["region"], place["artifactLocation"]["uri"]) == ({"startLine": 1}, "train.ipynb")
    assert first["message"]["text"].startswith("Cell 3, line 5: A Python branch on a tensor's value. ")
    # A finding is known again wherever its cell has moved.
    document = json.loads((project / "train.ipynb").read_text(encoding="utf-8"))
    document["cells"].insert(0, cell("x = 1\n"))
    (project / "train.ipynb").write_text(json.dumps(document), encoding="utf-8")
    second = result()
    assert second["message"] != first["message"]
    assert second["partialFingerprints"] == first["partialFingerprints"]


@pytest.mark.process
def test_standard_input_can_be_a_notebook(process: Run, project: Path) -> None:
    data = (project / "train.ipynb").read_bytes()
    done = process("check", "-", "--stdin-filename", "other.ipynb", stdin=data)
    assert done.out.startswith("other.ipynb:cell 3:5:12  warning  BRK101")
    assert "     5 │         if x.any():\n" in done.out


def test_notebooks_are_excluded_as_other_files_are(breakscan: Run, project: Path) -> None:
    (project / ".ipynb_checkpoints").mkdir()
    (project / "train.ipynb").rename(project / ".ipynb_checkpoints" / "train-checkpoint.ipynb")
    done = breakscan("check", ".")
    assert (done.status, done.err) == (0, "warning: no Python files or notebooks in .\n")
    (project / ".ipynb_checkpoints" / "train-checkpoint.ipynb").rename(project / "train.ipynb")
    (project / "pyproject.toml").write_text('[tool.breakscan]\nexclude = ["*.ipynb"]\n', encoding="utf-8")
    assert breakscan("check", ".").status == 0
    assert breakscan("check", "train.ipynb").status == 1
    assert breakscan("check", "train.ipynb", "--force-exclude").status == 0
    (project / "pyproject.toml").write_text(
        '[tool.breakscan.per-file-ignores]\n"*.ipynb" = ["BRK101"]\n', encoding="utf-8"
    )
    assert breakscan("check", ".").status == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if x.any():", "if x.any():  # breakscan: ignore[BRK101] seldom"),
        ("import torch", "import torch\\n# breakscan: ignore-file[BRK101]"),
    ],
)
def test_findings_are_suppressed(breakscan: Run, project: Path, old: str, new: str) -> None:
    text = (project / "train.ipynb").read_text(encoding="utf-8")
    (project / "train.ipynb").write_text(text.replace(old, new, 1), encoding="utf-8")
    done = breakscan("check")
    assert (done.status, done.err) == (0, "")
    assert "· 1 suppressed" in done.out


def test_a_suppression_that_is_wrong_is_named_by_its_cell(breakscan: Run, project: Path) -> None:
    text = (project / "train.ipynb").read_text(encoding="utf-8")
    (project / "train.ipynb").write_text(text.replace("x.any():", "x.any():  # breakscan: ignore BRK101"), "utf-8")
    assert breakscan("check").err.startswith("warning: train.ipynb:cell 3:5:22: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: not checked is no valid JSON: Expecting value. Restore it, or exclude it"),
        ('{"cells": [1,}', "1:14: not checked is no valid JSON: Expecting value. Restore it, or exclude it"),
        ("{\n<<<<<<< HEAD\n", "2:1: not checked holds a conflict of git: resolve the merge"),
        ("[]", '1:1: not checked is no notebook: it has no "nbformat". Restore it, or exclude it'),
        ('{"nbformat": 4}', '1:1: not checked is no notebook: it has no list of "cells". Restore it, or exclude it'),
        (
            '{"nbformat": 3, "worksheets": []}',
            "1:1: not checked has format 3 of notebooks, and breakscan reads format 4: "
            "'jupyter nbconvert --to notebook --inplace' converts it",
        ),
        (
            '{"nbformat": 4, "cells": [{"cell_type": "code", "source": [1]}]}',
            '1:1: not checked has no code in cell 1: its "source" is neither a text nor a list of texts',
        ),
        ("[" * 100_000, "1:1: not checked cannot be read: its JSON is nested too deeply, or has too long a number"),
        (
            notebook(cell("import torch"), cell("y = 1\ndef f(:")),
            "cell 2:2:7: not checked cannot be parsed: invalid syntax",
        ),
        (
            notebook(cell("if True:"), cell("    x = 1")),
            "cell 1:1:9: not checked cannot be parsed: expected an indented",
        ),
        (notebook(cell("'\ufdd0'")), "1:1: not checked cell 1 holds U+FDD0 or U+FDD1, which Unicode does not allow in"),
    ],
)
def test_what_is_wrong_with_a_notebook_is_told(breakscan: Run, project: Path, text: str, message: str) -> None:
    (project / "train.ipynb").write_text(text, encoding="utf-8")
    (project / "other.py").write_text("import torch\n", encoding="utf-8")
    for command in ("check", "fix"):
        done = breakscan(command, ".", *(["--format", "concise"] if command == "check" else []))
        assert done.status == (1 if "cannot be parsed" in message else 2)
        assert message.replace("not checked ", "" if command == "fix" else "not checked ").split(": ", 1)[1] in (
            done.out + done.err
        ).replace("\n", " ")
    assert breakscan("check", ".", "--format", "concise").out.startswith(f"train.ipynb:{message}")


def test_a_notebook_of_another_language_is_skipped(breakscan: Run, project: Path) -> None:
    (project / "train.ipynb").write_text(notebook(cell("x <- c(1,2"), language="R"), encoding="utf-8")
    assert breakscan("check", "train.ipynb").status == 0


def test_fix_changes_the_code_and_no_other_byte(breakscan: Run, project: Path) -> None:
    before = (project / "train.ipynb").read_text(encoding="utf-8")
    done = breakscan("fix", "--unsafe", "--write")
    assert done.status == 0
    assert done.err.startswith("train.ipynb:cell 3:5:12  BRK101 branch-on-tensor  written")
    after = (project / "train.ipynb").read_text(encoding="utf-8")
    old = json.dumps(NET.splitlines(keepends=True), indent=1).replace("\n", "\n   ")
    new = json.dumps(FIXED.splitlines(keepends=True), indent=1).replace("\n", "\n   ")
    assert old in before
    assert after == before.replace(old, new)
    assert breakscan("check").status == 0


@pytest.mark.process
def test_the_diff_of_fix_is_for_git(breakscan: Run, project: Path) -> None:
    diff = breakscan("fix", "--unsafe").out
    subprocess.run(["git", "apply", "-"], input=diff, text=True, cwd=project, check=True)
    applied = (project / "train.ipynb").read_text(encoding="utf-8")
    subprocess.run(["git", "apply", "-R", "-"], input=diff, text=True, cwd=project, check=True)
    breakscan("fix", "--unsafe", "--write")
    assert (project / "train.ipynb").read_text(encoding="utf-8") == applied


def test_the_json_of_fix_names_the_cell(breakscan: Run, project: Path, valid: Valid) -> None:
    data = valid(breakscan("fix", "--unsafe", "--format", "json").out, "fix")
    site = data["files"][0]["unsafe"][0]["finding"]["site"]
    assert (site["path"], site["cell"], site["line"]) == ("train.ipynb", 3, 5)


def test_code_with_a_command_inside_is_not_rewritten(breakscan: Run, project: Path) -> None:
    text = (project / "train.ipynb").read_text(encoding="utf-8")
    inside = text.replace("            y = torch", "            %who\\n            y = torch")
    (project / "train.ipynb").write_text(inside, encoding="utf-8")
    done = breakscan("fix", "--unsafe", "--write")
    assert (project / "train.ipynb").read_text(encoding="utf-8") == inside
    assert "train.ipynb:cell 3:5:12  BRK101 branch-on-tensor  stays" in done.err


def test_an_import_goes_to_the_cell_of_imports(breakscan: Run, project: Path) -> None:
    source = "%%capture\nfrom torch import nn, Tensor, compile"
    net = "@compile\ndef f(x: Tensor, y: Tensor):\n    if x.any():\n        y = y + 1\n    return y\n"
    (project / "train.ipynb").write_text(notebook(cell("!ls"), cell(source), cell(net)), encoding="utf-8")
    breakscan("fix", "--unsafe", "--write")
    cells = json.loads((project / "train.ipynb").read_text(encoding="utf-8"))["cells"]
    assert "torch.where(" in "".join(cells[2]["source"])
    assert "".join(cells[1]["source"]) == "%%capture\nimport torch\nfrom torch import nn, Tensor, compile"
    assert cells[0]["source"] == ["!ls"]


@pytest.mark.parametrize("command", ["explain", "verify", "bench", "tune"])
def test_a_notebook_is_no_program(breakscan: Run, project: Path, command: str) -> None:
    done = breakscan(command, "train.ipynb")
    assert done.status == 2
    assert "train.ipynb is a notebook, which Python cannot run: in it, %%breakscan shows what a cell does" in done.err
    assert "'jupyter nbconvert --to script train.ipynb'" in done.err


FILLER = st.sampled_from(
    [
        "x = 1",
        "",
        "# é",
        "%who",
        "!ls \\\n  a",
        "print('''\n%who\n''')",
        "x = !ls",
        "if x:\n    %time y = 2\n    z = (1,\n 2)",
        "x?",
    ]
)


@given(
    before=st.lists(st.tuples(FILLER, st.sampled_from(["code", "markdown"])), max_size=4),
    inside=st.lists(FILLER, max_size=3),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_positions_are_those_of_the_cell(
    breakscan: Run, project: Path, before: list[tuple[str, str]], inside: list[str]
) -> None:
    head = "".join(f"{line}\n" for line in inside)
    break_ = "@torch.compile\ndef f(x: torch.Tensor):\n    s = 'é'; return x.sum().item()"
    cells = [cell("import torch"), *(cell(text, kind) for text, kind in before), cell(head + break_)]
    (project / "train.ipynb").write_text(notebook(*cells), encoding="utf-8")
    place = f"train.ipynb:cell {len(cells)}:{head.count(chr(10)) + 3}:21: "
    assert breakscan("check", "train.ipynb", "--format", "concise", "--no-cache").out.startswith(place)
    jsonschema.validate(breakscan("check", "train.ipynb", "--format", "sarif").json, {"type": "object"})
