"""The settings from a ``[tool.breakscan]`` table and the options of a command."""

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from own_rule import OWN_RULE

from breakscan.model.findings import Confidence, Mode
from breakscan.rulebook.config import ConfigError, Settings, enabled_rules, load_settings
from breakscan.rulebook.library import load_library
from breakscan.source.files import is_excluded
from breakscan.source.paths import PathPattern, PerFileIgnores


def write(folder: Path, text: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_table_the_defaults_hold(project: Path) -> None:
    write(project, "[tool.other]\nselect = 3\n")
    assert load_settings(project) == Settings(root=project)


def test_every_key_is_read(project: Path) -> None:
    (project / "lint").mkdir()
    (project / "lint" / "BRK001-our-own-rule.md").write_text(OWN_RULE, encoding="utf-8")
    path = write(
        project,
        """
[tool.breakscan]
target-torch = "2.12"
target = "export-strict"
fullgraph = false
regions = "all"
confidence = "likely"
select = ["BRK1", "our-own-rule"]
ignore = ["branch-on-tensor"]
exclude = ["vendored/", "*_pb2.py"]
rules = ["lint"]
cache-dir = "build/kept"

[tool.breakscan.per-file-ignores]
"tests/*" = ["BRK101"]
""",
    )
    assert load_settings(project) == Settings(
        root=project,
        config_file=path,
        target_torch="2.12",
        target="export-strict",
        fullgraph=False,
        regions="all",
        confidence=Confidence.LIKELY,
        select=("BRK1", "our-own-rule"),
        ignore=("branch-on-tensor",),
        exclude=(PathPattern(project, "vendored/"), PathPattern(project, "*_pb2.py")),
        rule_folders=(project / "lint",),
        cache_dir=project / "build" / "kept",
        per_file_ignores=((PathPattern(project, "tests/*"), ("BRK101",)),),
    )


def test_options_replace_and_exclude_and_ignore_add(project: Path) -> None:
    write(project, '[tool.breakscan]\nregions = "all"\nselect = ["BRK1"]\nignore = ["BRK101"]\nexclude = ["a.py"]\n')
    settings = load_settings(project, regions="roots", exclude=("b.py",), ignore=("BRK1",), fullgraph=None)
    assert settings.regions == "roots"
    assert [pattern.text for pattern in settings.exclude] == ["a.py", "b.py"]
    assert settings.select == ("BRK1",)
    assert settings.ignore == ("BRK101", "BRK1")
    assert settings.options == {"regions", "exclude", "ignore"}


@pytest.mark.parametrize(
    ("file", "options", "expected"),
    [
        ("fullgraph = true", {"target": "export"}, Mode.EXPORT),
        ('target = "export"', {"fullgraph": True}, Mode.FULLGRAPH),
        ('target = "export"', {"fullgraph": False}, Mode.EXPORT),
        ('target = "export"', {"target": "compile"}, Mode.DEFAULT),
        ("fullgraph = true", {"target": "compile"}, Mode.FULLGRAPH),
    ],
)
def test_an_option_says_how_code_is_compiled_whatever_the_file_says(
    project: Path, file: str, options: dict[str, Any], expected: Mode
) -> None:
    write(project, f"[tool.breakscan]\n{file}\n")
    settings = load_settings(project, **options)
    assert settings.mode is expected
    assert settings.fullgraph is (expected is Mode.FULLGRAPH)


def test_an_export_has_no_fullgraph(project: Path) -> None:
    expected = "--fullgraph: is about torch.compile, and the target is export: leave one of the two out"
    with pytest.raises(ConfigError, match=re.escape(expected)):
        load_settings(project, target="export", fullgraph=True)
    path = write(project, '[tool.breakscan]\ntarget = "export-strict"\nfullgraph = true\n')
    expected = f"{path}:3: fullgraph: is about torch.compile, and the target is export-strict: leave one of the two out"
    with pytest.raises(ConfigError, match=re.escape(expected)):
        load_settings(project)


def test_a_selected_rule_is_checked_although_the_file_ignores_it(project: Path) -> None:
    write(project, '[tool.breakscan]\nignore = ["BRK101"]\n')
    library = load_library()
    assert "BRK101" not in enabled_rules(load_settings(project), library)
    assert enabled_rules(load_settings(project, select=("BRK101",)), library) == {"BRK101"}


@pytest.mark.parametrize(
    ("pattern", "file", "is_off"),
    [
        ("models/old", "src/models/old/a.py", True),
        ("models/old", "models/old/a.py", False),
        ("./models/old", "src/models/old/a.py", True),
        ("/old.py", "src/old.py", True),
        ("/old.py", "src/deep/old.py", False),
        ("*_pb2.py", "lib/a_pb2.py", True),
        ("vendored/", "lib/vendored/a.py", True),
    ],
)
def test_an_exclude_option_is_relative_to_where_it_is_typed(
    project: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, file: str, is_off: bool
) -> None:
    write(project, "[tool.breakscan]\n")
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")
    assert is_excluded(str(project / file), load_settings(project, exclude=(pattern,))) is is_off


@pytest.mark.parametrize(
    ("select", "ignore", "enabled"),
    [
        (["ALL"], [], True),
        (["BRK1"], [], True),
        (["branch-on-tensor"], [], True),
        (["brk101"], [], True),
        (["BRK001"], [], False),
        (["ALL"], ["BRK1"], False),
        (["BRK101"], ["BRK1"], True),
        (["BRK10"], ["BRK1"], True),
        (["BRK1"], ["BRK101"], False),
        (["BRK101"], ["branch-on-tensor"], False),
        (["ALL"], ["ALL"], False),
    ],
)
def test_the_narrower_selector_decides(project: Path, select: list[str], ignore: list[str], enabled: bool) -> None:
    settings = Settings(root=project, select=tuple(select), ignore=tuple(ignore))
    assert ("BRK101" in enabled_rules(settings, load_library())) is enabled


@pytest.mark.parametrize(
    ("pattern", "file", "off"),
    [
        ("tests/*", "tests/test_model.py", True),
        ("tests/*", "src/tests.py", False),
        ("tests", "tests/deep/test_model.py", True),
        ("*_test.py", "src/deep/model_test.py", True),
        ("/model.py", "src/model.py", False),
        ("src/**/legacy.py", "src/a/b/legacy.py", True),
    ],
)
def test_per_file_ignores_match_like_gitignore(project: Path, pattern: str, file: str, off: bool) -> None:
    per_file = PerFileIgnores(Settings(root=project, per_file_ignores=((PathPattern(project, pattern), ("BRK1",)),)))
    assert per_file.covers(project / file, "BRK101", "branch-on-tensor") is off
    assert not per_file.covers(project / file, "BRK201", "item")


def test_settings_travel_to_worker_processes(project: Path) -> None:
    settings = Settings(root=project, exclude=(PathPattern(project, "a"),), options=frozenset({"exclude"}))
    assert pickle.loads(pickle.dumps(settings)) == settings
