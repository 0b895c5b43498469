"""The configuration that counts for a file is the one nearest to it, whatever other files are named."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
from own_rule import OWN_RULE

from breakscan.source.toml_text import tomllib
from tests.cli.conftest import BREAKS, Done, Run
from tests.conftest import SCHEMAS


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def packages(folder: Path) -> Path:
    """Two packages below a configuration: ``a`` has one of its own, ``b`` has not."""
    write(folder / "pyproject.toml", "[tool.breakscan]\ntarget-torch = '2.13'\nignore = ['BRK5']\n")
    write(folder / "a" / "breakscan.toml", "target-torch = '2.12'\nignore = ['BRK101']\n")
    write(folder / "a" / "model.py", BREAKS)
    write(folder / "b" / "model.py", BREAKS)
    (folder / "model.py").unlink()
    return folder


def found(done: Done) -> set[tuple[str, str, str]]:
    return {(one["site"]["path"], one["rule"], one["torch"]) for one in done.json["findings"]}


class TestWhichCounts:
    def test_it_does_not_depend_on_what_else_is_named(self, breakscan: Run, packages: Path) -> None:
        together = breakscan("check", ".", "--format", "json")
        assert found(together) == {("b/model.py", "BRK101", "2.13")}
        assert {one["torch"] for one in together.json["targets"]} == {"2.12", "2.13"}
        for names in (["a/model.py"], ["b/model.py"], ["a/model.py", "b/model.py"], ["a", "b/model.py"], ["b"]):
            wanted = {one for one in found(together) if any(one[0].startswith(name) for name in names)}
            assert found(breakscan("check", *names, "--format", "json")) == wanted, names

    def test_nor_on_the_number_of_processes(self, breakscan: Run, packages: Path) -> None:
        for number in range(30):
            write(packages / "a" / f"a{number}.py", BREAKS)
            write(packages / "b" / f"b{number}.py", BREAKS)
        done = breakscan("check", "--format", "json", "--no-cache", "--jobs", "2")
        assert found(done) == {(f"b/b{number}.py", "BRK101", "2.13") for number in range(30)} | {
            ("b/model.py", "BRK101", "2.13")
        }

    def test_the_cache_is_shared(self, breakscan: Run, packages: Path) -> None:
        breakscan("check", ".")
        kept = {path: path.stat().st_mtime_ns for path in packages.rglob(".breakscan_cache/*")}
        assert {path.parent.parent for path in kept} == {packages, packages / "a"}
        for names in (["a/model.py"], ["b/model.py", "a/model.py"], ["b", "--select", "BRK101"]):
            breakscan("check", *names)
        assert {path: path.stat().st_mtime_ns for path in packages.rglob(".breakscan_cache/*")} == kept

    def test_breakscan_toml_wins_over_the_pyproject_toml_beside_it(self, breakscan: Run, packages: Path) -> None:
        write(packages / "a" / "pyproject.toml", "[tool.breakscan]\nslect = 'wrong, and never read'\n")
        assert breakscan("check", "a").status == 0

    def test_a_file_that_is_named_counts_for_all(self, breakscan: Run, packages: Path) -> None:
        strict = write(packages / "strict.toml", "target-torch = '2.14'\n")
        done = breakscan("check", ".", "--config", str(strict), "--format", "json")
        assert found(done) == {(f"{name}/model.py", "BRK101", "2.14") for name in "ab"}

    def test_what_a_file_hands_over_is_shown_by_the_settings_of_the_file_that_holds_it(
        self, breakscan: Run, packages: Path
    ) -> None:
        held = "def held(x):\n    if x.any():\n        return x + 1\n    return x\n"
        for name in ("open", "closed"):
            write(packages / name / "__init__.py", "")
            write(packages / name / "held.py", held)
        write(packages / "closed" / "breakscan.toml", "ignore = ['BRK101']\n")
        write(
            packages / "train.py",
            "import torch\nfrom open.held import held\nfrom closed.held import held as other\n\n\n"
            "@torch.compile\ndef step(x: torch.Tensor):\n    return held(x) + other(x)\n",
        )
        done = breakscan("check", "train.py", "open", "closed", "--format", "json")
        assert found(done) == {("open/held.py", "BRK101", "2.13")}

    def test_fix_goes_by_it_too(self, breakscan: Run, packages: Path) -> None:
        text = BREAKS.replace("x = x + 1", "x = torch.nan_to_num(x)").replace("x.any()", "x.isnan().any()")
        for name in "ab":
            write(packages / name / "model.py", text)
        done = breakscan("fix", "--unsafe", "a/model.py", "b/model.py", "--format", "json")
        assert [file["path"] for file in done.json["files"]] == ["b/model.py"]

    def test_standard_input_goes_by_the_one_of_its_name(
        self, breakscan: Run, packages: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, status in (("a", 0), ("b", 1)):
            with open(packages / "b" / "model.py", encoding="utf-8") as stream:
                monkeypatch.setattr("sys.stdin", stream)
                assert breakscan("check", "-", "--stdin-filename", f"{name}/new.py").status == status

    def test_rules_of_ones_own_are_those_of_the_file(self, breakscan: Run, packages: Path) -> None:
        write(packages / "b" / "rules" / "BRK001-our-own-rule.md", OWN_RULE)
        write(packages / "b" / "breakscan.toml", "rules = ['rules']\nselect = ['BRK001']\n")
        done = breakscan("check", ".")
        assert done.status == 1
        assert "b/model.py:6:12" in done.out
        assert "we say so" in done.out
        assert "BRK101" not in done.out


class TestExcludes:
    @pytest.fixture
    def nested(self, packages: Path) -> Path:
        write(packages / "pyproject.toml", "[tool.breakscan]\nexclude = ['vendored/']\n")
        write(packages / "vendored" / "breakscan.toml", "")
        write(packages / "vendored" / "model.py", BREAKS)
        write(packages / "a" / "breakscan.toml", "exclude = ['/old']\n")
        write(packages / "a" / "old" / "model.py", BREAKS)
        write(packages / "b" / "old" / "model.py", BREAKS)
        return packages

    def test_walking_and_naming_agree(self, breakscan: Run, nested: Path) -> None:
        files = sorted(path.relative_to(nested).as_posix() for path in nested.rglob("*.py"))
        walked = breakscan("check", ".", "--format", "json").json
        named = breakscan("check", "--force-exclude", *files, "--format", "json").json
        paths = {one["site"]["path"] for one in walked["findings"]}
        assert paths == {"a/model.py", "b/model.py", "b/old/model.py"}
        assert named == walked

    def test_a_folder_that_is_named_is_checked(self, breakscan: Run, nested: Path) -> None:
        assert breakscan("check", "vendored").status == 1
        assert breakscan("check", "vendored", "--force-exclude").status == 0


def test_the_header_of_the_other_file_is_no_key(breakscan: Run, folder: Path) -> None:
    config = write(folder / "breakscan.toml", "\n[tool.breakscan]\nfullgraph = true\n")
    said = "remove the line [tool.breakscan]: the keys of breakscan.toml are at the top level"
    assert breakscan("check").err == f"Error: {config}:2: tool.breakscan: {said}\n"


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        ("breakscan.toml", "select = " + "[" * 2000 + "]" * 2000, 2),
        ("breakscan.toml", "select = " + "{a=" * 2000 + "1" + "}" * 2000, 2),
        ("pyproject.toml", "[project]\nx = " + "[" * 2000 + "]" * 2000, 0),
        ("pyproject.toml", "= no TOML =", 0),
        ("breakscan.toml", "x = " + "1" * 5000, 2),
    ],
)
def test_a_file_that_cannot_be_read_ends_a_run_only_if_it_is_ours(
    breakscan: Run, folder: Path, name: str, text: str, status: int
) -> None:
    write(folder / name, text)
    done = breakscan("check", "clean.py")
    assert done.status == status
    if status:
        assert done.err.startswith(f"Error: {folder / name}:1: cannot be read: ")
        assert done.err.count("\n") == 1


@pytest.mark.parametrize("value", ["[" * 2000 + "]" * 2000, "1" * 5000])
def test_so_does_a_rule_document(breakscan: Run, folder: Path, value: str) -> None:
    write(folder / "rules" / "BRK199-our-own-rule.md", OWN_RULE.replace('"we say so"', value))
    write(folder / "breakscan.toml", "rules = ['rules']\n")
    done = breakscan("check", "clean.py")
    assert done.status == 2
    assert done.err.startswith(f"Error: {folder}/rules/BRK199-our-own-rule.md:")
    assert done.err.count("\n") == 1


class TestConfigCommand:
    def test_it_shows_the_file_and_the_settings(self, breakscan: Run, packages: Path) -> None:
        text = "target-torch = '2.12'\nselect = ['BRK101']\n[per-file-ignores]\n'a.py' = ['BRK101']\n"
        write(packages / "a" / "breakscan.toml", text)
        lines = breakscan("config", "a/model.py").out.splitlines()
        assert lines[:3] == ["# from a/breakscan.toml", 'target-torch = "2.12"  # config', 'target = "compile"']
        assert lines[-3:] == ["[per-file-ignores]", '"a.py" = ["BRK101"]', "# 1 rules: BRK101"]
        assert breakscan("config", "a").out.splitlines() == lines
        assert 'ignore = ["BRK5"]' in breakscan("config").out.splitlines()

    def test_what_it_prints_is_a_configuration(self, breakscan: Run, packages: Path) -> None:
        printed = breakscan("config", "a").out
        copy = write(packages / "copy.toml", printed)
        again = breakscan("config", "b", "--config", str(copy)).out
        assert tomllib.loads(again) == tomllib.loads(printed)

    def test_the_schema_knows_what_the_reader_knows(self, breakscan: Run, folder: Path) -> None:
        schema = json.loads((SCHEMAS / "config.schema.json").read_text(encoding="utf-8"))
        validator = jsonschema.Draft7Validator(schema)
        validator.check_schema(schema)
        page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
        shown = re.search(r"```toml\n\[tool\.breakscan\]\n(.*?)```", page, re.DOTALL)
        assert shown is not None
        example = tomllib.loads(shown[1].replace("[tool.breakscan.per-file-ignores]", "[per-file-ignores]"))
        assert set(schema["properties"]) == set(example)
        validator.validate(example)
        for wrong in ({"slect": []}, {"select": "BRK1"}, {"target-torch": 2.13}, {"regions": "root"}, {"exclude": [1]}):
            assert not validator.is_valid(wrong), wrong
            (key, value) = next(iter(wrong.items()))
            write(folder / "breakscan.toml", f"{key} = {json.dumps(value)}\n")
            assert breakscan("check", "clean.py").status == 2, wrong
