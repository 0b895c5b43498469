"""The pages of ``docs/`` that describe the command line say what it does."""

import json
import re
from pathlib import Path

import click
import pytest

from breakscan.cli.check import check
from breakscan.cli.fix import fix
from breakscan.fix.rewrites import described, rewrite_ids
from tests.cli.conftest import Run
from tests.conftest import SCHEMAS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


MODEL = """import torch

class Block(torch.nn.Module):

    def forward(self, x, heads):
        for head in heads:
            if x.isnan().any():
                x = torch.nan_to_num(x)
        return x
"""


def test_the_output_of_the_page_is_real(breakscan: Run, folder: Path) -> None:
    block = re.search(r"```console\n\$ breakscan (.*?)\n(.*?)```", page("check.md"), re.DOTALL)
    assert block
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    shown = breakscan(*block[1].split(), "--target-torch", "2.13").out
    # The number of edits is for a terminal alone.
    piped, number, _ = block[2].partition("'breakscan fix'")
    assert number
    assert re.sub(r"\(\d+\.\d s\)", "(0.1 s)", shown) == piped


@pytest.mark.parametrize(("name", "command"), [("check", check), ("configuration", check), ("fix", fix)])
def test_every_option_that_a_page_names_exists(name: str, command: click.Command) -> None:
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    named = set(re.findall(rf"`(?:breakscan {command.name} [^`]*?)?(--[a-z-]+)", page(f"{name}.md")))
    assert named
    assert named <= known


def test_every_key_of_the_configuration_has_a_row() -> None:
    schema = json.loads((SCHEMAS / "config.schema.json").read_text("utf-8"))
    assert not {key for key in schema["properties"] if f"| `{key}` |" not in page("configuration.md")}


@pytest.mark.parametrize("command", ["check", "fix", "explain", "survey", "tune"])
def test_every_key_of_the_json_is_described(command: str) -> None:
    schema = json.loads((SCHEMAS / f"{command}.schema.json").read_text("utf-8"))
    section = _section(command) + page("json.md").partition("##")[0]
    if "](#remedies)" in section:
        section += _section("Remedies")
    keys = {key for table in _tables(schema) for key in table}
    assert len(keys) > 15
    assert not {key for key in keys if f"`{key}`" not in section} - {"path", "line", "column", "end_line"}


def _section(heading: str) -> str:
    return page("json.md").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def _tables(schema: object) -> list[dict[str, object]]:
    """Every ``properties`` of a schema."""
    if isinstance(schema, list):
        return [table for item in schema for table in _tables(item)]
    if not isinstance(schema, dict):
        return []
    own = schema.get("properties")
    inner = [table for value in schema.values() for table in _tables(value)]
    return [own, *inner] if isinstance(own, dict) else inner


def test_the_hook_of_the_page_is_the_hook_of_the_repository() -> None:
    for command in ("check", "fix"):
        assert f"- id: breakscan-{command}\n" in page(f"{command}.md")
        assert f"- id: breakscan-{command}\n" in (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")


def test_the_page_of_fix_lists_every_rewrite() -> None:
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.+) \|$", page("fix.md"), re.MULTILINE))
    told = {one: described(one).replace("``", "`").replace("|", "\\|") for one in rewrite_ids()}
    assert rows == told


def test_every_file_that_the_architecture_page_names_exists() -> None:
    text = page("architecture.md")
    named = set(re.findall(r"`(?!tests/)(?:[\w/]+/)?([a-z_]\w*\.py)`", text))
    found = {path.name for folder in ("breakscan", "tools") for path in (ROOT / folder).rglob("*.py")}
    assert len(named) > 25
    assert named <= found
