"""The gallery: reports of recorded runs, rendered when the site is built.  The recordings are in ``docs/gallery/``."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from breakscan.source.toml_text import parse_toml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "gallery"
HOME = "/home/user/breakscan"
"""Where the recordings say that the checkout is."""


@dataclass(frozen=True)
class Entry:
    """A report of the gallery, as ``gallery.toml`` describes it."""

    name: str
    title: str
    words: str
    command: tuple[str, ...]
    ranks: int = 0

    @property
    def archive(self) -> Path:
        return FOLDER / f"{self.name}.tar.xz"

    @property
    def typed(self) -> str:
        """The command that made the recording."""
        launcher = f"torchrun --nproc-per-node {self.ranks} -m " if self.ranks else ""
        return f"{launcher}breakscan explain --format html -o report.html {' '.join(self.command)}"


def entries() -> list[Entry]:
    """All reports of the gallery."""
    tables = parse_toml((FOLDER / "gallery.toml").read_text(encoding="utf-8"))["report"]
    return [Entry(**{**one, "command": tuple(one["command"])}) for one in tables]


def gallery_files() -> dict[str, str]:
    """The page of the gallery, and each report, by their paths in the site."""
    files = {}
    sections = []
    for entry in entries():
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(entry.archive) as archive:
                archive.extractall(folder, filter="data")
            files[f"gallery/{entry.name}.html"] = _report("html", Path(folder, entry.name))
            shown = _report("terminal", Path(folder, entry.name))
        sections.append(SECTION.format(entry=entry, shown="\n".join(shown.splitlines()[1:LINES])))
    return files | {"gallery/index.md": "\n".join([INTRODUCTION, *sections])}


LINES = 14
"""The length of a report that the page shows as text."""

INTRODUCTION = """\
# Gallery

Reports of the programs in `examples/`, as [`breakscan explain --format html`](../html.md) writes them: each is one file
that loads nothing. They were recorded with torch 2.13 on the CPU, and are rendered from the recording by
[`breakscan report`](../report.md) whenever this site is built.
"""

SECTION = """\
## {entry.title}

{entry.words}

```sh
{entry.typed}
```

```
{shown}
…
```

[Open the report]({entry.name}.html){{ .md-button }}
"""


def _report(format_: str, recording: Path) -> str:
    words = [sys.executable, "-m", "breakscan", "report", "--format", format_, str(recording)]
    words += ["--source-root", f"{HOME}={ROOT}"]
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8").stdout
