"""Counts for how many of the breaks that Dynamo recorded ``breakscan fix`` offers a rewrite.

    python benchmarks/repair_offers.py --oracle DIR --site DIR [--recordings DIR] [--packages NAME ...] [--rule ID]
        [--list]

``--oracle`` has a JSON file per package (``files`` → path → ``breaks``, a list with ``line`` and ``rewrite``: what a
person thought possible), ``--site`` the unpacked packages, as ``NAME-VERSION/``.  For each package, it prints how many
break lines are in a statement that a safe or unsafe rewrite changes, or in a function that it disables, by that
judgement; ``--list`` prints every line with its result.  ``--recordings`` has folders NAME-VERSION*, of runs recorded
by ``explain --save``, whose values rewrites may assume.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from breakscan.check.pipeline.check import check_paths
from breakscan.cli.selection import with_recordings
from breakscan.fix.planner import LAST_RESORT, WantedRewrites
from breakscan.fix.repair import repair_found
from breakscan.fix.result import Applied, FileRepair
from breakscan.model.findings import CheckResult
from breakscan.rulebook.config import load_settings

JUDGEMENTS = ("yes", "partly", "no", "case")
REMOVING = ("safe", "unsafe")


def answer(repair: FileRepair | None, line: int, rule: str | None) -> tuple[str, str]:
    """The outcome of ``fix`` for a line: one of REMOVING, ``disabled``, ``declined`` and so on."""
    if repair is None:
        return "not reported", ""

    def holds(finding: object) -> bool:
        site = finding.site  # type: ignore[attr-defined]
        return bool(site.line <= line <= site.end_line and (rule is None or finding.rule == rule))  # type: ignore[attr-defined]

    for one in repair.applied:
        if holds(one.finding):
            words = f"{one.finding.rule} {one.rewrite}" + (f": {one.difference}" if one.difference else "")
            return grade(one), words
    for refused in repair.refused:
        if holds(refused.finding):
            return "declined", f"{refused.finding.rule} " + "; ".join(
                f"{one.rewrite}: {one.text}" for one in refused.reasons
            )
    for finding in repair.without:
        if holds(finding):
            return "no rewrite", finding.rule
    return "not reported", ""


def grade(applied: Applied) -> str:
    """The kind of an edit."""
    if applied.rewrite == LAST_RESORT:
        return "disabled"
    return applied.finding.rewrite.safety if applied.finding.rewrite else "unsafe"


def only(found: CheckResult, paths: Collection[Path]) -> CheckResult:
    """The findings in some files."""
    names = {os.path.relpath(path) for path in paths}
    return replace(found, roots={name: roots for name, roots in found.roots.items() if name in names})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", type=Path, required=True)
    parser.add_argument("--site", type=Path, required=True)
    parser.add_argument("--recordings", type=Path)
    parser.add_argument("--packages", nargs="+", default=[""])
    parser.add_argument("--rule")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    for name in ("oracle", "site", "recordings"):
        if given := getattr(arguments, name):
            setattr(arguments, name, given.absolute())
    total: Counter[tuple[str, str]] = Counter()
    for oracle in sorted(arguments.oracle.glob("*.json")):
        if not any(oracle.stem.startswith(name) for name in arguments.packages):
            continue
        data = json.loads(oracle.read_text(encoding="utf-8"))
        name = f"{data['package']}-{data['version']}"
        root = arguments.site / name
        broken = {path: found["breaks"] for path, found in data["files"].items() if found["breaks"]}
        paths = {path: (root / path).absolute() for path in broken if (root / path).exists()}
        recordings = sorted(arguments.recordings.glob(f"{name}*")) if arguments.recordings else []
        os.chdir(root)
        settings = replace(load_settings(root, None, target_torch="2.13", no_cache=True), regions="all")
        files = [*root.rglob("*.py")]
        seen = with_recordings(settings, recordings, files)
        found = check_paths(files, seen, jobs=arguments.jobs)
        needed = only(found, paths.values())
        wanted = WantedRewrites()
        repairs = {one.path: one for one in repair_found(needed, seen, wanted, jobs=arguments.jobs).files}
        counts: Counter[tuple[str, str]] = Counter()
        for path, absolute in paths.items():
            for entry in broken[path]:
                kind, words = answer(repairs.get(absolute), entry["line"], arguments.rule)
                if arguments.rule and kind == "not reported":
                    continue
                judged = entry.get("rewrite", "case")
                counts[kind, judged] += 1
                if arguments.list:
                    print(f"{kind:12} {judged:6} {path}:{entry['line']}  {words}", flush=True)
        print(f"{data['package']} {data['version']}: {line_of(counts)}", flush=True)
        total += counts
    print(f"all: {line_of(total)}")


def line_of(counts: Counter[tuple[str, str]]) -> str:
    """Offered of all, and each answer by the judgement."""
    offered = sum(number for (kind, _), number in counts.items() if kind in REMOVING)
    every = sum(counts.values())
    kinds = (*REMOVING, "disabled", "declined", "no rewrite", "not reported")
    parts = []
    for kind in kinds:
        by = {judged: counts[kind, judged] for judged in JUDGEMENTS if counts[kind, judged]}
        parts.append(
            f"{kind} {sum(by.values())} ({', '.join(f'{k} {n}' for k, n in by.items())})" if by else f"{kind} 0"
        )
    return f"{offered} of {every} offered = {offered / max(every, 1):.0%}; " + "; ".join(parts)


if __name__ == "__main__":
    main()
