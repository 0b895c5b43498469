"""The files that a run checks."""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

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


class Case(NamedTuple):
    """Files, those of them that are found, and what decides it; ``ignores`` are texts of ``.gitignore`` by folder."""

    files: str
    left: str
    paths: str = ""
    ignores: dict[str, str] | None = None
    exclude: tuple[str, ...] = ()
    force: bool = False
    repository: str | None = None


XYZ = "repo/src/deep/x.py repo/src/deep/y.py repo/src/deep/z.py"
ABOVE = {"": "x.py\n", "repo": "src/deep/y.py\n", "repo/src": "/deep/z.py\n"}
OF_THREE = "tests/x.py build/y.py src/z.py"
CASES = {
    "a folder": Case("b.py a/z.py a/deep/er/x.py a/readme.md a/stub.pyi c.pyc py", "a/deep/er/x.py a/z.py b.py"),
    "a named file": Case("script notes.txt a.py", "a.py script", "script a.py"),
    "each file once": Case("a/x.py", "a/x.py", ". a a/x.py a/../a/x.py"),
    "names beyond ASCII": Case("模型/größe.py", "模型/größe.py"),
    **{
        f"never entered: {name}": Case(f"a/{name}/x.py a/y.py", "a/y.py")
        for name in ".git .hg .tox .venv venv node_modules __pycache__ build dist site-packages".split()
    },
    **{
        f"named: {path}": Case(f"{name}/pack/x.py {name}/pack/node_modules/y.py", f"{name}/pack/x.py", path)
        for name in ("site-packages", "build", ".venv")
        for path in (name, f"{name}/pack")
    },
    "ignores below their folder": Case("x.py a/x.py a/b/x.py a/keep.py", "a/keep.py x.py", ignores={"a": "x.py\n"}),
    "the deeper ignore wins": Case("x.py a/x.py", "a/x.py", ignores={"": "x.py\n", "a": "!x.py\n"}),
    "an ignored folder": Case("out/x.py y.py", "y.py", ignores={"": "out/\n!out/x.py\n"}),
    "ignores above, no repository": Case(XYZ, XYZ, "repo/src/deep", ABOVE),
    "ignores above in a repository": Case(XYZ, "repo/src/deep/x.py", "repo/src/deep", ABOVE, repository="repo"),
    "of those above the deeper wins": Case(
        "a/b/x.py a/b/y.py", "a/b/x.py", "a/b", {"": "*.py\n", "a": "!x.py\n"}, repository=""
    ),
    "an ignored folder that is named": Case(
        "env/lib/pack/x.py env/lib/pack/x_pb2.py",
        "env/lib/pack/x.py",
        "env/lib/pack",
        {"": "env/\n*_pb2.py\n", "env": "*\n"},
        repository="",
    ),
    "lines that are no patterns": Case("x.py y.py", "y.py", ignores={"": "!\nx.py\n# !\n\n"}),
    "a pattern that git cannot read": Case("a.py b.py", "a.py", ignores={"": "[z-a]\nb.py\n"}, repository=""),
    **{
        f"exclude {' '.join(patterns)}": Case("a.py b/x.py c/b.py", left, exclude=patterns)
        for patterns, left in {
            ("b",): "a.py c/b.py",
            ("b/",): "a.py c/b.py",
            ("b.py",): "a.py b/x.py",
            ("/b.py",): "a.py b/x.py c/b.py",
            ("*.py", "!a.py"): "a.py",
            ("c/*",): "a.py b/x.py",
        }.items()
    },
    "excludes of the root": Case("src/old/x.py src/new/x.py", "src/new/x.py", "src", exclude=("src/old",)),
    "an excluded folder": Case("tests/x.py tests/x_pb2.py y.py", "y.py", exclude=("tests", "*_pb2.py")),
    "an excluded folder that is named": Case(
        "tests/x.py tests/x_pb2.py y.py", "tests/x.py", "tests", exclude=("tests", "*_pb2.py")
    ),
    "excluded files that are named": Case(OF_THREE, "build/y.py src/z.py tests/x.py", OF_THREE, exclude=("tests",)),
    "excludes forced on files": Case(OF_THREE, "src/z.py", OF_THREE, exclude=("tests",), force=True),
    "excludes forced on folders": Case(OF_THREE, "src/z.py", "tests build src", exclude=("tests/",), force=True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_found(tree: Path, case: Case) -> None:
    make(tree, *case.files.split())
    for folder, text in (case.ignores or {}).items():
        make(tree, f"{folder}/.gitignore".lstrip("/"), text=text)
    if case.repository is not None:
        (tree / case.repository / ".git").mkdir()
    assert found(tree, *case.paths.split(), exclude=case.exclude, force_exclude=case.force) == case.left.split()


def test_paths_are_absolute_and_need_not_be(tree: Path) -> None:
    make(tree, "a/x.py")
    assert discover(["a"], Settings(root=tree)).files == (tree / "a" / "x.py",)


@pytest.mark.process
def test_agrees_with_git(tree: Path) -> None:
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


def test_excludes_hold_by_name_elsewhere(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    make(other, "x_pb2.py", "y.py")
    discovery = discover([other], Settings(root=tree, exclude=(PathPattern(tree, "*_pb2.py"),)))
    assert [path.name for path in discovery.files] == ["y.py"]


@pytest.mark.parametrize(
    ("file", "link", "to", "paths", "left"),
    [
        ("a/x.py", "a/again", "a", [], ["a/x.py"]),  # a loop of folders
        ("a/x.py", "link", "a", ["link"], ["link/x.py"]),  # a link to a folder that is named
        ("a/x.txt", "y.py", "a/x.txt", [], ["y.py"]),
        ("a.py/x.py", "b.py", "a.py", [], ["a.py/x.py"]),  # a folder called .py is a folder
    ],
)
def test_links(tree: Path, file: str, link: str, to: str, paths: list[str], left: list[str]) -> None:
    make(tree, file)
    (tree / link).symlink_to(tree / to, target_is_directory=(tree / to).is_dir())
    assert found(tree, *paths) == left


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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
def test_what_is_no_file_is_passed_over(tree: Path) -> None:
    make(tree, "a.py")
    os.mkfifo(tree / "pipe.py")
    os.symlink("loop.py", tree / "loop.py")
    assert found(tree) == ["a.py"]
    (error,) = discover([tree / "pipe.py"], Settings(root=tree)).errors
    assert error.message == "is neither a file nor a folder"
