"""Counts for how many of the breaks that Dynamo recorded ``breakscan fix`` offers a rewrite.

    python benchmarks/repair_offers.py --oracle DIR --site DIR [--packages NAME ...] [--rule ID] [--list]

``--oracle`` has a JSON file per package (``files`` → path → ``breaks``, a list with ``line`` and ``rewrite``: what a
person thought possible), ``--site`` the unpacked packages, as ``NAME-VERSION/``.  For each package, it prints how many
break lines are in a statement that a safe or unsafe rewrite changes, or that a rewrite softens, by that judgement;
``--list`` prints every line with its result.  A line of a generated file counts if a rewrite of the
code that it is made from removes it.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

from breakscan.analysis.pipeline.check import check_paths
from breakscan.config import load_settings
from breakscan.repair.planner import WantedRewrites
from breakscan.repair.repair import repair_found
from breakscan.repair.result import FileRepair

JUDGEMENTS = ("yes", "partly", "no", "case")


def answer(repair: FileRepair | None, line: int, rule: str | None) -> tuple[str, str]:
    """What ``fix`` does about a line: ``safe``, ``unsafe``, ``softening``, ``declined`` and so on."""
    if repair is None:
        return "not reported", ""

    def holds(finding: object) -> bool:
        site = finding.site  # type: ignore[attr-defined]
        return bool(site.line <= line <= site.end_line and (rule is None or finding.rule == rule))  # type: ignore[attr-defined]

    for one in repair.applied:
        if holds(one.finding):
            words = f"{one.finding.rule} {one.rewrite}" + (f": {one.difference}" if one.difference else "")
            return ("softening" if one.takes_out else "unsafe" if one.difference else "safe"), words
    for refused in repair.refused:
        if holds(refused.finding) and (fix := refused.at_origin) is not None:
            words = f"{fix.finding.rule} {fix.rewrite} at {fix.finding.site.path}:{fix.finding.site.line}"
            return ("unsafe" if fix.difference else "safe"), f"{words}: {fix.difference or 'safe'}"
        if holds(refused.finding):
            return "declined", f"{refused.finding.rule} " + "; ".join(
                f"{one.rewrite}: {one.text}" for one in refused.reasons
            )
    for finding in repair.without:
        if holds(finding):
            return "no rewrite", finding.rule
    return "not reported", ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", type=Path, required=True)
    parser.add_argument("--site", type=Path, required=True)
    parser.add_argument("--packages", nargs="+", default=[""])
    parser.add_argument("--rule")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    total: Counter[tuple[str, str]] = Counter()
    for oracle in sorted(arguments.oracle.glob("*.json")):
        if not any(oracle.stem.startswith(name) for name in arguments.packages):
            continue
        data = json.loads(oracle.read_text(encoding="utf-8"))
        root = arguments.site / f"{data['package']}-{data['version']}"
        broken = {name: found["breaks"] for name, found in data["files"].items() if found["breaks"]}
        paths = {name: (root / name).absolute() for name in broken if (root / name).exists()}
        os.chdir(root)
        settings = replace(load_settings(root, None, target_torch="2.13", no_cache=True), regions="all")
        found = check_paths([*root.rglob("*.py")], settings, jobs=arguments.jobs)
        wanted = WantedRewrites(unsafe=True, soften=True)
        repairs = {one.path: one for one in repair_found(found, settings, wanted, jobs=arguments.jobs).files}
        counts: Counter[tuple[str, str]] = Counter()
        for name, path in paths.items():
            for entry in broken[name]:
                kind, words = answer(repairs.get(path), entry["line"], arguments.rule)
                if arguments.rule and kind == "not reported":
                    continue
                counts[kind, entry["rewrite"]] += 1
                if arguments.list:
                    print(f"{kind:12} {entry['rewrite']:6} {name}:{entry['line']}  {words}", flush=True)
        print(f"{data['package']} {data['version']}: {line_of(counts)}", flush=True)
        total += counts
    print(f"all: {line_of(total)}")


def line_of(counts: Counter[tuple[str, str]]) -> str:
    """Offered of all, and each answer by the judgement."""
    offered = sum(number for (kind, _), number in counts.items() if kind in ("safe", "unsafe"))
    every = sum(counts.values())
    kinds = ("safe", "unsafe", "softening", "declined", "no rewrite", "not reported")
    parts = []
    for kind in kinds:
        by = {judged: counts[kind, judged] for judged in JUDGEMENTS if counts[kind, judged]}
        parts.append(
            f"{kind} {sum(by.values())} ({', '.join(f'{k} {n}' for k, n in by.items())})" if by else f"{kind} 0"
        )
    return f"{offered} of {every} offered = {offered / max(every, 1):.0%}; " + "; ".join(parts)


if __name__ == "__main__":
    main()
