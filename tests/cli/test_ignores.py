"""``breakscan check`` with ``--add-ignore`` and ``--warn-unused-ignores``."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_notebooks import cell, notebook


def test_everything_is_suppressed_with_the_reason(breakscan: Run, folder: Path) -> None:
    text = (folder / "model.py").read_text(encoding="utf-8")
    done = breakscan("check", "--add-ignore", "costs nothing")
    assert (done.status, done.out, done.err) == (0, "", "breakscan: 1 finding suppressed\n")
    assert (folder / "model.py").read_text(encoding="utf-8") == text.replace(
        "if x.any():", "if x.any():  # breakscan: ignore[BRK101] costs nothing"
    )
    again = breakscan("check")
    assert again.status == 0
    assert "1 suppressed" in again.out


def test_line_ends_and_encoding_stay(breakscan: Run, folder: Path) -> None:
    source = (
        "# coding: latin-1\r\nimport torch\r\n@torch.compile\r\ndef f(x):\r\n    print(x)  # \xe4\r\n    return x\r\n"
    )
    (folder / "old.py").write_bytes(source.encode("latin-1"))
    breakscan("check", "old.py", "--add-ignore", "later")
    assert (folder / "old.py").read_bytes().decode("latin-1") == source.replace(
        "\xe4", "\xe4  # breakscan: ignore[BRK401] later"
    )


def test_a_notebook(breakscan: Run, folder: Path) -> None:
    cells = [cell("%time 1\nimport torch\n"), cell("@torch.compile\ndef f(x):\n    print(x)\n    return x")]
    book = folder / "book.ipynb"
    book.write_text(notebook(*cells), encoding="utf-8")
    assert breakscan("check", "book.ipynb", "--add-ignore", "later").status == 0
    cells[1]["source"][2] = "    print(x)  # breakscan: ignore[BRK401] later\n"
    assert json.loads(book.read_text(encoding="utf-8"))["cells"] == cells
    assert breakscan("check", "book.ipynb").status == 0


def test_a_file_that_cannot_be_read_stops_no_other(breakscan: Run, folder: Path) -> None:
    (folder / "broken.py").write_text("def f(:\n", encoding="utf-8")
    done = breakscan("check", "--add-ignore", "later")
    assert done.status == 2
    assert "broken.py:1:7: cannot be parsed" in done.err
    assert "1 finding suppressed" in done.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--add-ignore", ""), "needs a reason"),
        (("--add-ignore", "two\nlines"), "in one line"),
        (("--add-ignore", "later", "-"), "--add-ignore needs files"),
    ],
)
def test_options_that_are_refused(breakscan: Run, options: tuple[str, ...], said: str) -> None:
    done = breakscan("check", *options)
    assert done.status == 2
    assert said in " ".join(done.err.split())


HEAD = "import torch\n\n\n@torch.compile\ndef f(x):\n"


def warnings(breakscan: Run, text: str, *options: str) -> list[str]:
    """The warnings about a file, without its name."""
    path = Path("one.py")
    path.write_text(text, encoding="utf-8")
    done = breakscan("check", "one.py", "--warn-unused-ignores", "--format", "concise", *options)
    found = [line.removeprefix("warning: one.py:") for line in done.err.splitlines()]
    assert done.status == (1 if found or "BRK" in done.out else 0)
    return found


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("print(x)  # breakscan: ignore[BRK401] why", []),
        ("print(x)  # breakscan: ignore", []),
        ("print(x)  # breakscan: ignore[BRK4]", []),
        ("print(x)  # breakscan: ignore[print]", []),
        ("x = x + 1  # breakscan: ignore[BRK401]", ["6:16: unused suppression: BRK401 is not found here"]),
        ("x = x + 1  # breakscan: ignore", ["6:16: unused suppression: nothing is found here"]),
        ("print(x)  # breakscan: ignore[BRK401, BRK201]", ["6:15: unused suppression: BRK201 is not found here"]),
    ],
)
def test_a_comment(breakscan: Run, line: str, said: list[str]) -> None:
    assert warnings(breakscan, f"{HEAD}    {line}\n    return x\n") == said


def test_a_whole_file(breakscan: Run) -> None:
    used = f"{HEAD}    print(x)\n# breakscan: ignore-file[BRK401]\n"
    assert warnings(breakscan, used) == []
    unused = f"{HEAD}    return x\n# breakscan: ignore-file[BRK401]\n"
    assert warnings(breakscan, unused) == ["7:1: unused suppression: BRK401 is not found here"]


def test_rules_that_are_off_make_no_difference(breakscan: Run) -> None:
    text = f"{HEAD}    print(x)  # breakscan: ignore[BRK401]\n"
    assert warnings(breakscan, text, "--ignore", "BRK401") == []
    assert warnings(breakscan, text, "--select", "BRK1") == []


def test_what_another_file_compiles_counts(breakscan: Run, folder: Path) -> None:
    (folder / "helper.py").write_text("def g(x):\n    print(x)  # breakscan: ignore[BRK401]\n", encoding="utf-8")
    (folder / "user.py").write_text(f"from helper import g\n{HEAD}    return g(x)\n", encoding="utf-8")
    command = ("check", "--warn-unused-ignores", "helper.py")
    assert "unused" not in breakscan(*command, "user.py").err
    assert "helper.py:2:15: unused suppression" in breakscan(*command).err


def test_formats_have_them(breakscan: Run, folder: Path) -> None:
    (folder / "one.py").write_text(f"{HEAD}    return x  # breakscan: ignore\n", encoding="utf-8")
    command = ("check", "one.py", "--warn-unused-ignores", "--format")
    assert "::warning title=suppression,file=one.py,line=6" in breakscan(*command, "github").out
    (one,) = json.loads(breakscan(*command, "gitlab").out)
    assert one["description"] == "suppression: unused suppression: nothing is found here"
    (one,) = breakscan(*command, "json").json["warnings"]
    assert (one["path"], one["line"], one["message"]) == ("one.py", 6, "unused suppression: nothing is found here")


def test_without_the_option_nothing_is_said(breakscan: Run, folder: Path) -> None:
    (folder / "one.py").write_text(f"{HEAD}    return x  # breakscan: ignore\n", encoding="utf-8")
    done = breakscan("check", "one.py")
    assert (done.status, done.err) == (0, "")
    assert breakscan("check", "-", "--warn-unused-ignores").status == 2
