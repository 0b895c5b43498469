"""The lock of ``explain``: made, kept, shrunk, grown when asked, never written when locked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from breakscan.explanation.gates import KnownBreak, Lock, matched, read_lock
from breakscan.model.findings import Verdict
from breakscan.source.writing import write_committed
from tests.cli.conftest import Run

PROGRAM = """import torch


def f(x):
    y = x.sin()
    print("a")
    return y.cos()


torch.compile(f, backend="eager")(torch.ones(3))
"""
WORSE = PROGRAM.replace('    print("a")', '    for _ in range(1):\n        print("a")')
MORE = PROGRAM.replace('    print("a")', '    print("a")\n    y = y + y.sum().item()')
SHIFTED = "# A line.\n" + PROGRAM.replace('"a"', '"b"')
NONE = PROGRAM.replace('    print("a")\n', "")

BREAK = KnownBreak("m.py", "f", "BRK401", "GB0059", "print", 'print("a")', Verdict.SPLITS, 1, 0)


def said(done: Any) -> list[str]:
    return [line.removeprefix("breakscan: ") for line in done.err.splitlines() if line.startswith("breakscan: ")]


@pytest.mark.torch
class TestARun:
    @pytest.fixture
    def lock(self, process: Run, folder: Path) -> Run:
        """Runs a text under the lock."""

        def run(text: str, *options: str) -> Any:
            (folder / "train.py").write_text(text, encoding="utf-8")
            return process("explain", "--lock", "train.lock", *options, "train.py")

        return run

    @pytest.mark.slow
    def test_it_is_made_once_and_shrinks_alone(self, lock: Run, folder: Path) -> None:
        file = folder / "train.lock"
        assert lock(PROGRAM, "--locked").status == 2
        assert not file.exists()

        made = lock(MORE)
        assert (made.status, said(made)) == (0, ["train.lock was made, and allows 2 breaks"])
        first = file.read_bytes()
        assert first.startswith(b"# The graph breaks that `breakscan explain --lock` allows")
        assert b"\r" not in first

        again = lock(MORE, "--locked")
        assert (again.status, said(again), file.read_bytes()) == (0, [], first)

        outdated = lock(PROGRAM, "--locked")
        assert (outdated.status, file.read_bytes()) == (1, first)
        assert said(outdated) == ["train.lock is out of date (1 break gone): run without --locked, and commit it"]

        shrunk = lock(PROGRAM)
        assert (shrunk.status, said(shrunk)) == (0, ["train.lock was rewritten (1 break gone): commit it"])
        kept = read_lock(file)
        assert kept
        assert [one.rule for one in kept.breaks] == ["BRK401"]

    @pytest.mark.slow
    def test_it_grows_only_when_asked(self, lock: Run, folder: Path) -> None:
        lock(PROGRAM)
        before = (folder / "train.lock").read_bytes()
        more = lock(MORE)
        assert (more.status, (folder / "train.lock").read_bytes()) == (1, before)
        assert said(more) == [
            "not in train.lock: train.py:7 splits the graph, BRK201 in f: y = y + y.sum().item()",
            "fix this, or allow it in train.lock with --lock-add",
        ]
        worse = lock(WORSE)
        assert worse.status == 1
        assert said(worse)[0] == (
            'worse than train.lock allows: train.py:7 runs eager, BRK401 in f: print("a"); '
            "the lock says that it splits the graph"
        )
        grown = lock(MORE, "--lock-add")
        assert (grown.status, said(grown)) == (0, ["train.lock was rewritten (1 added): commit it"])

    def test_shifted_and_edited_lines_are_no_news(self, lock: Run, folder: Path) -> None:
        lock(PROGRAM)
        edited = lock(SHIFTED)
        assert edited.status == 0
        assert said(edited) == ["train.lock was rewritten (1 on a changed line): commit it"]
        kept = read_lock(folder / "train.lock")
        assert kept
        assert [one.code for one in kept.breaks] == ['print("b")']

    @pytest.mark.slow
    def test_a_program_that_fails_leaves_it_as_it_is(self, lock: Run, folder: Path) -> None:
        lock(PROGRAM)
        before = (folder / "train.lock").read_bytes()
        failed = lock(NONE + "raise SystemExit(5)\n")
        assert (failed.status, said(failed), (folder / "train.lock").read_bytes()) == (5, [], before)


@pytest.mark.torch
class TestWhatCannotBe:
    """Told before the program runs."""

    @pytest.fixture(autouse=True)
    def program(self, folder: Path) -> None:
        (folder / "train.py").write_text("raise SystemExit('it ran')", encoding="utf-8")

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            (("--locked",), "--locked goes with --lock FILE"),
            (("--lock", "other.lock"), "other.lock is the lock of other.py, not of train.py"),
            (("--lock", "damaged.lock"), "damaged.lock is damaged"),
            (("--lock", "deep.lock"), "deep.lock is damaged: cannot be read: its values are nested too deeply"),
            (("--lock", "newer.lock"), "newer.lock was written by a newer breakscan"),
            (("--lock", "pyproject.toml"), "pyproject.toml is no lock of breakscan's"),
            (("--lock", "wrong.lock"), "wrong.lock is damaged at m.py: print(\"a\"): 'count' is wrong"),
        ],
    )
    def test_it_is_said_why(self, breakscan: Run, folder: Path, options: tuple[str, ...], problem: str) -> None:
        (folder / "other.lock").write_text(Lock("other.py", "2.13", ()).text, encoding="utf-8")
        (folder / "damaged.lock").write_text("<<<<<<< HEAD\n", encoding="utf-8")
        (folder / "deep.lock").write_text("x = " + "[" * 2000 + "]" * 2000, encoding="utf-8")
        (folder / "newer.lock").write_text("version = 2\n", encoding="utf-8")
        (folder / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
        wrong = Lock("train.py", "2.13", (BREAK,)).text.replace("count = 1", "count = 0")
        (folder / "wrong.lock").write_text(wrong, encoding="utf-8")
        done = breakscan("explain", *options, "train.py")
        assert done.status == 2
        assert problem in done.err
        assert "it ran" not in done.err


@pytest.mark.parametrize("code", ['print("a\\n")', "é = '\x7f' # \t\u2028", "x" * 500, "'''", ""])
def test_what_is_written_is_read(tmp_path: Path, code: str) -> None:
    one = KnownBreak("m.py", None, None, None, 'a "type"\\', code, Verdict.EAGER, 2, 0)
    lock = Lock("-m train", "2.13", (one,))
    write_committed(tmp_path / "a.lock", lock.text)
    assert read_lock(tmp_path / "a.lock") == lock
    assert [path.name for path in tmp_path.iterdir()] == ["a.lock"]


def test_a_lock_that_is_right_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    write_committed(path, Lock("train.py", "2.13", (BREAK,)).text)
    path.chmod(0o400)
    before = path.stat()
    write_committed(path, Lock("train.py", "2.13", (BREAK,)).text)
    after = path.stat()  # the time at which it was read may be another
    assert (after.st_ino, after.st_mtime_ns, after.st_mode) == (before.st_ino, before.st_mtime_ns, before.st_mode)


def test_breaks_are_matched_by_text_then_by_line_then_by_likeness() -> None:
    same, other = BREAK, replace(BREAK, code='print("quite another text", x)')
    retyped = replace(other, rule="BRK402")
    edited = replace(same, code='print("b")', line=9)
    found = matched([same, other], [retyped, edited])
    assert [(one.code, two.code) for one, two in found.pairs] == [(other.code, retyped.code), (same.code, edited.code)]
    assert not found.gone
    assert not found.new
    elsewhere = replace(same, function="g")
    found = matched([same], [elsewhere])
    assert (found.gone, found.new) == ([same], [elsewhere])
