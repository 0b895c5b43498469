"""The files that a release and its users need say the same as the package."""

import re
from pathlib import Path

import pytest

from breakscan.source.toml_text import tomllib

ROOT = Path(__file__).parents[2]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FORMS = [path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_conda_recipe_has_the_dependencies_of_the_package() -> None:
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    wanted = [re.sub(r">=", " >=", one.partition(";")[0].strip()) for one in PROJECT["dependencies"]]
    assert sorted(recipe["requirements"]["run"]) == sorted([*wanted, f"python {PROJECT['requires-python']}"])


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_asks_for_versions(path: Path) -> None:
    assert "`breakscan --version`" in path.read_text(encoding="utf-8")


def test_there_is_a_form_for_each_kind_of_fault() -> None:
    assert {path.stem for path in FORMS} == {"crash", "false-alarm", "missed-break", "wrong-rewrite"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_the_sessions_that_workflows_run_exist(path: Path) -> None:
    sessions = re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE)
    named = [
        word.partition("-")[0]
        for line in re.findall(r"nox -s (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        for word in re.sub(r"\$\{\{.*?\}\}", "", line.partition(" -- ")[0]).split()
    ]
    assert set(named) <= set(sessions)


def test_the_release_pins_what_it_trusts() -> None:
    """All actions by commit, but for the one whose authors ask for a branch."""
    used = re.findall(r"uses: (\S+)", (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    loose = [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one)]
    assert loose == ["pypa/gh-action-pypi-publish@release/v1"]


def test_the_image_copies_what_the_wheel_is_built_from() -> None:
    text = (ROOT / "packaging" / "docker" / "Dockerfile").read_text(encoding="utf-8")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = {word for line in re.findall(r"^COPY (?!--)(.+)$", text, re.MULTILINE) for word in line.split()[:-1]}
    assert copied == {line[1:] for line in ignored if line.startswith("!")}
    assert copied >= {"breakscan", "rules", "pyproject.toml", PROJECT["readme"], *PROJECT["license-files"]}


def test_the_skill_has_the_front_matter_that_agents_read() -> None:
    yaml = pytest.importorskip("yaml")
    text = (ROOT / "skills" / "breakscan" / "SKILL.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    meta = yaml.safe_load(front)
    assert meta["name"] == "breakscan"
    assert re.fullmatch(r"[a-z0-9-]{1,64}", meta["name"])
    assert 100 < len(meta["description"]) <= 1024
    assert len(body.splitlines()) < 100
