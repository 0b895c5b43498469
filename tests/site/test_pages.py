"""The pages that are made when the site is built, and its navigation."""

import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from breakscan.cli.main import COMMANDS
from breakscan.model.dataclass_json import decoder
from breakscan.model.findings import Kind
from breakscan.recording.recording import SUFFIX
from breakscan.recording.records import KINDS
from breakscan.rulebook.ledger import load_ledger, measured_versions
from breakscan.rulebook.library import load_library
from tools.site.command_pages import commands_page
from tools.site.gallery import FOLDER, ROOT, Entry, entries
from tools.site.llms import FILE, full_text, index_text, pages
from tools.site.rule_pages import index_page, rule_page

LEDGERS = [load_ledger(version) for version in reversed(measured_versions())]
LIBRARY = load_library()


def test_the_page_of_a_rule_has_its_document_rewrites_and_verdicts() -> None:
    rule = LIBRARY.get("BRK101")
    assert rule is not None
    text = rule_page(rule, LEDGERS)
    assert text.startswith("# BRK101 branch-on-tensor\n\nBranch depends on a tensor's value.\n")
    assert re.findall("^## (.+)", text, re.MULTILINE) == [
        *("Why", "Instead", "Breaks", "Compiles"),
        *("Rewrites", "Verdicts"),
    ]
    assert "| 2.13 | default mode | splits | eager | eager | eager |" in text


def test_what_an_example_is_called_with_is_its_title() -> None:
    rule = LIBRARY.get("BRK105")
    assert rule is not None
    assert any(example.form and example.inputs for example in rule.examples)
    text = rule_page(rule, LEDGERS)
    assert 'python title="called with torch.' in text
    assert "```python form=" not in text
    assert "```python inputs=" not in text


def test_the_list_has_every_rule_with_each_version() -> None:
    text = index_page(LIBRARY, LEDGERS)
    rows = re.findall(r"^\| \[(BRK\d+) [^|]+\|[^\n]*$", text, re.MULTILINE)
    assert rows == [rule.id for rule in LIBRARY]
    assert "| rule | what it finds | " + " | ".join(sorted(measured_versions())) + " |" in text
    exported = next(rule for rule in LIBRARY if rule.kind is Kind.EXPORT)
    assert re.search(rf"\[{exported.id} [^\n]* raises ", text)


def test_the_reference_has_every_command_with_its_options() -> None:
    text = commands_page()
    assert re.findall(r"^## breakscan (\w+)$", text, re.MULTILINE) == list(COMMANDS)
    assert "## breakscan rules replay\n" in text
    assert "| `--max-breaks N` |" in text


def test_every_document_has_its_place_in_the_navigation() -> None:
    """The build notices as well, but takes longer."""
    named = [page for section in ("Home", "Tutorials", "Guides", "Reference", "Project") for page in pages(section)]
    documents = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert documents - set(named) == set()
    assert len(named) == len(set(named))


def test_llms_txt_is_what_the_tool_makes() -> None:
    """If it fails: ``python -m tools.site.llms``."""
    assert FILE.read_text(encoding="utf-8") == index_text()


def test_llms_txt_has_the_form_that_readers_expect() -> None:
    lines = index_text().splitlines()
    assert lines[0] == "# breakscan"
    assert lines[2].startswith("> ")
    links = [line for line in lines if line.startswith("- [")]
    assert len(links) > 15
    assert all(re.fullmatch(r"- \[[^\]]+\]\([^)]+\): .+", line) for line in links)
    assert all((ROOT / target).exists() for target in re.findall(r"\]\(([^)]+)\)", index_text()))


def test_the_full_text_has_the_guides_and_every_rule() -> None:
    text = full_text()
    assert all(f"- {rule.id} {rule.name}: " in text for rule in LIBRARY)
    assert "\n# breakscan check\n" in text


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_a_recording_of_the_gallery_is_whole_names_no_machine_and_holds_no_source_of_others(entry: Entry) -> None:
    with tarfile.open(entry.archive) as archive:
        files = {member.name: archive.extractfile(member) for member in archive.getmembers() if member.isfile()}
        texts = {name: file.read().decode() for name, file in files.items() if file is not None}
    packages = [name for name in sys.path if Path(name).name == "site-packages"]
    places = (sys.prefix, str(ROOT), str(Path.home()), *packages)
    assert [place for place in places if any(place in text for text in texts.values())] == []
    # A line that is no record of today is left out without a word.
    records = [json.loads(line) for name, text in texts.items() if name.endswith(SUFFIX) for line in text.splitlines()]
    assert all(decoder(KINDS[kind])(values) for kind, values in records)
    sources = [text for name, text in texts.items() if name.endswith("sources.json")]
    assert sources
    assert all(
        name.startswith("/home/user/breakscan/") for text in sources for name in re.findall(r'"(/[^"]+)": "', text)
    )


@pytest.mark.process
def test_a_recording_of_the_gallery_is_rendered_without_torch(tmp_path: Path) -> None:
    with tarfile.open(FOLDER / "vision.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    program = f"import sys; sys.modules['torch'] = None; sys.argv[1:] = ['report', {str(tmp_path / 'vision')!r}]\n"
    program += "from breakscan.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "5 sites break the graph" in done.stdout, done.stderr
