"""Measures how far ``breakscan check`` agrees with what Dynamo did in real packages.

    python benchmarks/agreement.py --oracle FOLDER [PACKAGE ...] [--packages FOLDER] [--args "..."] [--list]
                                   [--json FILE]

The oracle folder has a JSON file for each package, recorded from runs under torch.compile:
    {"package": NAME, "version": VERSION, "files": {PATH: {"traced": [[FIRST, LAST], ...], "breaks": [
        {"line": LINE, "gb": [ID, ...], "visible": "file" | "project" | "runtime"}, ...]}}}
``traced`` are the lines that Dynamo traced, ``breaks`` those at which it broke the graph, ``visible`` is true if the
file shows the break, other files are needed to see it, or only a run knows.  ``"follows": true`` marks a line that
breaks only because another break makes its function run by itself: such lines are counted apart.  PATH is relative to
the folder in which pip installs packages; they are downloaded there without dependencies, which a check does not need.

Per package and in total:
  recall       break lines that are in a graph-break finding, by ``visible``
  precision    graph-break findings on traced lines, certain or likely, that contain a break
  conditional  graph-break findings on traced lines that are conditional, and how many contain a break; they
               count for recall and not for precision
  calibration  of the certain and of the likely findings on traced lines, those that contain no break
Missed breaks are grouped by the compiler's reason, false positives by rule; --list prints every line.  Findings on
lines that Dynamo never reached are ignored, because the verdict there is not known.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

KINDS = ("file", "project", "runtime", "follows")
COUNTED = ("certain", "likely")


@dataclass(frozen=True)
class Place:
    """A line with a missed break or a false positive."""

    package: str
    path: str
    line: int
    group: str
    note: str

    def __str__(self) -> str:
        return f"{self.package} {self.path}:{self.line} {self.note}"


@dataclass
class Share:
    """A count out of a total."""

    part: int = 0
    whole: int = 0

    def count(self, hit: bool) -> None:
        """Adds one."""
        self.part += hit
        self.whole += 1

    def __str__(self) -> str:
        return f"{self.part / self.whole:.2f} ({self.part}/{self.whole})" if self.whole else "-"


@dataclass
class Agreement:
    """The counts of a comparison."""

    recall: dict[str, Share] = field(default_factory=lambda: {kind: Share() for kind in KINDS})
    precision: Share = field(default_factory=Share)
    wrong: dict[str, Share] = field(default_factory=lambda: {confidence: Share() for confidence in COUNTED})
    """Of the findings of each confidence, those that contain no break."""
    conditional: Share = field(default_factory=Share)
    misses: list[Place] = field(default_factory=list)
    alarms: list[Place] = field(default_factory=list)

    def add(self, part: Agreement) -> None:
        """Adds the counts of another comparison."""
        pairs = [(self.precision, part.precision), (self.conditional, part.conditional)]
        pairs += [(self.recall[kind], part.recall[kind]) for kind in KINDS]
        for mine, other in pairs + [(self.wrong[confidence], part.wrong[confidence]) for confidence in COUNTED]:
            mine.part += other.part
            mine.whole += other.whole
        self.misses += part.misses
        self.alarms += part.alarms

    def row(self, name: str) -> str:
        """The line that is printed."""
        recall = "  ".join(f"{kind} {self.recall[kind]!s:15}" for kind in KINDS)
        return f"{name:28} recall {recall} precision {self.precision!s:15} conditional {self.conditional}"


def compare(oracle: dict[str, Any], findings: Iterable[dict[str, Any]], base: Path) -> Agreement:
    """Compares the findings in a package with its oracle."""
    package = f"{oracle['package']}-{oracle['version']}"
    by_file = defaultdict(list)
    for finding in findings:
        path = Path(finding["site"]["path"])
        if finding["kind"] == "graph-break" and finding["confidence"] != "possible" and path.is_relative_to(base):
            by_file[path.relative_to(base).as_posix()].append(finding)
    agreement = Agreement()
    for path, facts in oracle["files"].items():
        broken = {entry["line"] for entry in facts["breaks"]}
        traced = broken.union(*(range(first, last + 1) for first, last in facts["traced"]))
        covered: set[int] = set()
        for finding in by_file[path]:
            site = finding["site"]
            span = set(range(site["line"], site["end_line"] + 1))
            covered |= span
            if not span & traced:
                continue
            hit = bool(span & broken)
            if finding["confidence"] not in COUNTED:
                agreement.conditional.count(hit)
                continue
            agreement.precision.count(hit)
            agreement.wrong[finding["confidence"]].count(not hit)
            if not hit:
                rule = f"{finding['rule']} {finding['name']}"
                note = f"{rule}, {finding['confidence']}: {finding['message']}"
                agreement.alarms.append(Place(package, path, site["line"], rule, note))
        for entry in facts["breaks"]:
            hit = entry["line"] in covered
            kind = "follows" if entry.get("follows") else entry["visible"]
            agreement.recall[kind].count(hit)
            if not hit:
                reason = entry["gb"][0] if entry["gb"] else "no reason recorded"
                note = f"{' '.join(entry['gb'])}, visible in the {entry['visible']}"
                agreement.misses.append(Place(package, path, entry["line"], f"{kind:8} {reason}", note))
    return agreement


def fetch(package: str, version: str, folder: Path) -> Path:
    """The folder that contains only one release of a package."""
    target = folder / f"{package}-{version}"
    if not target.exists():
        unfinished = target.with_name(f"{target.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--target", str(unfinished)]
        subprocess.run([*pip, f"{package}=={version}"], check=True)
        unfinished.rename(target)
    return target


def check(paths: Sequence[Path], arguments: Sequence[str]) -> list[dict[str, Any]]:
    """The findings of one run of the command."""
    command = [sys.executable, "-m", "breakscan", "check", "--format", "json", *arguments, *map(str, paths)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 2) or not done.stdout:
        sys.exit(f"breakscan check ended with {done.returncode}: {done.stderr[-2000:]}")
    report = json.loads(done.stdout)
    for error in report["errors"]:
        print(f"  not checked: {error['path']}:{error['line']}: {error['message']}")
    findings: list[dict[str, Any]] = report["findings"]
    return findings


def show_calibration(parts: Mapping[str, Agreement], total: Agreement) -> None:
    """The number of wrong findings, by their confidence: a row of a table for each package."""
    print("\n| package | certain, wrong | likely, wrong |\n| --- | --- | --- |")
    for name, part in {**parts, "**all**": total}.items():
        shares = (f"{share.part} of {share.whole}" for share in part.wrong.values())
        print(f"| {name} | {' | '.join(shares)} |")


def show_groups(title: str, places: Sequence[Place], listed: bool) -> None:
    """Places by group, the largest group first."""
    print(f"\n{len(places)} {title}")
    groups = Counter(place.group for place in places)
    for group, count in sorted(groups.items(), key=lambda pair: (-pair[1], pair[0])):
        print(f"  {count:4} {group}")
        for place in places:
            if listed and place.group == group:
                print(f"         {place}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="PACKAGE", help="a name, or a name and a version: kornia-0.9.0")
    parser.add_argument("--oracle", type=Path, metavar="FOLDER")
    parser.add_argument("--packages", type=Path, metavar="FOLDER", help="where fetched packages are kept")
    parser.add_argument("--args", default="--regions all --target-torch 2.13", help="for breakscan check")
    parser.add_argument("--list", action="store_true", help="list every missed line and every false alarm")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    oracles = sorted(options.oracle.glob("*.json")) if options.oracle else []
    if not oracles:
        where = f"no oracle files in {options.oracle}" if options.oracle else "no --oracle folder"
        print(f"skipped: {where}, so there is nothing to compare with")
        return 0
    packages = (options.packages or Path(tempfile.gettempdir(), "breakscan-packages")).resolve()
    total = Agreement()
    parts = {}
    for path in oracles:
        oracle = json.loads(path.read_text(encoding="utf-8"))
        name = f"{oracle['package']}-{oracle['version']}"
        if options.only and not {name, oracle["package"]} & set(options.only):
            continue
        base = fetch(oracle["package"], oracle["version"], packages)
        roots = sorted({file.split("/")[0] for file in oracle["files"]})
        part = compare(oracle, check([base / root for root in roots], shlex.split(options.args)), base)
        print(part.row(name), flush=True)
        parts[name] = part
        total.add(part)
    print(total.row("all"))
    show_calibration(parts, total)
    show_groups(
        "break lines are missed, by where they can be seen and the compiler's reason:", total.misses, options.list
    )
    show_groups("findings are false alarms, by rule:", total.alarms, options.list)
    if options.json:
        found = {name: asdict(part) for name, part in {**parts, "all": total}.items()}
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
