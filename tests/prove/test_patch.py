"""Unified diffs, and what they change."""

import difflib
from pathlib import Path

import pytest

from breakscan.fix.source_map import SourceMap
from breakscan.prove.rewrites import ChangeError, patched_files

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
    text = diff(BEFORE, BEFORE.replace("f\n", "F\n"))
    # The end of a mail is no part of a hunk.
    ((_, after),) = patched_files(f"{text}-- \n2.51.0\n\n", tmp_path).values()
    assert after == "0\n" * 5 + BEFORE.replace("f\n", "F\n")


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
    with pytest.raises(ChangeError, match=problem):
        patched_files(text, tmp_path)


def test_a_diff_changes_no_file_outside_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "x.py").write_text(BEFORE, encoding="utf-8")
    (folder / "link.py").symlink_to(tmp_path / "x.py")
    after = BEFORE.replace("b\n", "B\n")
    for name, prefix in [("x.py", ("../", "../")), ("../x.py", ("a/", "b/")), ("link.py", ("a/", "b/"))]:
        with pytest.raises(ChangeError, match="is not below"):
            patched_files(diff(BEFORE, after, name, prefix), folder)
    with pytest.raises(ChangeError, match="is not below"):
        patched_files(diff(BEFORE, after, str(tmp_path / "x.py"), ("", "")), folder)
