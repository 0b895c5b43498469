"""``breakscan fix`` as people run it."""

import re
import subprocess
from pathlib import Path

import pytest

from breakscan.fix.planner import LAST_RESORT
from breakscan.fix.rewrites import rewrite_ids
from tests.cli.conftest import Run
from tests.conftest import Valid

CHOICE = """import torch


class Block(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        y = x.sin()
        kept = x if y.sum() > 0 else y  # for later
        return y.cos() + kept
"""
FIXED = CHOICE.replace("x if y.sum() > 0 else y", "torch.where(y.sum() > 0, x, y)")


@pytest.fixture
def choice(folder: Path) -> Path:
    for path in folder.glob("*.py"):
        path.unlink()
    (folder / "choice.py").write_text(CHOICE, encoding="utf-8")
    (folder / "pyproject.toml").write_text('[tool.breakscan]\ntarget-torch = "2.13"\n', encoding="utf-8")
    return folder / "choice.py"


def test_what_is_not_safe_is_shown_and_not_written(breakscan: Run, choice: Path) -> None:
    done = breakscan("fix", ".")
    assert done.status == 0
    assert re.search(r"^@@ .* @@ unsafe$", done.out, re.MULTILINE)
    assert "choice.py:7:21  BRK103 ternary-on-tensor  unsafe\n   both sides are computed" in done.err
    assert "1 unsafe edit (1 file checked, torch 2.13).  --write --unsafe writes all.\n" in done.err
    again = breakscan("fix", "--write", ".")
    assert (again.status, again.out, choice.read_text()) == (0, "", CHOICE)


TWO = """import torch


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        y = pow(x, 2)
        if y.sum() > 1:
            y = y * 2
        return y.cos()
"""


def test_safe_edits_are_written_and_the_others_are_left(breakscan: Run, choice: Path) -> None:
    choice.write_text(TWO, encoding="utf-8")
    done = breakscan("fix", ".")
    assert (done.status, re.findall(r"^@@ .* @@ (.*)$", done.out, re.MULTILINE)) == (1, ["line 6 safe, line 7 unsafe"])
    written = breakscan("fix", "--write", ".")
    assert written.status == 0
    assert choice.read_text() == TWO.replace("pow(x, 2)", "x**2")
    assert re.findall(r"(written|safe|unsafe)$", written.err, re.MULTILINE) == ["written", "unsafe"]
    assert breakscan("fix", "--write", "--unsafe", ".").status == 0
    assert "y = torch.where(y.sum() > 1, y * 2, y)" in choice.read_text()


HELPER = """import torch


def classes(x: torch.Tensor, y: torch.Tensor):
    return torch.unique(x).size(0) + len(torch.unique(y))


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x.sin() * classes(x, x + 1)
"""


def test_a_function_is_disabled_only_if_that_is_asked_for(breakscan: Run, choice: Path) -> None:
    choice.write_text(HELPER.replace(" + len(", " + \\\n        len("), encoding="utf-8")
    assert not breakscan("fix", "--format", "json", ".").json["files"][0]["changed"]
    asked = ("fix", "--rewrite", LAST_RESORT)
    file = breakscan(*asked, "--format", "json", ".").json["files"][0]
    assert {(one["rewrite"], one["difference"]) for one in file["unsafe"]} == {
        ("disable-function", "`classes` is no longer compiled")
    }
    assert not file["declined"], "what was disabled is not looked at again"
    assert not file["without"]
    assert "+@torch.compiler.disable\n def classes(" in breakscan(*asked, ".").out


REFUSED = """import torch


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor, given):
        if x.sum() > 0:
            x = torch.log(x)
        print(torch.randn(3))
        n = x.sum().item()
        if n > 3:
            x = x * 2
        y = x if x.mean() > 0 else given
        return y
"""


def test_a_refusal_is_not_followed_by_the_advice_that_it_speaks_against(breakscan: Run, choice: Path) -> None:
    choice.write_text(REFUSED, encoding="utf-8")
    notes = breakscan("fix", ".").err.split("choice.py:")[1:]
    said = {note.split()[1]: "Instead: " in note for note in notes}
    assert said == {"BRK101": True, "BRK401": False, "BRK201": False, "BRK103": True}, notes
    assert "`given` is not known to be a tensor. Instead: " in " ".join(notes[-1].split())


IN_VAIN = """import torch


class Limit:
    def __init__(self, size: int):
        print("limit")
        self.size = size


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        print("net")
        while x.sum() > 1:
            x = x / 2
        return rest(x)


def rest(x: torch.Tensor):
    print("rest")
    return x + 1 if Limit(3).size > 2 else x


class Whole(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.unique(rest(x))
"""


def test_edits_that_help_nothing_are_made_only_if_asked_for(breakscan: Run, choice: Path) -> None:
    """A guard where another line of the function breaks, and code that runs when an object is made."""
    choice.write_text(IN_VAIN, encoding="utf-8")
    file = breakscan("fix", "--format", "json", ".").json["files"][0]
    edited = [(one["finding"]["function"], one["rewrite"]) for one in (*file["safe"], *file["unsafe"])]
    assert edited == [("rest", "is-compiling-guard")]
    reasons = {(one["finding"]["function"], why["reason"]) for one in file["declined"] for why in one["reasons"]}
    assert ("Net.forward", "it would gain nothing: line 13 breaks the graph all the same") in reasons
    assert ("Limit.__init__", "it runs when an object is made, and not in each call") in reasons
    file = breakscan("fix", "--rewrite", "is-compiling-guard", "--format", "json", ".").json["files"][0]
    edited = [one["finding"]["function"] for one in (*file["safe"], *file["unsafe"])]
    assert edited == ["Limit.__init__", "Net.forward", "rest"]


def test_a_generated_file_is_left_alone(breakscan: Run, choice: Path) -> None:
    choice.write_text(f"# Automatically generated from other.py.\n{CHOICE}", encoding="utf-8")
    done = breakscan("fix", "--unsafe", ".")
    assert (done.status, done.out) == (0, "")
    assert "choice.py:8:21  BRK103 ternary-on-tensor  stays" in done.err
    assert "this file is generated from `other.py`: change the code there. Instead: " in done.err


@pytest.mark.process
def test_the_diff_is_one_that_git_applies(breakscan: Run, choice: Path) -> None:
    done = breakscan("fix", "--unsafe", ".")
    assert done.status == 1
    assert "-        kept = x if y.sum() > 0 else y  # for later\n" in done.out
    assert "+        kept = torch.where(y.sum() > 0, x, y)  # for later\n" in done.out
    assert choice.read_text() == CHOICE
    assert done.err.endswith("1 unsafe edit (1 file checked, torch 2.13).  --write --unsafe writes all.\n")
    subprocess.run(["git", "apply", "-"], input=done.out, text=True, cwd=choice.parent, check=True)
    assert choice.read_text() == FIXED


@pytest.mark.process
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CHOICE.replace("\n", "\r\n").encode(), FIXED.replace("\n", "\r\n").encode()),
        (b"\xef\xbb\xbf" + CHOICE.encode(), b"\xef\xbb\xbf" + FIXED.encode()),
        (CHOICE.rstrip().encode(), FIXED.rstrip().encode()),
        (b"# coding: latin-1\n# \xe9\n" + CHOICE.encode(), b"# coding: latin-1\n# \xe9\n" + FIXED.encode()),
    ],
)
@pytest.mark.parametrize("way", ["git", "write"])
def test_bytes_that_are_no_code_stay(process: Run, choice: Path, before: bytes, after: bytes, way: str) -> None:
    choice.write_bytes(before)
    if way == "write":
        assert process("fix", "--unsafe", "--write", "choice.py").status == 0
    else:
        patch = choice.parent / "change.patch"
        assert process("fix", "--unsafe", "-o", "change.patch", "choice.py").status == 1
        data = patch.read_bytes()
        if b"coding" in before:
            data = data.decode().encode("latin-1")  # the diff is UTF-8, as its output is
        subprocess.run(["git", "apply", "-"], input=data, cwd=choice.parent, check=True)
    assert choice.read_bytes() == after


def test_written_files_are_done_with(breakscan: Run, choice: Path) -> None:
    done = breakscan("fix", "--unsafe", "--write", ".")
    assert (done.status, done.out) == (0, "")
    assert "choice.py:7:21  BRK103 ternary-on-tensor  written" in done.err
    assert done.err.endswith("1 unsafe edit written (1 file checked, torch 2.13).\n")
    assert choice.read_text() == FIXED
    again = breakscan("fix", "--unsafe", "--write", ".")
    assert (again.status, again.out, again.err) == (0, "", "Nothing to rewrite (1 file checked, torch 2.13).\n")
    assert breakscan("check", ".").status == 0


def test_a_comment_that_silences_a_finding_keeps_it(breakscan: Run, choice: Path) -> None:
    choice.write_text(CHOICE.replace("# for later", "# breakscan: ignore[BRK103]"))
    assert breakscan("fix", "--unsafe", ".").err == "Nothing to rewrite (1 file checked, torch 2.13).\n"


def test_rules_and_rewrites_can_be_chosen(breakscan: Run, choice: Path) -> None:
    assert breakscan("fix", "--unsafe", "--select", "BRK2", ".").status == 0
    assert breakscan("fix", "--unsafe", "--select", "BRK103", ".").status == 1
    assert breakscan("fix", "--unsafe", "--rewrite", "where,keep-tensor", ".").status == 1
    done = breakscan("fix", "--unsafe", "--rewrite", "keep-tensor", ".")
    assert (done.status, done.err) == (0, "Nothing to rewrite (1 file checked, torch 2.13).\n")


def test_an_unknown_rewrite_is_an_error(breakscan: Run, choice: Path) -> None:
    done = breakscan("fix", "--rewrite", "wher", ".")
    assert done.status == 2
    assert "there is no rewrite 'wher': did you mean where?" in done.err


def test_one_bad_file_keeps_none_of_the_others_back(breakscan: Run, choice: Path) -> None:
    (choice.parent / "bad.py").write_text("import torch\ndef f(:\n")
    done = breakscan("fix", "--unsafe", "--write", ".")
    assert done.status == 1
    assert "bad.py:2:7  cannot be parsed: invalid syntax" in done.err
    assert choice.read_text() == FIXED


def test_a_file_that_cannot_be_written_is_named(breakscan: Run, choice: Path) -> None:
    other = choice.parent / "other.py"
    other.write_text(CHOICE)
    choice.chmod(0o444)
    done = breakscan("fix", "--unsafe", "--write", ".")
    assert done.status == 2
    assert "choice.py:7:21  BRK103 ternary-on-tensor  unsafe" in done.err
    assert "choice.py:1:1  cannot be written: the file is read-only; nothing was changed\n" in done.err
    assert "1 unsafe edit written, 1 unsafe edit (" in done.err
    assert (choice.read_text(), other.read_text()) == (CHOICE, FIXED)


def test_json(breakscan: Run, choice: Path, valid: Valid) -> None:
    (choice.parent / "bad.py").write_text("def f(:\n")
    shown = valid(breakscan("fix", "--format", "json", ".").out, "fix")
    counts = {"safe": 0, "unsafe": 1, "declined": 0, "without": 0}
    assert shown["summary"] == {"files": 2, "changed": 1, **counts}
    done = valid(breakscan("fix", "--unsafe", "--write", "--format", "json", ".").out, "fix")
    (file,) = done["files"]
    assert (file["path"], file["changed"], file["written"]) == ("choice.py", True, True)
    assert "+        kept = torch.where(y.sum() > 0, x, y)  # for later\n" in file["diff"]
    (applied,) = file["unsafe"]
    assert applied["finding"]["rewrite"] == {"id": "where", "safety": "unsafe"}
    assert applied["finding"]["site"]["line"] == 7
    assert [error["path"] for error in done["errors"]] == ["bad.py"]


@pytest.mark.process
def test_many_files_are_repaired_in_processes(process: Run, choice: Path) -> None:
    for number in range(6):
        (choice.parent / f"choice{number}.py").write_text(CHOICE)
    done = process("fix", "--unsafe", "--write", "-j", "2", ".")
    assert done.status == 0
    assert "7 unsafe edits written (7 files checked" in done.err
    assert {path.read_text() for path in choice.parent.glob("*.py")} == {FIXED}


def test_every_id_of_a_rule_has_its_rewrite() -> None:
    from breakscan.rulebook.library import load_library

    named = {LAST_RESORT, *(one for rule in load_library() for one in rule.rewrites)}
    assert named <= set(rewrite_ids()), "a rule names a rewrite that is not there"
    assert set(rewrite_ids()) <= named, "no rule names this rewrite"
