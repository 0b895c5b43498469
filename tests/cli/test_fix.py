"""``breakscan fix`` as people run it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from breakscan.fix.planner import LAST_RESORT
from breakscan.fix.registry import rewrite_ids

COPIES = """import copy

import torch


class Block(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        y = x.sin()
        kept = copy.deepcopy(y)  # for later
        return y.cos() + kept
"""
FIXED = COPIES.replace("copy.deepcopy(y)", "y.detach().clone()").replace("import copy\n\n", "")


@pytest.fixture
def copies(folder: Path) -> Path:
    for path in folder.glob("*.py"):
        path.unlink()
    (folder / "copies.py").write_text(COPIES, encoding="utf-8")
    (folder / "pyproject.toml").write_text('[tool.breakscan]\ntarget-torch = "2.13"\n', encoding="utf-8")
    return folder / "copies.py"


def test_what_is_not_safe_is_shown_and_not_written(breakscan: Callable[..., Any], copies: Path) -> None:
    done = breakscan("fix", ".")
    assert done.status == 0
    assert re.search(r"^@@ .* @@ unsafe$", done.out, re.MULTILINE)
    assert "copies.py:9:16  BRK409 deepcopy-of-tensor  unsafe\n   the copy is a plain dense tensor" in done.err
    assert "1 unsafe edit (1 file checked, torch 2.13).  --write --unsafe writes all.\n" in done.err
    again = breakscan("fix", "--write", ".")
    assert (again.status, again.out, copies.read_text()) == (0, "", COPIES)


TWO = """import torch


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        y = pow(x, 2)
        if y.sum() > 1:
            y = y * 2
        return y.cos()
"""


def test_safe_edits_are_written_and_the_others_are_left(breakscan: Callable[..., Any], copies: Path) -> None:
    copies.write_text(TWO, encoding="utf-8")
    done = breakscan("fix", ".")
    assert (done.status, re.findall(r"^@@ .* @@ (.*)$", done.out, re.MULTILINE)) == (1, ["line 6 safe, line 7 unsafe"])
    written = breakscan("fix", "--write", ".")
    assert written.status == 0
    assert copies.read_text() == TWO.replace("pow(x, 2)", "x**2")
    assert re.findall(r"(written|safe|unsafe)$", written.err, re.MULTILINE) == ["written", "unsafe"]
    assert breakscan("fix", "--write", "--unsafe", ".").status == 0
    assert "y = torch.where(y.sum() > 1, y * 2, y)" in copies.read_text()


HELPER = """import torch


def classes(x: torch.Tensor, y: torch.Tensor):
    return torch.unique(x).size(0) + len(torch.unique(y))


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x.sin() * classes(x, x + 1)
"""


def test_a_function_is_disabled_as_a_last_resort(breakscan: Callable[..., Any], copies: Path) -> None:
    copies.write_text(HELPER.replace(" + len(", " + \\\n        len("), encoding="utf-8")
    file = breakscan("fix", "--format", "json", ".").json["files"][0]
    assert {(one["rewrite"], one["difference"]) for one in file["unsafe"]} == {
        ("disable-function", "`classes` is no longer compiled (unique)")
    }
    assert "+@torch.compiler.disable\n def classes(" in breakscan("fix", "--unsafe", ".").out


def test_a_generated_file_is_left_alone(breakscan: Callable[..., Any], copies: Path) -> None:
    copies.write_text(f"# Automatically generated from other.py.\n{COPIES}", encoding="utf-8")
    done = breakscan("fix", "--unsafe", ".")
    assert (done.status, done.out) == (0, "")
    assert "copies.py:10:16  BRK409 deepcopy-of-tensor  stays" in done.err
    assert "this file is generated from `other.py`: change the code there. Instead: " in done.err


@pytest.mark.process
def test_the_diff_is_one_that_git_applies(breakscan: Callable[..., Any], copies: Path) -> None:
    done = breakscan("fix", "--unsafe", ".")
    assert done.status == 1
    assert (
        "-        kept = copy.deepcopy(y)  # for later\n+        kept = y.detach().clone()  # for later\n" in done.out
    )
    assert copies.read_text() == COPIES
    assert done.err.endswith("1 unsafe edit (1 file checked, torch 2.13).  --write --unsafe writes all.\n")
    subprocess.run(["git", "apply", "-"], input=done.out, text=True, cwd=copies.parent, check=True)
    assert copies.read_text() == FIXED


@pytest.mark.process
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (COPIES.replace("\n", "\r\n").encode(), FIXED.replace("\n", "\r\n").encode()),
        (b"\xef\xbb\xbf" + COPIES.encode(), b"\xef\xbb\xbf" + FIXED.encode()),
        (COPIES.rstrip().encode(), FIXED.rstrip().encode()),
        (b"# coding: latin-1\n# \xe9\n" + COPIES.encode(), b"# coding: latin-1\n# \xe9\n\n" + FIXED.encode()),
    ],
)
@pytest.mark.parametrize("way", ["git", "write"])
def test_bytes_that_are_no_code_stay(
    process: Callable[..., Any], copies: Path, before: bytes, after: bytes, way: str
) -> None:
    copies.write_bytes(before)
    if way == "write":
        assert process("fix", "--unsafe", "--write", "copies.py").status == 0
    else:
        patch = copies.parent / "change.patch"
        assert process("fix", "--unsafe", "-o", "change.patch", "copies.py").status == 1
        data = patch.read_bytes()
        if b"coding" in before:
            data = data.decode().encode("latin-1")  # the diff is UTF-8, as its output is
        subprocess.run(["git", "apply", "-"], input=data, cwd=copies.parent, check=True)
    assert copies.read_bytes() == after


def test_written_files_are_done_with(breakscan: Callable[..., Any], copies: Path) -> None:
    done = breakscan("fix", "--unsafe", "--write", ".")
    assert (done.status, done.out) == (0, "")
    assert "copies.py:9:16  BRK409 deepcopy-of-tensor  written" in done.err
    assert done.err.endswith("1 unsafe edit written (1 file checked, torch 2.13).\n")
    assert copies.read_text() == FIXED
    again = breakscan("fix", "--unsafe", "--write", ".")
    assert (again.status, again.out, again.err) == (0, "", "Nothing to rewrite (1 file checked, torch 2.13).\n")
    assert breakscan("check", ".").status == 0


def test_a_comment_that_silences_a_finding_keeps_it(breakscan: Callable[..., Any], copies: Path) -> None:
    copies.write_text(COPIES.replace("# for later", "# breakscan: ignore[BRK409]"))
    assert breakscan("fix", "--unsafe", ".").err == "Nothing to rewrite (1 file checked, torch 2.13).\n"


def test_rules_and_rewrites_can_be_chosen(breakscan: Callable[..., Any], copies: Path) -> None:
    assert breakscan("fix", "--unsafe", "--select", "BRK1", ".").status == 0
    assert breakscan("fix", "--unsafe", "--select", "BRK409", ".").status == 1
    assert breakscan("fix", "--unsafe", "--rewrite", "where,clone", ".").status == 1
    done = breakscan("fix", "--unsafe", "--rewrite", "where", ".")
    assert (done.status, done.err) == (0, "Nothing to rewrite (1 file checked, torch 2.13).\n")


def test_an_unknown_rewrite_is_an_error(breakscan: Callable[..., Any], copies: Path) -> None:
    done = breakscan("fix", "--rewrite", "clon", ".")
    assert done.status == 2
    assert "there is no rewrite 'clon': did you mean clone?" in done.err


def test_one_bad_file_keeps_none_of_the_others_back(breakscan: Callable[..., Any], copies: Path) -> None:
    (copies.parent / "bad.py").write_text("import torch\ndef f(:\n")
    done = breakscan("fix", "--unsafe", "--write", ".")
    assert done.status == 1
    assert "bad.py:2:7  cannot be parsed: invalid syntax" in done.err
    assert copies.read_text() == FIXED


def test_a_file_that_cannot_be_written_is_named(breakscan: Callable[..., Any], copies: Path) -> None:
    other = copies.parent / "other.py"
    other.write_text(COPIES)
    copies.chmod(0o444)
    done = breakscan("fix", "--unsafe", "--write", ".")
    assert done.status == 2
    assert "copies.py:9:16  BRK409 deepcopy-of-tensor  unsafe" in done.err
    assert "copies.py:1:1  cannot be written: the file is read-only; nothing was changed\n" in done.err
    assert "1 unsafe edit written, 1 unsafe edit (" in done.err
    assert (copies.read_text(), other.read_text()) == (COPIES, FIXED)


def test_json(breakscan: Callable[..., Any], copies: Path, valid: Callable[..., Any]) -> None:
    (copies.parent / "bad.py").write_text("def f(:\n")
    shown = valid(breakscan("fix", "--format", "json", ".").out, "fix")
    counts = {"safe": 0, "unsafe": 1, "declined": 0, "without": 0}
    assert shown["summary"] == {"files": 2, "changed": 1, **counts}
    done = valid(breakscan("fix", "--unsafe", "--write", "--format", "json", ".").out, "fix")
    (file,) = done["files"]
    assert (file["path"], file["changed"], file["written"]) == ("copies.py", True, True)
    assert "+        kept = y.detach().clone()  # for later\n" in file["diff"]
    (applied,) = file["unsafe"]
    assert applied["finding"]["rewrite"] == {"id": "clone", "safety": "unsafe"}
    assert applied["finding"]["site"]["line"] == 9
    assert [error["path"] for error in done["errors"]] == ["bad.py"]


@pytest.mark.process
def test_many_files_are_repaired_in_processes(process: Callable[..., Any], copies: Path) -> None:
    for number in range(6):
        (copies.parent / f"copies{number}.py").write_text(COPIES)
    done = process("fix", "--unsafe", "--write", "-j", "2", ".")
    assert done.status == 0
    assert "7 unsafe edits written (7 files checked" in done.err
    assert {path.read_text() for path in copies.parent.glob("*.py")} == {FIXED}


def test_every_id_of_a_rule_has_its_rewrite() -> None:
    from breakscan.rulebook.library import load_library

    named = {LAST_RESORT, *(one for rule in load_library() for one in rule.rewrites)}
    assert named <= set(rewrite_ids()), "a rule names a rewrite that is not there"
    assert set(rewrite_ids()) <= named, "no rule names this rewrite"


@pytest.mark.process
class TestStandardInput:
    def test_the_new_text_is_printed(self, process: Callable[..., Any], copies: Path) -> None:
        text = copies.read_bytes()
        copies.unlink()
        for arguments in (["-"], ["-", "--stdin-filename", "src/new.py"], ["--stdin-filename", "copies.py"]):
            done = process("fix", "--unsafe", *arguments, stdin=text)
            assert (done.status, done.out) == (0, FIXED)
            assert "BRK409 deepcopy-of-tensor  written" in done.err
        assert not copies.exists()

    def test_it_is_as_it_was_where_nothing_is_rewritten(self, process: Callable[..., Any], copies: Path) -> None:
        text = copies.read_bytes().replace(b"\n", b"\r\n") + b"# \xe9\n"
        text = b"# coding: latin-1\r\n" + text
        done = process("fix", "--rewrite", "where", "-", "-o", "out.txt", stdin=text)
        assert done.status == 0
        assert (copies.parent / "out.txt").read_bytes() == text

    def test_what_is_on_disk_does_not_count(self, process: Callable[..., Any], copies: Path) -> None:
        done = process("fix", "--unsafe", "-", "--stdin-filename", "copies.py", stdin=b"x = 1\n")
        assert (done.status, done.out) == (0, "x = 1\n")

    def test_a_diff_is_printed_where_one_is_asked_for(self, process: Callable[..., Any], copies: Path) -> None:
        done = process(
            "fix", "--unsafe", "--format", "diff", "-", "--stdin-filename", "a.py", stdin=copies.read_bytes()
        )
        assert done.status == 1
        assert done.out.startswith("--- a/a.py\n+++ b/a.py\n")

    def test_what_cannot_be_parsed_is_printed_as_it_is(self, process: Callable[..., Any], copies: Path) -> None:
        done = process("fix", "-", stdin=b"def f(:\n")
        assert (done.status, done.out) == (1, "def f(:\n")
        assert done.err.startswith("-:1:7  cannot be parsed: invalid syntax\n")

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--write", "-"], "--write is about files, and not about standard input"),
            (["-", "copies.py"], "- means standard input, and cannot be combined with other paths"),
            (["copies.py", "--stdin-filename", "a.py"], "--stdin-filename needs - as the only path"),
        ],
    )
    def test_what_does_not_go_with_it(
        self, process: Callable[..., Any], copies: Path, arguments: list[str], said: str
    ) -> None:
        done = process("fix", *arguments, stdin=b"")
        assert done.status == 2
        assert f"Error: {said}\n" in done.err
