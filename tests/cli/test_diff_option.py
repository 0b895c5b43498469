"""``breakscan check --diff REF``: what is new since another commit, in real repositories."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.process
CALLER = """import torch
from helper import scaled


@torch.compile
def f(x: torch.Tensor):
    return scaled(x) + 1
"""
HELPER = "def scaled(x):\n    return x * 2\n"


def git(folder: Path, *arguments: str) -> str:
    identity = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for role in ("AUTHOR", "COMMITTER"):
        identity |= {f"GIT_{role}_NAME": "x", f"GIT_{role}_EMAIL": "x@example.com"}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, env=os.environ | identity, check=True
    )
    return done.stdout


@pytest.fixture
def repository(folder: Path) -> Path:
    """The working directory, committed on ``main``, and a branch that is checked out."""
    (folder / "caller.py").write_text(CALLER, encoding="utf-8")
    (folder / "helper.py").write_text(HELPER, encoding="utf-8")
    git(folder, "init", "-q", "-b", "main")
    commit(folder)
    git(folder, "switch", "-q", "-c", "branch")
    return folder


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "change")


def found(done: Any) -> list[str]:
    return [line.partition(": ")[0] for line in done.out.splitlines() if "BRK" in line]


@pytest.fixture
def check(breakscan: Run, repository: Path) -> Run:
    def run(*arguments: str) -> Any:
        done = breakscan("check", "--format", "concise", "--diff", "main", *arguments)
        anew = breakscan("check", "--format", "concise", "--diff", "main", "--no-cache", *arguments)
        assert (found(done), done.status) == (found(anew), anew.status), "what is kept makes a difference"
        return done

    return run


def test_what_was_there_is_not_reported(check: Run) -> None:
    done = check()
    assert (done.status, done.err, found(done)) == (0, "", [])
    assert "1 known" in done.out


def test_lines_that_changed(check: Run, repository: Path) -> None:
    model = repository / "model.py"
    text = model.read_text(encoding="utf-8")
    model.write_text("import math\n\n" + text.replace("return x", "print(x)\n        return x"), encoding="utf-8")
    done = check()
    assert (done.status, found(done)) == (1, ["model.py:10:9"])
    commit(repository)
    assert found(check()) == ["model.py:10:9"]
    git(repository, "switch", "-q", "main")
    assert found(check()) == []


def test_what_they_bring_about_elsewhere(check: Run, repository: Path) -> None:
    (repository / "helper.py").write_text("def scaled(x):\n    return x * x.sum().item()\n", encoding="utf-8")
    (repository / "unchanged.py").write_text("import math\n", encoding="utf-8")
    assert found(check("caller.py", "helper.py")) == ["helper.py:2:16"]


def test_a_file_that_moved(check: Run, repository: Path) -> None:
    (repository / "inner").mkdir()
    (repository / "model.py").rename(repository / "inner" / "net.py")
    assert (check().status, check("inner").status) == (0, 1)
    (repository / "copy.py").write_text((repository / "inner" / "net.py").read_text(encoding="utf-8"), encoding="utf-8")
    assert len(found(check())) == 1


def test_what_is_new_on_the_other_branch_does_not_count(check: Run, repository: Path) -> None:
    git(repository, "switch", "-q", "main")
    (repository / "model.py").write_text("import torch\n", encoding="utf-8")
    commit(repository)
    git(repository, "switch", "-q", "branch")
    assert check().status == 0


def test_another_working_directory(check: Run, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "inner").mkdir()
    monkeypatch.chdir("inner")
    done = check("..")
    assert (done.status, done.err) == (0, "")
    (repository / "clean.py").write_text((repository / "model.py").read_text(encoding="utf-8"), encoding="utf-8")
    assert len(found(check(".."))) == 1


def test_what_is_compiled_below_the_working_directory_and_defined_above_it(
    check: Run, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "breakscan.toml").write_text("", encoding="utf-8")
    (repository / "helper.py").write_text("def scaled(x):\n    print(x)\n    return x * 2\n", encoding="utf-8")
    (repository / "inner").mkdir()
    (repository / "caller.py").rename(repository / "inner" / "caller.py")
    commit(repository)
    git(repository, "switch", "-q", "-C", "main")
    monkeypatch.chdir("inner")
    done = check("..")
    assert (done.status, found(done)) == (0, [])
    assert "2 known" in done.out


def test_a_link_to_the_repository(check: Run, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = repository.parent / "link"
    link.symlink_to(repository)
    monkeypatch.chdir(link)
    assert (check().status, check(str(link / "model.py")).status) == (0, 0)


def test_the_present_settings_count_for_both(check: Run, repository: Path) -> None:
    (repository / "breakscan.toml").write_text('[per-file-ignores]\n"/model.py" = ["BRK1"]\n', encoding="utf-8")
    assert "known" not in check().out
    (repository / "breakscan.toml").write_text('select = ["BRK4"]\n', encoding="utf-8")
    assert "known" not in check().out


def test_no_filter_of_the_repository_runs(check: Run, repository: Path) -> None:
    (repository / ".gitattributes").write_text("*.py filter=bad export-ignore\n", encoding="utf-8")
    commit(repository)
    git(repository, "config", "filter.bad.smudge", "touch made; cat")
    git(repository, "config", "filter.bad.required", "true")
    assert check().status == 0
    assert not (repository / "made").exists()


def test_a_commit_that_git_does_not_know(breakscan: Run, repository: Path) -> None:
    done = breakscan("check", "--diff", "gone")
    assert done.status == 2
    assert "--diff gone: git knows no commit 'gone': fetch it, or name another one" in done.err
    assert breakscan("check", "--diff", "--all").status == 2


def test_a_history_that_is_too_short(breakscan: Run, repository: Path) -> None:
    git(repository, "switch", "-q", "--orphan", "other")
    (repository / "new.py").write_text("import torch\n", encoding="utf-8")
    commit(repository)
    done = breakscan("check", "--diff", "main", "new.py")
    assert done.status == 2
    assert "main and HEAD have no common commit here: fetch more of the history" in done.err


def test_a_commit_that_would_write_elsewhere(breakscan: Run, repository: Path) -> None:
    """Such a commit is never checked out: it is only the one to compare with."""
    blob = git(repository, "hash-object", "-w", "model.py").strip()

    def tree(name: bytes, mode: bytes, found: str) -> str:
        raw = mode + b" " + name + b"\0" + bytes.fromhex(found)
        made = subprocess.run(
            ["git", "-C", str(repository), "hash-object", "-t", "tree", "-w", "--literally", "--stdin"],
            input=raw, capture_output=True, check=True,
        )  # fmt: skip
        return made.stdout.decode().strip()

    outside = tree(b"..", b"40000", tree(b"made.py", b"100644", blob))
    hostile = git(repository, "commit-tree", "-m", "x", outside).strip()
    child = git(repository, "commit-tree", "-m", "x", "-p", hostile, "HEAD^{tree}").strip()
    git(repository, "update-ref", "HEAD", child)
    done = breakscan("check", "--diff", hostile)
    assert done.status == 2
    assert "names a file outside of its repository: ../made.py" in done.err


def test_no_repository(breakscan: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
    done = breakscan("check", "--diff", "main")
    assert done.status == 2
    assert "--diff main: not a git repository" in done.err


def test_a_path_outside(breakscan: Run, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other") / "a.py"
    other.write_text("import torch\n", encoding="utf-8")
    done = breakscan("check", "--diff", "main", "model.py", str(other))
    assert done.status == 2
    assert "is outside of the repository" in done.err


@pytest.mark.parametrize(
    ("others", "said"),
    [
        (("--baseline", "b.toml"), "--baseline and --diff"),
        (("-",), "--diff needs files"),
        (("--locked",), "--locked goes with --baseline FILE"),
        (("--baseline-add",), "--baseline-add goes with --baseline FILE"),
    ],
)
def test_options_that_do_not_go_together(breakscan: Run, repository: Path, others: tuple[str, ...], said: str) -> None:
    done = breakscan("check", "--diff", "main", *others)
    assert (done.status, said in done.err) == (2, True)
