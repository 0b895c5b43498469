"""Writes the versions of ``breakscan/model/torch_versions.py`` into the files that name them.

``python -m tools.sync_torch_versions`` changes the files; ``--check`` lists those that differ and exits with 1.
Written are: the bounds and the pin in ``pyproject.toml``, and every ``torch X.Y to X.Y`` in the README and in the
documentation.  A page that states what was measured on other versions names these in another form.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from breakscan.model.torch_versions import PINNED, SUPPORTED, supported_range, version_key

ROOT = Path(__file__).parents[1]
RANGE = re.compile(r"\btorch \d+\.\d+ to \d+\.\d+")


def synced(path: Path) -> str:
    """The text of a file with the versions of ``torch_versions.py``."""
    text = path.read_text(encoding="utf-8")
    if path.name != "pyproject.toml":
        return RANGE.sub(f"torch {supported_range()}", text)
    major, minor = version_key(SUPPORTED[-1])
    text = re.sub(r'"torch>=[\d.]+,<[\d.]+"', f'"torch>={SUPPORTED[0]},<{major}.{minor + 1}"', text)
    return re.sub(r'"torch==[\d.]+"', f'"torch=={PINNED}"', text)


def files() -> list[Path]:
    """The files that name torch versions."""
    return [ROOT / "pyproject.toml", ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def outdated() -> list[Path]:
    """The files whose versions differ from ``torch_versions.py``."""
    return [path for path in files() if synced(path) != path.read_text(encoding="utf-8")]


def main() -> int:
    """Writes the files, or with ``--check`` only lists those that differ."""
    check = "--check" in sys.argv[1:]
    paths = outdated()
    for path in paths:
        if not check:
            path.write_text(synced(path), encoding="utf-8")
        print(f"{'differs' if check else 'wrote'}: {path.relative_to(ROOT)}")
    return 1 if check and paths else 0


if __name__ == "__main__":
    sys.exit(main())
