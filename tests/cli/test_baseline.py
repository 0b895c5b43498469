"""``breakscan check --baseline`` as a team uses it."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_notebooks import cell, notebook
from tests.conftest import Valid

FILE = "baseline.toml"
BASELINE = ("check", "--baseline", FILE, "--format", "concise", "--target-torch", "2.13")


@pytest.fixture
def known(breakscan: Run, folder: Path) -> str:
    """A baseline of the working directory; its text."""
    made = breakscan(*BASELINE)
    assert (made.status, made.err) == (0, "breakscan: baseline.toml was made, and allows 1 finding\n")
    assert made.out.startswith("nothing new in 2 files")
    return (folder / FILE).read_text(encoding="utf-8")


def edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_what_is_known_is_not_reported(breakscan: Run, known: str, folder: Path) -> None:
    edit(folder / "model.py", "import torch\n", "import torch\nimport math\n\n")
    done = breakscan(*BASELINE)
    assert (done.status, done.err) == (0, "")
    assert "model.py:" not in done.out
    assert "1 known" in done.out
    assert (folder / FILE).read_text(encoding="utf-8") == known


def test_what_is_new_fails_and_is_not_written(breakscan: Run, known: str, folder: Path) -> None:
    edit(folder / "clean.py", "        return x", "        print(x)\n        return x")
    done = breakscan(*BASELINE)
    assert done.status == 1
    assert [line for line in done.out.splitlines() if "BRK" in line] == [
        "clean.py:8:9: warning BRK401 print inside compiled code"
    ]
    assert done.err == "breakscan: fix this, or allow it in baseline.toml with --baseline-add\n"
    assert (folder / FILE).read_text(encoding="utf-8") == known
    added = breakscan(*BASELINE, "--baseline-add")
    assert (added.status, added.err) == (0, "breakscan: baseline.toml was rewritten (1 finding added): commit it\n")
    assert breakscan(*BASELINE).status == 0


def test_what_is_gone_is_taken_out(breakscan: Run, known: str, folder: Path) -> None:
    edit(folder / "model.py", "x.any()", "x.shape[0] > 1")
    locked = breakscan(*BASELINE, "--locked")
    assert locked.status == 1
    assert locked.err == (
        "breakscan: baseline.toml is out of date (1 finding gone): run without --locked, and commit it\n"
    )
    assert (folder / FILE).read_text(encoding="utf-8") == known
    done = breakscan(*BASELINE)
    assert (done.status, done.err) == (0, "breakscan: baseline.toml was rewritten (1 finding gone): commit it\n")
    edit(folder / "model.py", "x.shape[0] > 1", "x.any()")
    assert breakscan(*BASELINE).status == 1


def test_a_subset_of_the_files_leaves_the_others(breakscan: Run, known: str, folder: Path) -> None:
    done = breakscan(*BASELINE, "clean.py")
    assert (done.status, done.err) == (0, "")
    assert (folder / FILE).read_text(encoding="utf-8") == known
    breakscan(*BASELINE, "--select", "BRK4")
    assert (folder / FILE).read_text(encoding="utf-8") == known
    (folder / "model.py").write_text("def f(:\n", encoding="utf-8")
    assert breakscan(*BASELINE).status == 1
    assert (folder / FILE).read_text(encoding="utf-8") == known
    (folder / "model.py").unlink()
    assert "1 finding gone" in breakscan(*BASELINE, "clean.py").err


CALLER = """import torch
from helper import scaled


@torch.compile
def f(x: torch.Tensor):
    return scaled(x) + 1
"""


def test_what_other_files_compile_is_not_gone_where_they_are_not_checked(breakscan: Run, folder: Path) -> None:
    (folder / "helper.py").write_text("def scaled(x):\n    print(x)\n    return x * 2\n", encoding="utf-8")
    (folder / "caller.py").write_text(CALLER, encoding="utf-8")
    breakscan(*BASELINE)
    text = (folder / FILE).read_text(encoding="utf-8")
    assert "print(x)" in text
    for part in (["helper.py"], ["--exclude", "caller.py", "."]):
        done = breakscan(*BASELINE, "--locked", *part)
        assert (done.status, done.err) == (0, "")
    edit(folder / "caller.py", "scaled(x)", "scaled(x")
    assert breakscan(*BASELINE).status == 1  # the file cannot be read
    assert (folder / FILE).read_text(encoding="utf-8") == text
    edit(folder / "caller.py", "scaled(x", "abs(x)")
    assert "1 finding gone" in breakscan(*BASELINE).err


def test_what_nothing_is_seen_to_compile_is_known_where_a_part_of_the_files_is_checked(
    breakscan: Run, folder: Path
) -> None:
    loss = "import torch\n\n\nclass Loss(torch.nn.Module):\n    def forward(self, x):\n        return x.sum().item()\n"
    (folder / "loss.py").write_text(loss)
    train = (
        "from torch import compile, nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n\n\n"
    )
    train += "net = compile(Net())\n"
    (folder / "train.py").write_text(train)
    assert "loss.py:" not in breakscan("check", ".").out
    breakscan(*BASELINE)
    for part in ([], ["loss.py"]):
        done = breakscan(*BASELINE, "--locked", *part)
        assert (done.status, done.err) == (0, "")


def test_fewer_findings_of_a_line_in_a_part_of_the_files_are_not_gone(breakscan: Run, known: str, folder: Path) -> None:
    path = folder / FILE
    path.write_text(known.replace('x.any():" }', 'x.any():", count = 3 }'), encoding="utf-8")
    assert "count = 3" in path.read_text(encoding="utf-8")
    assert (breakscan(*BASELINE, "model.py").status, "count = 3" in path.read_text(encoding="utf-8")) == (0, True)
    assert "2 findings gone" in breakscan(*BASELINE).err


def test_other_code_is_refused(breakscan: Run, folder: Path) -> None:
    (folder / "model.py").write_text("def f(x):\n    print(x.sum())\n    return x\n", encoding="utf-8")
    breakscan(*BASELINE, "--regions", "all")
    text = (folder / FILE).read_text(encoding="utf-8")
    done = breakscan(*BASELINE)
    assert done.status == 2
    assert "is for torch 2.13, default mode with --regions all, and this run" in " ".join(done.err.split())
    assert (folder / FILE).read_text(encoding="utf-8") == text


def test_none_is_made_where_a_path_cannot_be_checked(breakscan: Run, folder: Path) -> None:
    done = breakscan(*BASELINE, ".", "gone")
    assert done.status == 2
    assert "baseline.toml was not made: 1 path not checked" in done.err
    assert not (folder / FILE).exists()


@pytest.mark.process
def test_standard_input_is_compared_and_nothing_is_written(
    process: Run, breakscan: Run, known: str, folder: Path
) -> None:
    text = (folder / "model.py").read_text(encoding="utf-8")
    command = (*BASELINE, "-", "--stdin-filename", "model.py")
    assert process(*command, stdin=text.encode()).status == 0
    done = process(*command, stdin=text.replace("x + 1", "x + x.item()").encode())
    assert (done.status, done.err) == (1, "")
    assert "BRK101" not in done.out
    assert "BRK201" in done.out
    assert process(*command, stdin=b"x = 1").status == 0
    assert (folder / FILE).read_text(encoding="utf-8") == known


class TestSetting:
    """The baseline that a configuration names."""

    @pytest.fixture(autouse=True)
    def named(self, folder: Path) -> None:
        (folder / "breakscan.toml").write_text(f'baseline = "{FILE}"\ntarget-torch = "2.13"\n', encoding="utf-8")

    def test_counts_for_every_run(self, breakscan: Run, known: str, folder: Path) -> None:
        assert breakscan("check").status == breakscan("check", "--locked", "model.py").status == 0
        assert breakscan("check", "--no-baseline").status == 1
        edit(folder / "clean.py", "        return x", "        print(x)\n        return x")
        assert breakscan("check", "model.py").status == 0
        assert breakscan("check", "clean.py").status == 1
        assert "1 finding added" in breakscan("check", "--baseline-add").err
        assert breakscan("check", "clean.py").status == 0

    def test_that_is_missing_is_an_error(self, breakscan: Run) -> None:
        done = breakscan("check")
        assert done.status == 2
        assert done.err == (
            "Error: there is no baseline.toml, which breakscan.toml names: make it with breakscan check --baseline "
            "baseline.toml, and commit it\n"
        )

    def test_each_file_has_that_of_its_configuration(self, breakscan: Run, known: str, folder: Path) -> None:
        (folder / "inner").mkdir()
        inner = folder / "inner" / "model.py"
        inner.write_text((folder / "model.py").read_text(encoding="utf-8"), encoding="utf-8")
        assert breakscan("check", "--format", "concise").out.startswith("inner/model.py:6:12")
        for text in ('baseline = "own.toml"\n', ""):
            (folder / "inner" / "breakscan.toml").write_text(text, encoding="utf-8")
            done = breakscan("check")
            assert (done.status, done.out) == (2, "")
            assert "not all of these files have the same baseline" in done.err
        assert breakscan("check", "model.py").status == 0

    @pytest.mark.process
    def test_what_a_branch_brings_is_asked_instead(self, breakscan: Run) -> None:
        # Not "there is no baseline.toml".
        assert "--diff HEAD: " in breakscan("check", "--diff", "HEAD").err


def test_another_working_directory_makes_no_difference(
    breakscan: Run, known: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "inner").mkdir()
    monkeypatch.chdir("inner")
    done = breakscan(*BASELINE[:2], "../baseline.toml", *BASELINE[3:], "..")
    assert (done.status, done.err) == (0, "")


def test_another_target_is_refused(breakscan: Run, known: str) -> None:
    done = breakscan(*BASELINE[:-1], "2.11")
    assert done.status == 2
    assert "baseline.toml is for torch 2.13, default mode, and this run checks for torch 2.11" in done.err
    assert "set it in the configuration (target-torch, " in done.err
    assert breakscan(*BASELINE[:-1], "2.11", "--baseline-add").status == 0
    assert breakscan(*BASELINE[:-1], "2.11").status == 0


def test_configurations_that_differ(breakscan: Run, folder: Path) -> None:
    for name, torch in (("old", "2.11"), ("new", "2.13")):
        (folder / name).mkdir()
        (folder / name / "model.py").write_text((folder / "model.py").read_text(encoding="utf-8"), encoding="utf-8")
        (folder / name / "breakscan.toml").write_text(f'target-torch = "{torch}"\n', encoding="utf-8")
    command = ("check", "--baseline", FILE)
    assert breakscan(*command, "old", "new").status == 0
    text = (folder / FILE).read_text(encoding="utf-8")
    assert breakscan(*command, "old").status == breakscan(*command, "--locked", "new").status == 0
    assert (folder / FILE).read_text(encoding="utf-8") == text
    (folder / "new" / "breakscan.toml").write_text('target-torch = "2.12"\n', encoding="utf-8")
    assert "this run checks for torch 2.12, default mode" in " ".join(breakscan(*command, "new").err.split())


def test_a_notebook(breakscan: Run, folder: Path) -> None:
    cells = [cell("a = 1\nb = 2"), cell("import torch\n@torch.compile\ndef f(x):\n    print(x)\n    return x\n")]
    book = folder / "book.ipynb"
    book.write_text(notebook(*cells), encoding="utf-8")
    breakscan(*BASELINE)
    assert 'rule = "BRK401", function = "f", code = "print(x)"' in (folder / FILE).read_text(encoding="utf-8")
    book.write_text(notebook(cells[1]), encoding="utf-8")
    done = breakscan(*BASELINE)
    assert (done.status, done.err) == (0, "")


def test_json_counts_what_is_known(breakscan: Run, known: str, valid: Valid) -> None:
    data = valid(breakscan("check", "--baseline", FILE, "--format", "json", "--target-torch", "2.13").out, "check")
    assert data["summary"] == {"files": 2, "findings": 0, "known": 1, "by_rule": {}}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--locked",), "--locked goes with --baseline FILE"),
        (("--baseline-add",), "--baseline-add goes with --baseline FILE"),
        (("--baseline", FILE, "--baseline-add", "--locked"), "which --locked forbids"),
        (("--baseline", FILE, "--locked"), "there is no baseline.toml: run once without --locked, and commit it"),
        (("--baseline", "model.py"), "model.py is damaged: "),
        (("--baseline", FILE, "--no-baseline"), "--baseline and --no-baseline cannot be combined"),
    ],
)
def test_options_that_do_not_go_together(breakscan: Run, folder: Path, options: tuple[str, ...], said: str) -> None:
    done = breakscan("check", *options)
    assert done.status == 2
    assert said in " ".join(done.err.split())
    assert not (folder / FILE).exists()
