"""Draws findings of ``breakscan check`` at random, in its default settings, and shows each with its code.

A person then judges whether they are true, and whether anybody would act on them (``drawn_findings.md``).

    python benchmarks/draw_findings.py FOLDER ... [--seed N] [--findings 60]

Each FOLDER holds one unpacked project.  A project is drawn first, each as likely as any other, then one of its findings
that was not drawn yet.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any


def check(folder: Path) -> list[dict[str, Any]]:
    """The findings of a project, in an order that depends on nothing else."""
    command = [sys.executable, "-m", "breakscan", "check", "--no-cache", "--format", "json", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return sorted(findings, key=lambda f: (f["site"]["path"], f["site"]["line"], f["site"]["column"], f["rule"]))


def draw(by_project: dict[Path, list[dict[str, Any]]], count: int, seed: int) -> list[tuple[Path, dict[str, Any]]]:
    """That many findings, or all, by project and place."""
    left = {folder: list(findings) for folder, findings in sorted(by_project.items()) if findings}
    chooser = random.Random(seed)
    drawn: list[tuple[Path, dict[str, Any]]] = []
    while left and len(drawn) < count:
        folder = chooser.choice(list(left))
        drawn.append((folder, left[folder].pop(chooser.randrange(len(left[folder])))))
        if not left[folder]:
            del left[folder]
    return sorted(drawn, key=lambda one: (one[0], one[1]["site"]["path"], one[1]["site"]["line"]))


def show(number: int, folder: Path, finding: dict[str, Any]) -> None:
    site = finding["site"]
    print(
        f"=== {number} {folder.name} {site['path']}:{site['line']} {finding['severity']} {finding['confidence']}",
        end=" ",
    )
    print(finding["rule"], finding["name"], "|", finding["message"], "|", finding["condition"] or "no condition")
    lines = (folder / site["path"]).read_text(encoding="utf-8").splitlines()
    for at in range(max(1, site["line"] - 8), min(len(lines), site["end_line"] + 4) + 1):
        print(">" if site["line"] <= at <= site["end_line"] else " ", f"{at:5}", lines[at - 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--findings", type=int, default=60)
    options = parser.parse_args()
    by_project = {folder: check(folder) for folder in options.folders}
    for number, (folder, finding) in enumerate(draw(by_project, options.findings, options.seed), 1):
        show(number, folder, finding)


if __name__ == "__main__":
    main()
