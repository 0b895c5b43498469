"""``breakscan check`` as a user runs it."""

import json
import os
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest

from tests.cli.conftest import Run
from tests.conftest import Valid

PRINTS = "import torch\n@torch.compile\ndef f(x):\n    print(x)\n    return x\n"
LINE = "model.py:6:12: warning BRK101 a Python branch on a tensor's value"


def test_a_break_is_found_and_the_exit_status_is_1(breakscan: Run) -> None:
    done = breakscan("check", "model.py", "--format", "concise")
    assert (done.status, done.err) == (1, "")
    assert done.out.splitlines()[0] == LINE


def test_nothing_found_is_status_0(breakscan: Run) -> None:
    done = breakscan("check", "clean.py")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("nothing found in 1 file (")


def test_regions_are_listed_with_the_calls_of_which_nothing_is_known(breakscan: Run, folder: Path) -> None:
    (folder / "train.py").write_text(f"{PRINTS}def fit(m):\n    m.compile()\n    m.head.compile()\n", encoding="utf-8")
    done = breakscan("check", "--show-regions", "train.py")
    assert done.status == 0
    said = [line.split(" ")[:2] for line in done.out.splitlines()]
    assert said == [["train.py:2:", "f"], ["train.py:7:", "unknown"], ["train.py:8:", "unknown"]]


def test_compiled_code_in_other_files_and_of_libraries_is_named(breakscan: Run, folder: Path) -> None:
    (folder / "net.py").write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n", encoding="utf-8"
    )
    (folder / "train.py").write_text(
        "import torch, lib, net\nmodel = torch.compile(net.Net())\nother = torch.compile(lib.Model())\n",
        encoding="utf-8",
    )
    lines = breakscan("check", "--show-regions", "train.py").out.splitlines()
    assert [line.split(" · ")[-1].split(" ")[0] for line in lines] == ["1", "train.py:3:"]
    out = breakscan("check", "train.py").out
    assert "1 more" in out
    assert "1 unknown" in out
    assert "more" not in breakscan("check", "train.py", "net.py").out


def test_json_is_valid_by_the_schema(breakscan: Run, folder: Path, valid: Valid) -> None:
    (folder / "broken.py").write_text("def f(:\n", encoding="utf-8")
    data = valid(breakscan("check", ".", "gone.py", "--format", "json").out, "check")
    assert data["summary"] == {"files": 3, "findings": 1, "known": 0, "by_rule": {"BRK101": 1}}
    assert [error["path"] for error in data["errors"]] == ["broken.py", "gone.py"]
    region = {"path": "model.py", "line": 5, "how": "nn.Module.forward", "entry": data["findings"][0]["function"]}
    assert data["findings"][0]["region"] == region


def test_sarif_names_a_file_as_it_is_called(breakscan: Run, folder: Path) -> None:
    (folder / ".git").mkdir()
    names = ["a\x1b[31m.py", "b\u202e.py", "c 1%.py", "d\udcff.py"]
    for name in names:
        (folder / name).write_text((folder / "model.py").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "model.py").unlink()
    (run,) = breakscan("check", ".", "--format", "sarif").json["runs"]
    uris = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]]
    assert sorted(os.fsdecode(unquote_to_bytes(uri)) for uri in uris) == sorted(names)
    assert "\\u001b" not in json.dumps(run)


def test_gitlab_gets_the_name_that_a_file_has(breakscan: Run, folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / "a\x1b.py").write_text(PRINTS, encoding="utf-8")
    (one,) = breakscan("check", "a\x1b.py", "--format", "gitlab").json
    assert one["location"]["path"] == "a\x1b.py"


def test_a_name_that_would_steer_the_terminal_is_shown(breakscan: Run, folder: Path) -> None:
    (folder / "a\x1b[31m.py").write_text("import torch  # breakscan: ignore[\n", encoding="utf-8")
    for format_ in ("full", "concise", "github"):
        done = breakscan("check", ".", "a\x1b[31mgone.py", "--format", format_)
        assert "a␛[31mgone.py:1:1" in done.out
        assert "a␛[31m.py:1:" in done.err
        assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize("format_", ["full", "concise", "json", "github", "sarif"])
def test_what_cannot_be_parsed_is_an_error_of_its_file_and_the_rest_is_still_checked(
    breakscan: Run, folder: Path, format_: str
) -> None:
    (folder / "broken.py").write_text("x = 1\ndef f(:\n", encoding="utf-8")
    done = breakscan("check", "--format", format_)
    assert done.status == 1
    assert "BRK101" in done.out
    assert "cannot be parsed: invalid syntax" in done.out
    assert done.err == ""


def test_a_path_that_does_not_exist_is_status_2(breakscan: Run) -> None:
    done = breakscan("check", "gone.py", "clean.py", "--format", "concise")
    assert done.status == 2
    assert done.out.startswith("gone.py:1:1: not checked there is no such file or folder\n")


def test_exit_zero_forgives_findings_but_not_errors(breakscan: Run, folder: Path) -> None:
    (folder / "newer.py").write_text("type type = type type\n", encoding="utf-8")
    assert breakscan("check", "newer.py", "clean.py").status == 1
    assert breakscan("check", "newer.py", "clean.py", "gone.py").status == 2
    assert breakscan("check", "newer.py", "clean.py", "--exit-zero").status == 0
    errors = breakscan("check", "newer.py", "gone.py", "--format", "json").json["errors"]
    assert {error["path"]: error["syntax"] for error in errors} == {"newer.py": True, "gone.py": False}
    assert breakscan("check", "model.py", "--exit-zero").status == 0
    assert breakscan("check", "gone.py", "--exit-zero").status == 2


def test_a_folder_without_python_files_is_a_warning(breakscan: Run, folder: Path) -> None:
    (folder / "docs").mkdir()
    done = breakscan("check", "docs", "--format", "json")
    assert (done.status, done.err) == (0, "warning: no Python files or notebooks in docs\n")
    assert done.json["summary"]["files"] == 0


class TestSelection:
    @pytest.mark.parametrize(
        ("options", "status"),
        [
            (["--select", "BRK101"], 1),
            (["--select", "BRK1,BRK4"], 1),
            (["--select", "BRK4", "--select", "branch-on-tensor"], 1),
            (["--select", "BRK4"], 0),
            (["--ignore", "BRK101"], 0),
            (["--ignore", "BRK1", "--select", "BRK101"], 1),
            (["--exclude", "model.py"], 1),
            (["--exclude", "model.py", "--force-exclude"], 0),
            (["--confidence", "certain"], 1),
            (["--regions", "roots"], 0),
            (["--regions", "modules"], 1),
        ],
    )
    def test_by_options(self, breakscan: Run, folder: Path, options: list[str], status: int) -> None:
        assert breakscan("check", "model.py", *options).status == status

    def test_a_comment_that_cannot_be_read_is_a_warning(self, breakscan: Run, folder: Path) -> None:
        model = folder / "model.py"
        text = model.read_text(encoding="utf-8")
        model.write_text(text.replace("any():", "any():  # breakscan: ignore[BRK101"), encoding="utf-8")
        done = breakscan("check", "model.py", "--format", "json")
        assert done.status == 1
        assert len(done.json["findings"]) == 1
        assert done.err == (
            "warning: model.py:6:22: this comment silences nothing: write ignore[BRK101, …]: no ] in the brackets\n"
        )


class TestConfiguration:
    def test_is_else_that_of_the_working_directory(
        self, breakscan: Run, folder: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        other = tmp_path_factory.mktemp("other") / "model.py"
        other.write_text((folder / "model.py").read_text(encoding="utf-8"), encoding="utf-8")
        assert breakscan("check", str(other)).status == 1
        (folder / "pyproject.toml").write_text("[tool.breakscan]\nignore = ['ALL']\n", encoding="utf-8")
        assert breakscan("check", str(other)).status == 0

    @pytest.mark.parametrize("command", [["check"], ["rules"], ["rule", "BRK101"]])
    def test_an_error_in_it_is_one_line_and_status_2(self, breakscan: Run, folder: Path, command: list[str]) -> None:
        config = folder / "pyproject.toml"
        config.write_text("[tool.breakscan]\nslect = ['ALL']\n", encoding="utf-8")
        done = breakscan(*command)
        assert (done.status, done.out) == (2, "")
        assert done.err == f"Error: {config}:2: slect: unknown key: did you mean select?\n"

    def test_the_target_is_in_every_report(self, breakscan: Run) -> None:
        data = breakscan("check", "--format", "json", "--target-torch", "2.13.1", "--fullgraph").json
        assert data["target"] == {"torch": "2.13", "fullgraph": True, "mode": "fullgraph"}
        assert ", fullgraph=True" in breakscan("check", "--fullgraph").out

    def test_two_targets_list_what_changes(self, breakscan: Run, folder: Path) -> None:
        listing = "import torch\n\n\n@torch.compile\ndef f(x):\n    return x.sin() * len(dir(x))\n"
        (folder / "listing.py").write_text(listing, encoding="utf-8")
        done = breakscan("check", "--target-torch", "2.14,2.13", "listing.py", "model.py")
        first, last = done.out.splitlines()
        assert done.status == 1
        assert first.startswith("listing.py:6:26: no finding → warning (splits)  BRK504 ")
        assert last == "torch 2.14 → 2.13: 1 new in 2 files"
        [change] = breakscan("check", "--target-torch", "2.14,2.13", "--format", "json", "listing.py").json["changes"]
        assert (change["change"], change["before"], change["after"]["rule"]) == ("new", None, "BRK504")
        assert breakscan("check", "--target-torch", "2.13,2.14", ".").status == 0


@pytest.mark.process
class TestStandardInput:
    def test_goes_by_the_name_that_it_is_given(self, process: Run, folder: Path) -> None:
        text = (folder / "model.py").read_bytes()
        done = process("check", "-", "--stdin-filename", "src/new.py", "--format", "concise", stdin=text)
        assert done.status == 1
        assert done.out.startswith("src/new.py:6:12: warning BRK101 ")

    def test_the_code_frame_shows_it(self, process: Run, folder: Path) -> None:
        text = (folder / "model.py").read_bytes()
        for arguments in (["-"], ["--stdin-filename", "model.py"]):
            done = process("check", *arguments, stdin=b"# a line more\n" + text)
            assert "7 │         if x.any():" in done.out

    def test_has_an_encoding_of_its_own(self, process: Run, folder: Path) -> None:
        text = (folder / "model.py").read_text(encoding="utf-8")
        text = "# coding: latin-1\n" + text.replace("if x.any()", "if 'ä' and x.any()")
        done = process("check", "-", stdin=text.encode("latin-1"), env={"PYTHONIOENCODING": "utf-8"})
        assert "7 │         if 'ä' and x.any():" in done.out
        assert "│                    ━━━━━━━ a" in done.out

    @pytest.mark.parametrize(("data", "said"), [(b"def f(:\n", "invalid syntax"), (b"x = '\xff'\n", "not valid UTF-8")])
    def test_what_cannot_be_read_is_an_error(self, process: Run, data: bytes, said: str) -> None:
        done = process("check", "-", "--format", "json", stdin=data)
        assert done.status == (1 if said == "invalid syntax" else 2)
        (error,) = done.json["errors"]
        assert error["path"] == "-"
        assert said in error["message"]

    def test_is_left_alone_where_its_name_is_excluded(self, process: Run, folder: Path) -> None:
        text = (folder / "model.py").read_bytes()
        options = ["--stdin-filename", "build/model.py", "--format", "json"]
        assert process("check", "-", *options, stdin=text).status == 1
        done = process("check", "-", *options, "--force-exclude", stdin=text)
        assert (done.status, done.json["summary"]["files"]) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-", "model.py"], "- means standard input, and cannot be combined with other paths"),
        (["model.py", "--stdin-filename", "x.py"], "--stdin-filename needs - as the only path"),
        (["--format", "xml"], "'xml' is not one of"),
        (["--jobs", "0"], "--jobs"),
        (["--select", ","], "needs at least one word"),
        (["--select", "BRK190"], "--select: no rule is called 'BRK190'"),
        (["--target-torch", "new"], "--target-torch: must be a torch version"),
        (["--target-torch", "2.11,2.12,2.13"], "--target-torch takes one version, or two that are compared"),
        (["--target-torch", "2.11,2.12", "--show-regions"], "--target-torch A,B lists what changes in files"),
        (["--config", "gone.toml"], "gone.toml:1: cannot be read"),
        (["--slect", "ALL"], "No such option"),
        (["model.py", "--output", "no/such/folder/x.txt"], "cannot write no/such/folder/x.txt: No such file"),
    ],
)
def test_wrong_usage_is_status_2_with_one_line(breakscan: Run, arguments: list[str], said: str) -> None:
    done = breakscan("check", *arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.err.splitlines()[-1]


def test_paths_elsewhere_are_absolute(breakscan: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    data = breakscan("check", "..", "--format", "json").json
    assert data["findings"][0]["site"]["path"] == (folder / "model.py").as_posix()


@pytest.mark.process
def test_a_terminal_without_unicode_gets_ascii(process: Run) -> None:
    done = process("check", "model.py", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.status == 1
    assert "6 |         if x.any():" in done.out
    assert "|            ^^^^^^^ a Python branch" in done.out


def test_a_fault_of_breakscan_is_not_taken_for_a_finding(breakscan: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("boom")

    monkeypatch.setattr("breakscan.check.pipeline.check.check_paths", fail)
    done = breakscan("check")
    assert done.status == 2
    assert "AssertionError: boom" in done.err
    assert "a fault in breakscan, not in your code" in done.err


def test_ctrl_c_is_status_130(breakscan: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("breakscan.check.pipeline.check.check_paths", interrupt)
    assert breakscan("check").status == 130


@pytest.mark.process
def test_a_file_in_the_working_directory_is_not_run_for_a_library(process: Run, folder: Path) -> None:
    (folder / "click.py").write_text("raise SystemExit(77)\n", encoding="utf-8")
    assert process("check", "--no-cache", "model.py").status == 1
