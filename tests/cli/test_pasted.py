"""What the README and ``docs/`` show can be pasted.

Every command takes the options that are shown, every configuration loads, every format parses, and nothing needs a
release, an index or a tag that does not exist.
"""

import ast
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from own_rule import OWN_RULE

from breakscan.cli.main import cli
from breakscan.rulebook.config import load_settings
from breakscan.source.toml_text import tomllib

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "skills").rglob("*.md"))
NEWEST = re.search(r"^## .+$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
IS_RELEASED = NEWEST is not None and "unreleased" not in NEWEST[0].lower()

FENCE = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^ *\2[ \t]*$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:^|[ \"'])(?:python -m |-m )?breakscan ([a-z]+(?: .*)?)$")
FORMS = ("[OPTIONS]", "…")
"""What a line has that shows the form of a command, and is none."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str


def blocks() -> Iterator[Block]:
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            body = "\n".join(line.removeprefix(match[1]) for line in match[4].split("\n"))
            yield Block(path.name, text.count("\n", 0, match.start()) + 1, match[3].strip(), body)


BLOCKS = list(blocks())


def of_language(language: str) -> list[Any]:
    found = [block for block in BLOCKS if block.language.partition(" ")[0] == language]
    return [pytest.param(block, id=f"{block.page}:{block.line}") for block in found]


def commands_in_blocks() -> Iterator[Any]:
    for block in BLOCKS:
        for number, line in enumerate(block.text.split("\n"), block.line + 1):
            line = line.partition("  #")[0].rstrip()
            is_typed = line.startswith(("$ ", "breakscan ", "torchrun ")) or block.language in ("sh", "yaml")
            found = COMMAND.search(line) if is_typed and not any(form in line for form in FORMS) else None
            if found:
                yield pytest.param(found[1], id=f"{block.page}:{number}")


def commands_in_text() -> Iterator[Any]:
    for path in PAGES:
        text = FENCE.sub(lambda match: "\n" * match[0].count("\n"), path.read_text(encoding="utf-8"))
        for span in re.finditer(r"`([^`]+)`", text):
            if found := COMMAND.search(" ".join(span[1].split())):
                yield pytest.param(found[1], id=f"{path.name}:{text.count(chr(10), 0, span.start()) + 1}")


WHOLE = click.Context(cli, **cli.context_settings)
"""What commands run in: it says how help is asked for, and click keeps that for each command from the first time on."""


def subcommand(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that some words begin with, and the rest of them."""
    command = cli.get_command(WHOLE, words[0])
    assert command is not None, f"there is no command {words[0]}"
    if isinstance(command, click.Group) and words[1:2] and words[1] in command.commands:
        return command.commands[words[1]], words[2:]
    return command, words[1:]


def test_commands_are_found() -> None:
    found = [param.values[0].split()[0] for param in commands_in_blocks()]
    assert set(found) >= {"bench", "check", "diff", "explain", "fix", "report", "verify"}
    assert len(list(commands_in_text())) > 60


@pytest.mark.parametrize("line", list(commands_in_blocks()))
def test_a_command_of_a_block_parses(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)
    words = words[: next((at for at, word in enumerate(words) if word in ("&&", "|", ">")), len(words))]
    # A path without an extension is a folder, and exists.
    words = [word.replace("$GITHUB_STEP_SUMMARY", "summary.md") for word in words]
    words = [str(tmp_path / word[1:]) if word.startswith("/") and "=" not in word else word for word in words]
    for path in (tmp_path / word for word in words[1:] if not word.startswith("-") and "=" not in word):
        (path if not path.suffix else path.parent).mkdir(parents=True, exist_ok=True)
        if path.suffix:
            path.touch()
    command, rest = subcommand(words)
    command.make_context("breakscan", rest, parent=WHOLE)


@pytest.mark.parametrize("line", list(commands_in_text()))
def test_a_command_in_the_text_has_its_options(line: str) -> None:
    command, rest = subcommand(line.split())
    if command.name in ("explain", "verify", "bench", "tune"):
        program = next((at for at, word in enumerate(rest) if word.endswith(".py")), len(rest))
        rest = rest[:program]  # what follows are options of the program
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help"}
    assert {word.partition("=")[0] for word in rest if re.match("--?[a-z]", word)} - known == set()


@pytest.mark.parametrize("block", of_language("toml"))
def test_a_configuration_loads(block: Block, tmp_path: Path) -> None:
    tables = tomllib.loads(block.text)
    own = tables.get("tool", {}).get("breakscan", {})
    for folder in own.get("rules", []):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "BRK001-our-own-rule.md").write_text(OWN_RULE, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(block.text, encoding="utf-8")
    load_settings(tmp_path)


@pytest.mark.parametrize("block", [*of_language("json"), *of_language("python")])
def test_json_and_python_parse(block: Block) -> None:
    (json.loads if block.language.startswith("json") else ast.parse)(block.text)


@pytest.mark.parametrize("block", of_language("yaml"))
def test_a_yaml_block_parses_and_needs_no_tag_that_does_not_exist(block: Block) -> None:
    yaml = pytest.importorskip("yaml")
    yaml.safe_load(block.text)
    revisions = re.findall(r"rev: *(\S+)", block.text)
    assert IS_RELEASED or set(revisions) <= {"COMMIT"}


def installed(text: str) -> Iterator[str]:
    """What the ``pip install`` commands of a text install."""
    for match in re.finditer(r"pip install ((?:'[^'\n]*'|\"[^\"\n]*\"|[^\n`'\"&)])+)", text):
        yield from (word for word in shlex.split(match[1]) if not word.startswith("-"))


TEXTS = [*PAGES, *sorted((ROOT / "breakscan").rglob("*.py"))]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_nothing_installs_a_release_that_does_not_exist(path: Path) -> None:
    """Nor do the messages of the program say so."""
    found = list(installed(path.read_text(encoding="utf-8")))
    assert IS_RELEASED or not [word for word in found if re.fullmatch(r"breakscan(\[\w+\])?([=<>~!].*)?", word)]


@pytest.mark.slow
@pytest.mark.process
def test_the_command_that_installs_from_the_repository_works(tmp_path: Path) -> None:
    """With the repository that the tests run in, and an index for what builds the package."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no repository")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    match = re.search(r"python -m pip install (git\+URL-OF-THIS-REPOSITORY@COMMIT)\n", readme)
    assert match is not None
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    named = match[1].replace("URL-OF-THIS-REPOSITORY", ROOT.as_uri()).replace("COMMIT", commit.strip())
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), named]
    subprocess.run(pip, check=True, cwd=tmp_path)
    assert (tmp_path / "breakscan" / "rules").is_dir()
