"""A wrong configuration is refused with file, line, key and, where one is near, the right word."""

import textwrap
from pathlib import Path
from typing import Any

import pytest

from breakscan.rulebook.config import ConfigError, load_settings


@pytest.mark.parametrize(
    ("text", "line", "key", "said"),
    [
        ('[tool.breakscan]\nslect = ["BRK1"]\n', 2, "slect", "unknown key: did you mean select?"),
        ("[tool.breakscan]\ntarget_torch = '2.13'\n", 2, "target_torch", "did you mean target-torch?"),
        ("[tool.breakscan]\nzzz = 1\n", 2, "zzz", "known: target-torch"),
        ("[tool.breakscan]\n\n# why\nfullgraph = 'yes'\n", 4, "fullgraph", "must be true or false"),
        ("[tool.breakscan]\nregions = 'root'\n", 2, "regions", "did you mean roots?"),
        ("[tool.breakscan]\nconfidence = 'sure'\n", 2, "confidence", "certain, likely, conditional, possible"),
        ("[tool.breakscan]\ntarget-torch = 2.13\n", 2, "target-torch", 'must be a string: "2.13"'),
        ("[tool.breakscan]\ntarget-torch = 'latest'\n", 2, "target-torch", "such as \"2.13\", not 'latest'"),
        ("[tool.breakscan]\ntarget-torch = '1.13'\n", 2, "target-torch", "torch 1.13 has no torch.compile, which came"),
        ("[tool.breakscan]\nselect = 'BRK1'\n", 2, "select", "must be a list of strings"),
        (
            "[tool.breakscan]\nselect = [\n  'BRK101',\n  'BRK1010',\n]\n",
            4,
            "select",
            "'BRK1010': did you mean BRK101?",
        ),
        ("[tool.breakscan]\nignore = ['branch-on-tensr']\n", 2, "ignore", "did you mean branch-on-tensor"),
        ("[tool.breakscan]\nexclude = ['ok', '']\n", 2, "exclude", "must not be empty"),
        ("[tool.breakscan]\nexclude = [\n'ok',\n'!']\n", 4, "exclude", "not a gitignore-style pattern"),
        ("[tool.breakscan]\nrules = ['nowhere']\n", 2, "rules", "there is no folder 'nowhere'"),
        ("[tool.breakscan]\nper-file-ignores = ['a']\n", 2, "per-file-ignores", "must be a table of lists"),
        (
            "[tool.breakscan]\n[tool.breakscan.per-file-ignores]\n'a.py' = ['BRK101']\n'b.py' = ['BRK9z']\n",
            4,
            "per-file-ignores",
            "no rule is called 'BRK9z'",
        ),
        ("[tool.breakscan.per-file-ignores]\n'a.py' = 'BRK101'\n", 2, "per-file-ignores", "must be a list of strings"),
        ("[other]\nselect = 1\n[tool.breakscan]\nselect = 1\n", 4, "select", "must be a list of strings"),
        ("[tool]\nbreakscan = 3\n", 2, "tool.breakscan", "must be a table"),
        ("[tool.breakscan]\nselect = = 1\n", 2, None, "not valid TOML"),
    ],
)
def test_a_wrong_key_or_value_is_named(tmp_path: Path, text: str, line: int, key: str | None, said: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_settings(tmp_path)
    assert (caught.value.path, caught.value.line, caught.value.key) == (path, line, key)
    assert said in caught.value.reason
    assert str(caught.value).startswith(f"{path}:{line}: {key or ''}")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"select": ("BRK1010",)}, "--select: no rule is called 'BRK1010': did you mean BRK101?"),
        ({"ignore": ("branch-on-tensr",)}, "--ignore: no rule is called 'branch-on-tensr': did you mean"),
        ({"exclude": ("",)}, "--exclude: a pattern must not be empty"),
        ({"target_torch": "1.13.1"}, "--target-torch: torch 1.13.1 has no torch.compile, which came with 2.0"),
        ({"target_torch": "2.12+nested"}, "--target-torch: verdicts with nested_graph_breaks are of torch 2.13"),
        ({"target_torch": "two"}, "--target-torch: must be a torch version such as \"2.13\", not 'two'"),
    ],
)
def test_a_wrong_option_is_named(tmp_path: Path, overrides: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(tmp_path, **overrides)
    assert said in str(caught.value)


def test_a_named_file_must_exist_and_hold_the_table(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_settings(tmp_path, tmp_path / "none.toml")
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"has no \[tool.breakscan\] table"):
        load_settings(tmp_path, tmp_path / "pyproject.toml")


def test_a_malformed_rule_of_the_users_own_is_named(tmp_path: Path) -> None:
    from breakscan.rulebook.document import RuleError

    (tmp_path / "lint").mkdir()
    (tmp_path / "lint" / "BRK001-mine.md").write_text("no front matter\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(
        textwrap.dedent("""
            [tool.breakscan]
            rules = ["lint"]
            select = ["BRK001"]
        """),
        encoding="utf-8",
    )
    with pytest.raises(RuleError, match=r"BRK001-mine.md:1: .*starts with a line"):
        load_settings(tmp_path)
