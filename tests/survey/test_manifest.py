"""Manifests of surveys, and the units that they stand for."""

from dataclasses import replace
from pathlib import Path

import pytest

from breakscan.survey.manifest import (
    Environment,
    ManifestError,
    Models,
    Programs,
    SurveyManifest,
    SurveyStage,
    Unit,
    planned,
    read_manifest,
)

WHOLE = """
folder = "src"
stages = ["bench", "explain"]
modes = ["eval", "train"]
backends = ["eager"]
devices = ["cpu", "cuda"]
dtypes = ["bfloat16"]
pythons = ["envs/new/bin/python", "python3"]
sources = ["*.py"]
seconds = 20
memory = "1.5 GiB"

[[program]]
name = "vision"
command = ["train.py", "--steps", "2"]

[[program]]
files = "drivers/*.py"

[[model]]
name = "zoo"
build = "zoo:build"
names = "zoo:names"
"""


def test_all_keys(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "survey.toml").write_text(WHOLE, encoding="utf-8")
    read = read_manifest(tmp_path / "survey.toml")
    assert read.folder == tmp_path / "src"
    assert read.programs == (
        Programs("vision", ("train.py", "--steps", "2"), None), Programs(None, (), "drivers/*.py")
    )  # fmt: skip
    assert read.models == (Models("zoo", "zoo:build", "zoo:names"),)
    assert read.stages == (SurveyStage.EXPLAIN, SurveyStage.BENCH)
    assert (read.modes, read.backends, read.devices) == (("eval", "train"), ("eager",), ("cpu", "cuda"))
    assert read.pythons == (str(tmp_path / "src/envs/new/bin/python"), "python3")
    assert (read.dtypes, read.sources, read.seconds, read.memory) == (("bfloat16",), ("*.py",), 20.0, 3 * 2**29)


PROGRAM = '[[program]]\ncommand = ["a.py"]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names nothing to run: add a [[program]] or a [[model]]"),
        ("= 1", "not valid TOML"),
        (f'mode = ["eval"]\n{PROGRAM}', "mode: unknown key: did you mean modes?"),
        (f'modes = ["evl"]\n{PROGRAM}', "modes: unknown word 'evl': did you mean eval?"),
        (f"backends = 1\n{PROGRAM}", "backends: must be a string or a list of strings"),
        (f'stages = ["bench"]\n{PROGRAM}', "stages: explain must be among them"),
        (f"seconds = 0\n{PROGRAM}", "seconds: must be a number of seconds above 0"),
        (f'memory = "4 GB"\n{PROGRAM}', 'memory: must be a size such as "4 GiB"'),
        (f'folder = "gone"\n{PROGRAM}', "folder: there is no folder "),
        ("program = 1", "program: must be a table [program] or tables [[program]]"),
        ("[[program]]\nname = 'x'", "program.command: either command"),
        ("[[program]]\ncommand = ['a.py']\nfiles = '*.py'", "program.command: either command"),
        ("[[program]]\nfiles = '*.py'\nname = 'x'", "program.name: files are called by their paths"),
        ("[[model]]\nname = 'x'", "model.build: required"),
        ("[[model]]\nbuild = 'zoo'", "model.build: must be MODULE:CALLABLE, not 'zoo'"),
        ("[[model]]\nbuild = 'z:b'\nnames = 'a b'", "model.names: must be MODULE:CALLABLE"),
        ("[[model]]\nbuild = 'z:b'\nnames = []", "model.names: must not be empty"),
        ("[[model]]\nbuild = 'z:b'\nnames = [1]", "names: must be a string or a list of strings"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "survey.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ManifestError) as raised:
        read_manifest(path)
    assert str(raised.value).startswith(str(path))
    assert said in str(raised.value)


UNIT = Unit("zoo/small", build="zoo:build", argument="small", mode="eval", backend="eager", sources="1")
ENVIRONMENT = Environment("3.11.7", "/bin/python", {"torch": "2.13.0", "breakscan": "0.1.0"})


def test_whatever_a_result_depends_on_changes_its_key() -> None:
    others = [
        replace(UNIT, **{name: "other"})
        for name in ("name", "build", "argument", "mode", "backend", "device", "dtype", "folder", "sources")
    ]
    keys = {UNIT.key(ENVIRONMENT), *(one.key(ENVIRONMENT) for one in others)}
    assert len(keys) == 1 + len(others)
    assert UNIT.key(replace(ENVIRONMENT, packages={"torch": "2.14.0", "breakscan": "0.1.0"})) not in keys
    assert UNIT.key(replace(ENVIRONMENT, python="3.12.1")) not in keys
    assert UNIT.key(replace(ENVIRONMENT, executable="/elsewhere/python")) == UNIT.key(ENVIRONMENT)


@pytest.mark.process
def test_the_files_that_a_survey_rests_on_change_its_keys(tmp_path: Path) -> None:
    (tmp_path / "survey.toml").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "a.py").write_text("a = 1\n", encoding="utf-8")
    read = read_manifest(tmp_path / "survey.toml")

    def keys(asked: SurveyManifest) -> set[str]:
        return {one.key for one in planned(asked)}

    first = keys(read)
    (tmp_path / "notes.txt").write_text("other", encoding="utf-8")
    assert keys(read) == first
    (tmp_path / "helper.py").write_text("", encoding="utf-8")
    assert keys(read) != first
    narrow = replace(read, sources=("a.py",))
    second = keys(narrow)
    (tmp_path / "helper.py").write_text("b = 2\n", encoding="utf-8")
    assert keys(narrow) == second
    (tmp_path / "a.py").write_text("a = 2\n", encoding="utf-8")
    assert keys(narrow) != second


@pytest.mark.process
def test_a_pattern_names_a_unit_for_each_file(tmp_path: Path) -> None:
    (tmp_path / "drivers").mkdir()
    for name in ("b.py", "a.py", "notes.txt"):
        (tmp_path / "drivers" / name).touch()
    (tmp_path / "survey.toml").write_text('[[program]]\nfiles = "drivers/*.py"\n', encoding="utf-8")
    units = [one.unit for one in planned(read_manifest(tmp_path / "survey.toml"))]
    assert [(one.name, one.command) for one in units] == [
        ("drivers/a.py", ("drivers/a.py",)), ("drivers/b.py", ("drivers/b.py",))
    ]  # fmt: skip
    (tmp_path / "survey.toml").write_text('[[program]]\nfiles = "gone/*.py"\n', encoding="utf-8")
    with pytest.raises(ManifestError, match="matches nothing"):
        planned(read_manifest(tmp_path / "survey.toml"))


@pytest.mark.process
def test_names_in_the_manifest_are_units(tmp_path: Path) -> None:
    text = '[[model]]\nname = "net"\nbuild = "zoo:build"\nnames = ["8x64", "32x64", "8x64"]\n'
    (tmp_path / "survey.toml").write_text(text, encoding="utf-8")
    units = [one.unit for one in planned(read_manifest(tmp_path / "survey.toml"))]
    assert [(one.name, one.argument) for one in units] == [("net/8x64", "8x64"), ("net/32x64", "32x64")]


@pytest.mark.process
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('pythons = ["/no/such/python"]', "pythons: /no/such/python does not run"),
        ('[[model]]\nbuild = "zoo:a"\nnames = "zoo:gone"', "model.names: zoo:gone failed: "),
    ],
)
def test_what_cannot_be_asked_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "zoo.py").write_text("", encoding="utf-8")
    (tmp_path / "survey.toml").write_text(f"{text}\n{PROGRAM}", encoding="utf-8")
    with pytest.raises(ManifestError, match=said):
        planned(read_manifest(tmp_path / "survey.toml"))


@pytest.mark.process
def test_a_checkout_that_moves_keeps_its_keys_and_two_folders_have_their_own(tmp_path: Path) -> None:
    keys = []
    for place in ("a", "b"):
        for folder in ("one", "two"):
            (tmp_path / place / folder).mkdir(parents=True)
            (tmp_path / place / folder / "a.py").touch()
            manifest = tmp_path / place / f"{folder}.toml"
            manifest.write_text(f'folder = "{folder}"\n{PROGRAM}', encoding="utf-8")
            (planned_unit,) = planned(read_manifest(manifest))
            assert (planned_unit.unit.folder, planned_unit.folder) == (folder, str(tmp_path / place / folder))
            keys.append(planned_unit.key)
    assert keys[:2] == keys[2:]
    assert len(set(keys)) == 2
