"""Runs ``breakscan check`` of a commit and of the working tree over released projects, and prints what differs.

``python -m tools.primer BASE [--only NAME]... [--sdists FOLDER]``, in Markdown for a pull request.  The projects and
their versions are in ``primer.toml``; ``unearth`` downloads their source distributions.  Exits with 1 if ``check``
fails on a project where the commit did not.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from breakscan.model.torch_versions import PINNED
from breakscan.model.words import counted
from breakscan.source.toml_text import parse_toml

ROOT = Path(__file__).parents[1]
MOST_LINES = 20
"""The lines that are shown of a project."""


@dataclass(frozen=True)
class Checked:
    """One run of ``check``: the lines of its findings, its exit status and error, and its CPU seconds."""

    lines: Counter[str]
    status: int
    error: str
    cpu: float


@dataclass(frozen=True)
class Difference:
    """The runs of both over one project."""

    project: str
    before: Checked
    after: Checked

    @property
    def lines(self) -> list[str]:
        """The lines that are gone, with a minus, and those that are new, with a plus, by where they are."""
        gone, new = self.before.lines - self.after.lines, self.after.lines - self.before.lines
        signed = [(line, "-") for line in gone.elements()] + [(line, "+") for line in new.elements()]
        return [
            f"{sign} {line}" for line, sign in sorted(signed, key=lambda one: (one[0].partition(" ")[0], one[1] == "+"))
        ]

    @property
    def fails(self) -> bool:
        return self.after.status != 0 and self.before.status == 0


def unpacked(project: str, sdists: Path) -> Path:
    """The folder of a project's source distribution, downloaded unless it is there."""
    folder = sdists / project
    if not folder.is_dir():
        unearth = [sys.executable, "-m", "unearth", project, "--no-binary", "--download", str(sdists)]
        done = subprocess.run(unearth, check=True, capture_output=True, text=True)
        with tempfile.TemporaryDirectory(dir=sdists) as new, tarfile.open(json.loads(done.stdout)["local_path"]) as tar:
            tar.extractall(new, filter="data")
            Path(new).joinpath(*os.listdir(new)[:1]).rename(folder)
    return folder


def checked(code: Path, folder: Path) -> Checked:
    """Checks a folder with the breakscan of another, as one process without a cache."""
    command = [sys.executable, "-m", "breakscan", "check", "--format", "concise", "--exit-zero", "--no-cache"]
    command += ["--quiet", "--target-torch", PINNED, "."]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(code)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Checked(Counter(done.stdout.splitlines()), done.returncode, done.stderr.strip(), cpu)


def report(differences: Sequence[Difference]) -> Iterator[str]:
    """The lines of the text for a pull request."""
    changed = [one for one in differences if one.lines or one.fails]
    sides = [one.before for one in differences], [one.after for one in differences]
    found, cpu = (" → ".join(map(str, pair)) for pair in zip(*((_findings(s), _cpu(s)) for s in sides), strict=True))
    what = f"Changed in {', '.join(one.project for one in changed)}" if changed else "No finding changed"
    yield from (f"### `breakscan check` over {counted(len(differences), 'project')}", "")
    yield f"{what}: {found} findings, {cpu} CPU s."
    for one in changed:
        new = sum(line.startswith("+") for line in one.lines)
        fails = [f"! fails with {one.after.status}: {one.after.error[-1000:]}"] if one.fails else []
        rest = [f"  and {len(one.lines) - MOST_LINES} more"] if len(one.lines) > MOST_LINES else []
        yield from ("", f"<details><summary>{one.project}: {new} new, {len(one.lines) - new} gone</summary>", "")
        yield from ("```diff", *fails, *one.lines[:MOST_LINES], *rest, "```", "</details>")


def _findings(side: Sequence[Checked]) -> int:
    return sum(one.lines.total() for one in side)


def _cpu(side: Sequence[Checked]) -> int:
    return round(sum(one.cpu for one in side))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", metavar="BASE")
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--sdists", type=Path, default=ROOT / "build" / "primer", help="where they are kept")
    options = parser.parse_args()
    projects = parse_toml(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["projects"]
    options.sdists.mkdir(parents=True, exist_ok=True)
    archive = subprocess.check_output(["git", "archive", options.base, "breakscan", "rules"], cwd=ROOT)
    differences = []
    with tempfile.TemporaryDirectory() as base:
        subprocess.run(["tar", "x", "-C", base], input=archive, check=True)
        for project in projects:
            if project.partition("==")[0] in (options.only or [project.partition("==")[0]]):
                folder = unpacked(project, options.sdists.resolve())
                differences.append(Difference(project, checked(Path(base), folder), checked(ROOT, folder)))
                print(project, file=sys.stderr)
    print("\n".join(report(differences)))
    return 1 if any(one.fails for one in differences) else 0


if __name__ == "__main__":
    sys.exit(main())
