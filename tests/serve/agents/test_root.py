"""No tool leaves its root."""

import os
import socket
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from breakscan.serve.agents.server import RootFolder, ToolFailure


@pytest.fixture
def root(tmp_path: Path) -> RootFolder:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.py").touch()
    (tmp_path / "outside.py").touch()
    (tmp_path / "rootless").mkdir()
    (folder / "out.py").symlink_to(tmp_path / "outside.py")
    (folder / "out").symlink_to(tmp_path)
    (folder / "inside.py").symlink_to(folder / "sub" / "a.py")
    (folder / "loop.py").symlink_to(folder / "loop.py")
    os.mkfifo(folder / "pipe.py")
    return RootFolder(folder)


@pytest.mark.parametrize(
    ("path", "found"),
    [(".", "."), ("sub", "sub"), ("sub/a.py", "sub/a.py"), ("sub/../sub", "sub"), ("inside.py", "sub/a.py")],
)
def test_what_is_below_the_root_is_taken(root: RootFolder, path: str, found: str) -> None:
    assert root.existing(path) == found
    assert root.existing(os.path.join(root.folder, path)) == found


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("..", "outside the root"),
        ("../outside.py", "outside the root"),
        ("../rootless", "outside the root"),
        ("/etc/passwd", "outside the root"),
        ("out.py", "outside the root"),
        ("out/outside.py", "outside the root"),
        ("sub/../../outside.py", "outside the root"),
        ("loop.py", "cannot read"),
        ("missing.py", "cannot read"),
        ("sub/a.py/b", "cannot read"),
        ("x" * 5000, "cannot read"),
        ("pipe.py", "neither a file nor a folder"),
        ("a\0b", "NUL"),
    ],
)
def test_what_is_not_is_refused(root: RootFolder, path: str, why: str) -> None:
    with pytest.raises(ToolFailure, match=why):
        root.existing(path)


def test_a_socket_is_refused(root: RootFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.folder)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("s.py")
        with pytest.raises(ToolFailure, match="neither"):
            root.existing("s.py")


def test_a_program_is_a_file(root: RootFolder) -> None:
    assert root.program("sub/a.py") == "sub/a.py"
    with pytest.raises(ToolFailure, match="is a folder"):
        root.program("sub")


def test_links_that_lead_out_are_left_out_of_folders(root: RootFolder) -> None:
    assert root.links_out(["."]) == ["/out.py"]
    assert root.links_out(["sub"]) == []
    Path(root.folder, "sub", "a,b*.py").symlink_to("/etc/passwd")
    with pytest.raises(ToolFailure, match="leads out of the root"):
        root.links_out(["sub"])
