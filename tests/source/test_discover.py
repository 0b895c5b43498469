"""The files that a run checks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from breakscan.rulebook.config import Settings
from breakscan.source.files import discover
from breakscan.source.paths import PathPattern


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(root: Path, *names: str, text: str = "") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def found(root: Path, *paths: str, exclude: tuple[str, ...] = (), force_exclude: bool = False) -> list[str]:
    settings = Settings(root=root, exclude=tuple(PathPattern(root, pattern) for pattern in exclude))
    discovery = discover([root / path for path in paths or (".",)], settings, force_exclude=force_exclude)
    assert discovery.errors == ()
    return [path.relative_to(root).as_posix() for path in discovery.files]


def test_a_folder_gives_its_python_files_sorted(tree: Path) -> None:
    make(tree, "b.py", "a/z.py", "a/deep/er/x.py", "a/readme.md", "a/stub.pyi", "c.pyc", "py")
    assert found(tree) == ["a/deep/er/x.py", "a/z.py", "b.py"]


def test_a_named_file_is_taken_whatever_it_is_called(tree: Path) -> None:
    make(tree, "script", "notes.txt", "a.py")
    assert found(tree, "script", "a.py") == ["a.py", "script"]


def test_each_file_once(tree: Path) -> None:
    make(tree, "a/x.py")
    assert found(tree, ".", "a", "a/x.py", "a/../a/x.py") == ["a/x.py"]


def test_paths_are_absolute_and_need_not_be(tree: Path) -> None:
    make(tree, "a/x.py")
    assert discover(["a"], Settings(root=tree)).files == (tree / "a" / "x.py",)


@pytest.mark.parametrize(
    "name", [".git", ".hg", ".tox", ".venv", "venv", "node_modules", "__pycache__", "build", "dist", "site-packages"]
)
def test_folders_that_are_never_entered(tree: Path, name: str) -> None:
    make(tree, f"a/{name}/x.py", "a/y.py")
    assert found(tree) == ["a/y.py"]


@pytest.mark.parametrize("name", ["site-packages", "build", ".venv"])
def test_naming_such_a_folder_checks_it(tree: Path, name: str) -> None:
    make(tree, f"{name}/pack/x.py", f"{name}/pack/node_modules/y.py")
    assert found(tree, name) == [f"{name}/pack/x.py"]
    assert found(tree, f"{name}/pack") == [f"{name}/pack/x.py"]


class TestGitignore:
    def test_nested_files_hold_below_their_folder(self, tree: Path) -> None:
        make(tree, "x.py", "a/x.py", "a/b/x.py", "a/keep.py")
        make(tree, "a/.gitignore", text="x.py\n")
        assert found(tree) == ["a/keep.py", "x.py"]

    def test_the_deeper_file_wins(self, tree: Path) -> None:
        make(tree, "x.py", "a/x.py")
        make(tree, ".gitignore", text="x.py\n")
        make(tree, "a/.gitignore", text="!x.py\n")
        assert found(tree) == ["a/x.py"]

    def test_an_ignored_folder_is_not_entered(self, tree: Path) -> None:
        make(tree, "out/x.py", "y.py")
        make(tree, ".gitignore", text="out/\n!out/x.py\n")
        assert found(tree) == ["y.py"]

    def test_files_above_count_up_to_the_root_of_the_repository(self, tree: Path) -> None:
        make(tree, "repo/src/deep/x.py", "repo/src/deep/y.py", "repo/src/deep/z.py")
        make(tree, ".gitignore", text="x.py\n")
        make(tree, "repo/.gitignore", text="src/deep/y.py\n")
        make(tree, "repo/src/.gitignore", text="/deep/z.py\n")
        assert found(tree, "repo/src/deep") == [f"repo/src/deep/{n}.py" for n in "xyz"], "no repository here yet"
        (tree / "repo" / ".git").mkdir()
        assert found(tree, "repo/src/deep") == ["repo/src/deep/x.py"]

    def test_of_the_files_above_the_deeper_one_wins(self, tree: Path) -> None:
        (tree / ".git").mkdir()
        make(tree, "a/b/x.py", "a/b/y.py")
        make(tree, ".gitignore", text="*.py\n")
        make(tree, "a/.gitignore", text="!x.py\n")
        assert found(tree, "a/b") == ["a/b/x.py"]

    def test_an_ignored_folder_is_checked_when_it_is_named(self, tree: Path) -> None:
        (tree / ".git").mkdir()
        make(tree, ".gitignore", text="env/\n*_pb2.py\n")
        make(tree, "env/.gitignore", text="*\n")
        make(tree, "env/lib/pack/x.py", "env/lib/pack/x_pb2.py")
        assert found(tree, "env/lib/pack") == ["env/lib/pack/x.py"]

    def test_a_pattern_that_git_cannot_read_is_skipped(self, tree: Path) -> None:
        make(tree, "x.py", "y.py")
        make(tree, ".gitignore", text="!\nx.py\n# !\n\n")
        assert found(tree) == ["y.py"]

    @pytest.mark.process
    def test_agrees_with_git(self, tree: Path) -> None:
        make(tree, "a.py", "b/a.py", "b/c/a.py", "b/c/d.py", "e/f.py", "e/g/f.py", "h i/j.py", "k/[l].py", "#m.py")
        make(tree, ".gitignore", text="/a.py\nb/**/d.py\ne/*\n!e/g/\nh\\ i/\n\\#m.py\nk/\\[l\\].py  \n")
        make(tree, "b/.gitignore", text="a.py\n!/c/a.py\n")
        subprocess.run(["git", "init", "-q", "."], check=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--others", "--exclude-standard", "--", "*.py"],
            check=True,
            capture_output=True,
            text=True,
        )
        assert found(tree) == sorted(listed.stdout.rstrip("\0").split("\0"))


class TestExclude:
    @pytest.mark.parametrize(
        ("patterns", "left"),
        [
            (["b"], ["a.py", "c/b.py"]),
            (["b/"], ["a.py", "c/b.py"]),
            (["b.py"], ["a.py", "b/x.py"]),
            (["/b.py"], ["a.py", "b/x.py", "c/b.py"]),
            (["*.py", "!a.py"], ["a.py"]),
            (["c/*"], ["a.py", "b/x.py"]),
        ],
    )
    def test_patterns_are_those_of_gitignore(self, tree: Path, patterns: list[str], left: list[str]) -> None:
        make(tree, "a.py", "b/x.py", "c/b.py")
        assert found(tree, exclude=tuple(patterns)) == left

    def test_are_relative_to_the_configured_root(self, tree: Path) -> None:
        make(tree, "src/old/x.py", "src/new/x.py")
        assert found(tree, "src", exclude=("src/old",)) == ["src/new/x.py"]

    def test_hold_by_name_elsewhere(self, tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        other = tmp_path_factory.mktemp("other")
        make(other, "x_pb2.py", "y.py")
        discovery = discover([other], Settings(root=tree, exclude=(PathPattern(tree, "*_pb2.py"),)))
        assert [path.name for path in discovery.files] == ["y.py"]

    def test_a_named_folder_is_checked_but_what_else_is_excluded_in_it_is_not(self, tree: Path) -> None:
        make(tree, "tests/x.py", "tests/x_pb2.py", "y.py")
        assert found(tree, exclude=("tests", "*_pb2.py")) == ["y.py"]
        assert found(tree, "tests", exclude=("tests", "*_pb2.py")) == ["tests/x.py"]

    def test_a_named_file_is_checked_unless_forced(self, tree: Path) -> None:
        make(tree, "tests/x.py", "build/y.py", "src/z.py")
        paths = ("tests/x.py", "build/y.py", "src/z.py")
        assert found(tree, *paths, exclude=("tests",)) == ["build/y.py", "src/z.py", "tests/x.py"]
        assert found(tree, *paths, exclude=("tests",), force_exclude=True) == ["src/z.py"]

    def test_forced_on_named_folders(self, tree: Path) -> None:
        make(tree, "tests/x.py", "build/y.py", "src/z.py")
        assert found(tree, "tests", "build", "src", exclude=("tests/",), force_exclude=True) == ["src/z.py"]


class TestLinks:
    def test_a_loop_of_folders_ends(self, tree: Path) -> None:
        make(tree, "a/x.py")
        (tree / "a" / "again").symlink_to(tree / "a", target_is_directory=True)
        assert found(tree) == ["a/x.py"]

    def test_a_named_link_to_a_folder_is_followed(self, tree: Path) -> None:
        make(tree, "a/x.py")
        (tree / "link").symlink_to(tree / "a", target_is_directory=True)
        assert found(tree, "link") == ["link/x.py"]

    def test_a_link_to_a_file_is_a_file(self, tree: Path) -> None:
        make(tree, "a/x.txt")
        (tree / "y.py").symlink_to(tree / "a" / "x.txt")
        assert found(tree) == ["y.py"]

    def test_a_folder_called_py_is_a_folder(self, tree: Path) -> None:
        make(tree, "a.py/x.py")
        (tree / "b.py").symlink_to(tree / "a.py", target_is_directory=True)
        assert found(tree) == ["a.py/x.py"]


def test_a_path_that_does_not_exist_is_an_error_and_the_rest_is_taken(tree: Path) -> None:
    make(tree, "x.py")
    discovery = discover(["gone.py", "x.py", "gone/"], Settings(root=tree))
    assert [path.name for path in discovery.files] == ["x.py"]
    assert [(e.path, e.line, e.column, e.message) for e in discovery.errors] == [
        ("gone.py", 1, 1, "there is no such file or folder"),
        ("gone", 1, 1, "there is no such file or folder"),
    ]


def test_a_folder_that_cannot_be_read_is_an_error_and_the_rest_is_taken(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tree, "a/x.py", "b/y.py")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith(f"{os.sep}a"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)  # whoever runs the tests may be root
    discovery = discover([tree], Settings(root=tree))
    assert [path.name for path in discovery.files] == ["y.py"]
    assert [(e.path, e.message) for e in discovery.errors] == [("a", "cannot be read: Permission denied")]


def test_names_beyond_ascii(tree: Path) -> None:
    make(tree, "模型/größe.py")
    assert found(tree) == ["模型/größe.py"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
def test_what_is_no_file_is_passed_over(tree: Path) -> None:
    make(tree, "a.py")
    os.mkfifo(tree / "pipe.py")
    os.symlink("loop.py", tree / "loop.py")
    assert found(tree) == ["a.py"]
    (error,) = discover([tree / "pipe.py"], Settings(root=tree)).errors
    assert error.message == "is neither a file nor a folder"


def test_a_pattern_that_git_cannot_read_is_skipped(tree: Path) -> None:
    make(tree, "a.py", "b.py")
    (tree / ".git").mkdir()
    (tree / ".gitignore").write_text("[z-a]\nb.py\n", encoding="utf-8")
    assert found(tree) == ["a.py"]
