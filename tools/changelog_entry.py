"""Fails if a branch changes what users see and adds nothing under *Unreleased* in CHANGELOG.md.

``python -m tools.changelog_entry BASE`` compares with the commit at which the branch left BASE.  What users see is the
package, its rules and what they install; tests, documents and benchmarks need no entry.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.release_notes import entries_of

ROOT = Path(__file__).parents[1]
SEEN = ("breakscan/", "rules/BRK", "action.yml", "templates/", ".pre-commit-hooks.yaml", "skills/")
UNRELEASED = "Unreleased"


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def needs_entry(changed: list[str]) -> bool:
    """True if users see a change of one of these files."""
    return any(path.startswith(SEEN) for path in changed)


def has_new_entry(before: str, after: str) -> bool:
    """True if an entry under *Unreleased* is new or has changed."""
    return bool(set(entries_of(after, UNRELEASED)) - set(entries_of(before, UNRELEASED)))


def main(base: str) -> int:
    start = git("merge-base", base, "HEAD").strip()
    changed = git("diff", "--name-only", start, "HEAD").splitlines()
    before = git("show", f"{start}:CHANGELOG.md")
    if not needs_entry(changed) or has_new_entry(before, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")):
        return 0
    print("Users see this change: add an entry under Unreleased in CHANGELOG.md, in Added, Changed or Fixed.")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
