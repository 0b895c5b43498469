"""The tutorials show what ``breakscan check`` and ``breakscan fix`` print for the programs of the page."""

import re
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
PROGRAM = re.compile(r"```python\n# (\S+\.py)\n(.*?)```", re.DOTALL)
SHOWN = re.compile(r"^\$ breakscan (check .*|fix .*)\n((?:(?!\$ |```).*\n)*)", re.MULTILINE)


def page(name: str) -> str:
    return (ROOT / "docs" / "tutorials" / name).read_text(encoding="utf-8")


def timeless(text: str) -> list[str]:
    lines = [re.sub(r"\(\d+\.\d s\)", "(… s)", line) for line in text.splitlines()]
    return [line for line in lines if line]


def test_shown_commands_are_found() -> None:
    found = [len(SHOWN.findall(page(path.name))) for path in sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
    assert sum(found) >= 8


@pytest.mark.parametrize("name", ["libraries.md", "ranks.md"])
def test_a_page_with_its_programs(breakscan: Run, folder: Path, name: str) -> None:
    text = page(name)
    for path, program in PROGRAM.findall(text):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        # The line with the name of the file is not in the file.
        (folder / path).write_text(program, encoding="utf-8")
    for command, shown in SHOWN.findall(text):
        words = command.split()
        done = breakscan(*words, *([] if "--target-torch" in words else ["--target-torch", "2.13"]))
        assert timeless(done.out + done.err) == timeless(shown), command


def test_the_page_on_continuous_integration(breakscan: Run, folder: Path) -> None:
    text = page("ci.md")
    (folder / "src").mkdir()
    shutil.copy(ROOT / "examples" / "vision.py", folder / "src")
    (folder / "pyproject.toml").write_text('[tool.breakscan]\ntarget-torch = "2.13"\n', encoding="utf-8")
    (made, shown), (new, shown_new), _, (mended, shown_mended) = SHOWN.findall(text)
    done = breakscan(*made.split())
    assert timeless(done.out + done.err) == timeless(shown)
    assert re.findall(r"(?s)```toml\n(\[\[file.*?)```", text)[0] in (folder / "breakscan-baseline.toml").read_text(
        "utf-8"
    )

    original = (folder / "src" / "vision.py").read_text(encoding="utf-8")
    grown = original.replace("self.threshold = 0.1\n", "self.threshold = 0.1\n        self.found = 0\n")
    added = "keep = scores > self.threshold\n"
    grown = grown.replace(added, f"{added}        self.found += int(keep.sum())\n")
    (folder / "src" / "vision.py").write_text(grown, encoding="utf-8")
    done = breakscan(*new.split())
    assert done.status == 1
    assert timeless(done.out + done.err) == timeless(shown_new)

    (folder / "src" / "vision.py").write_text(original, encoding="utf-8")
    done = breakscan(*mended.split())
    assert done.status == 0
    assert timeless(done.out + done.err) == timeless(shown_mended)
