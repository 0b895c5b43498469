"""Unified diffs, and whether what they change has run."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Any

import pytest

from breakscan.fix.source_map import SourceMap
from breakscan.prove.changed_code import UnseenKind, changed_code_ran, unrun
from breakscan.prove.overlay import executed_code
from breakscan.prove.patch import PatchError, patched_files
from breakscan.prove.protocol import RanCode

BEFORE = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n"


def diff(before: str, after: str, name: str = "x.py", prefix: tuple[str, str] = ("a/", "b/")) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), prefix[0] + name, prefix[1] + name
    )
    return "".join(lines)


@pytest.mark.parametrize("prefix", [("a/", "b/"), ("", "")])
@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("b\n", "B\n"),
        BEFORE.replace("b\n", "").replace("k\n", "k\nnew\nlines\n"),
        "first\n" + BEFORE,
        BEFORE + "last\n",
        BEFORE.replace("e\nf\ng\n", "\n\n"),
    ],
)
def test_a_diff_gives_the_text_that_it_was_made_of(tmp_path: Path, after: str, prefix: tuple[str, str]) -> None:
    (tmp_path / "x.py").write_text(BEFORE, encoding="utf-8")
    files = patched_files(diff(BEFORE, after, prefix=prefix), tmp_path)
    assert files == {str(tmp_path / "x.py"): (BEFORE, after)}
    old, new = BEFORE.split("\n"), after.split("\n")
    lines = SourceMap.of_change(BEFORE, after)
    for number, line in enumerate(new, 1):
        if number not in lines.changed_lines() or (line and line in old):
            assert old[lines.before(number) - 1] == line


def test_a_hunk_that_has_moved_is_found(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("0\n" * 5 + BEFORE, encoding="utf-8")
    ((_, after),) = patched_files(diff(BEFORE, BEFORE.replace("f\n", "F\n")), tmp_path).values()
    assert after == "0\n" * 5 + BEFORE.replace("f\n", "F\n")


def test_the_signature_of_a_mail_is_no_part_of_a_hunk(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(BEFORE, encoding="utf-8")
    ((_, after),) = patched_files(diff(BEFORE, BEFORE.replace("f\n", "F\n")) + "-- \n2.51.0\n\n", tmp_path).values()
    assert after == BEFORE.replace("f\n", "F\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nothing", "it is no unified diff"),
        ("--- a/x.py\nwhat\n", "is not followed by a line that begins with"),
        ("@@ -1 +1 @@\n-a\n+b\n", "a hunk before the name of any file"),
        ("--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-a\n", "the hunk at line 1 is cut off"),
        ("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n+c\n", "the hunk at line 1 is longer than its first line says"),
        ("--- a/y.py\n+++ b/y.py\n@@ -1 +1 @@\n-a\n+b\n", "there is no file b/y.py"),
        (
            "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-other\n+b\n",
            "is not what the diff was made of: line 1 reads otherwise",
        ),
        ("--- a/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "it deletes a/x.py"),
    ],
)
def test_what_cannot_be_applied_is_said(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "x.py").write_text(BEFORE, encoding="utf-8")
    with pytest.raises(PatchError, match=problem):
        patched_files(text, tmp_path)


CODE = """\
import os


class A:
    x = 1

    @property
    def f(self):
        if self.x:
            return g(
                1,
                2,
            )
        return 3


def g(a, b):
    print(a)
    return b
"""


@pytest.mark.parametrize(
    ("old", "new", "executed", "ran"),
    [
        pytest.param("return b", "return b + 1", {19}, True, id="the line ran"),
        pytest.param("return b", "return b + 1", {18}, False, id="another line ran"),
        pytest.param("                2,\n", "                4,\n", {10}, True, id="inside a statement"),
        pytest.param("if self.x:", "if self.x > 0:", {9}, True, id="the head of a compound statement"),
        pytest.param("if self.x:", "if self.x > 0:", {10}, False, id="not its body"),
        pytest.param("    @property\n", "    @cached\n", {14}, True, id="a decorator runs with its function"),
        pytest.param("    @property\n", "    @cached\n", {18}, False, id="and not with another"),
        pytest.param("    print(a)\n", "", {18}, True, id="what is gone is told by its neighbours"),
        pytest.param("x = 1", "x = 2", set(), True, id="outside of functions"),
        pytest.param("import os", "import sys", {1}, True, id="an import"),
        pytest.param("return b", "b += 1; return b", {19}, True, id="two statements on a line"),
    ],
)
def test_whether_changed_code_ran(old: str, new: str, executed: set[int], ran: bool) -> None:
    after = CODE.replace(old, new, 1)
    assert changed_code_ran(after, SourceMap.of_change(CODE, after), executed) is ran


GUARDED = """\
def f(x):
    if x.dtype == half:
        y = where(x > 0, x, 0)
    if not torch.compiler.is_compiling():
        check(x)
    else:
        assert_async(x)
    return y
"""


def unrun_code(before: str, after: str, ran: RanCode) -> list[str]:
    lines = SourceMap.of_change(before, after)
    return [one.code for one in unrun(UnseenKind.NEW, "it.py", after, before, lines.changed_lines(), ran)]


def test_new_lines_that_did_not_run_are_named() -> None:
    before = "def f(x):\n    check(x)\n    if x.dtype == half and x.any():\n        y = x\n    return y\n"
    assert unrun_code(before, GUARDED, RanCode((2, 4, 8))) == ["y = where(x > 0, x, 0)"]
    assert unrun_code(before, GUARDED, RanCode((2, 3, 4, 8))) == []


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("    y = 2 if x > 9 else 3", ["2"]),
        ("    y = x > 9 and g(x)", ["g(x)"]),
        ("    y = lambda z: z + 5", ["z + 5"]),
        ("    y = [z * 2 for z in ()]", ["z * 2"]),
        ("    try: y = g(x)\n    except ValueError: y = 7", ["except ValueError: y = 7"]),
        ("    y = x\n    for z in ():\n        y = z", ["y = z"]),
        ("    y = h(x)\n    def unused():\n        return 4", ["return 4"]),
        ("    y = h(x, k=1)", []),
        ("    def i(k=8): return k\n    y = i(9)", ["k=8"]),
        ("    def i(k=8): return k\n    y = i()", []),
    ],
)
@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 knows the lines of instructions alone")
def test_new_code_that_did_not_run_is_named(tmp_path: Path, code: str, named: list[str]) -> None:
    before = "def g(x):\n    return x\n\n\ndef h(x, k=2):\n    return x + k\n\n\ndef f(x):\n    y = x\n    return y\n"
    after = before.replace("    y = x\n", f"{code}\n")
    path = str(tmp_path / "it.py")
    names: dict[str, Any] = {}
    exec(compile(after, path, "exec"), names)
    with executed_code([path], closely=True) as ran:
        names["f"](1)
    assert unrun_code(before, after, ran.found()[path]) == named


def test_a_comment_is_no_code() -> None:
    after = CODE.replace("import os\n\n", "import os\n# a comment\n")
    assert changed_code_ran(after, SourceMap.of_change(CODE, after), {1}) is None


def test_a_diff_changes_no_file_outside_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "x.py").write_text(BEFORE, encoding="utf-8")
    (folder / "link.py").symlink_to(tmp_path / "x.py")
    after = BEFORE.replace("b\n", "B\n")
    for name, prefix in [("x.py", ("../", "../")), ("../x.py", ("a/", "b/")), ("link.py", ("a/", "b/"))]:
        with pytest.raises(PatchError, match="is not below"):
            patched_files(diff(BEFORE, after, name, prefix), folder)
    with pytest.raises(PatchError, match="is not below"):
        patched_files(diff(BEFORE, after, str(tmp_path / "x.py"), ("", "")), folder)
