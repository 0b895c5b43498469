"""Reads CHANGELOG.md, which has the form of https://keepachangelog.com.

``python -m tools.release_notes v0.1.0`` prints the section of a version, and fails if the tag is not the version of the
package, or the section has no date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from breakscan import __version__

FILE = Path(__file__).parents[1] / "CHANGELOG.md"
HEADING = re.compile(r"^## \[?([^\]\s]+)\]?(?: - (\d{4}-\d\d-\d\d))?[ \t]*$", re.MULTILINE)
GROUPS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")


def sections(text: str) -> dict[str, tuple[str | None, str]]:
    """The date and the text of each version, in the order of the file."""
    found = list(HEADING.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    # A text without any version has one end and no beginning.
    return {match[1]: (match[2], text[match.end() : end].strip("\n")) for match, end in zip(found, ends, strict=False)}


def entries_of(text: str, version: str) -> list[str]:
    """The entries of a version, each as one line."""
    _, body = sections(text).get(version, (None, ""))
    parts = re.split(r"^- ", body, flags=re.MULTILINE)[1:]
    return [" ".join(re.split(r"^#", part, maxsplit=1, flags=re.MULTILINE)[0].split()) for part in parts]


def main(tag: str) -> int:
    version = tag.removeprefix("v")
    date, body = sections(FILE.read_text(encoding="utf-8")).get(version, (None, ""))
    if version != __version__:
        print(f"the tag {tag} is not the version {__version__} in breakscan/__init__.py", file=sys.stderr)
    elif date is None or not body:
        print(f"CHANGELOG.md has no section '## [{version}] - DATE'", file=sys.stderr)
    else:
        print(body)
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
