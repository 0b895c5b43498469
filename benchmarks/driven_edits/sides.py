"""Two copies of a package, as it is and with edits, and what a driver's calls do on either side."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.driven_edits.run_calls import Ran, Request
from benchmarks.driven_edits.variants import VARIANTS
from benchmarks.rewrite_fuzzer.effects import CALLS, unstated
from benchmarks.rewrite_fuzzer.outcomes import RAISED, difference_kinds
from breakscan.config import load_settings
from breakscan.repair.planner import WantedRewrites
from breakscan.repair.repair import repair_paths
from breakscan.repair.result import Applied, FileRepair
from breakscan.rewrite_support.difference import Effect, effects_of

REPOSITORY = Path(__file__).resolve().parents[2]
Label = tuple[str, str]
"""The name of a call and a variant of its inputs."""


@dataclass(frozen=True)
class Difference:
    """What differs in one call, as the edits that it reached state or not."""

    label: Label
    stated: bool
    kinds: Mapping[str, tuple[Any, Any]]
    edits: tuple[str, ...]
    assumed: bool = False
    """Whether only an assumption states it, such as that a value is a plain tensor: without it, anything may differ."""


@dataclass
class Result:
    """What was found for a package. ``reached`` are edits in functions that ran; ``unsteady`` calls differ anyway."""

    files: int = 0
    edits: int = 0
    reached: set[str] = field(default_factory=set)
    calls: int = 0
    outcomes: int = 0
    returned: int = 0
    """The outcomes of both calls without an exception."""
    unsteady: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def faults(self) -> list[Difference]:
        return [one for one in self.differences if not one.stated]


@dataclass(frozen=True)
class Sides:
    """The copies ``before`` and ``after`` in a folder, and what was edited in which file."""

    folder: Path
    driver: Path
    repairs: Mapping[str, FileRepair]
    paths: Sequence[Path] = ()
    before: tuple[str, ...] = ()
    seconds: float = 60

    def run(self, side: str, variants: Sequence[str], calls: Collection[str] | None = None) -> dict[Label, Ran]:
        """Runs calls of the driver on a side, in a process of their own."""
        files = tuple(str(self.folder / side / name) for name in self.repairs)
        wanted = None if calls is None else frozenset(calls)
        request = Request(str(self.driver), files, tuple(variants), self.seconds, wanted, self.before)
        asked, answered = self.folder / "request", self.folder / "outcomes"
        asked.write_bytes(pickle.dumps(request))
        paths = [str(self.folder / side), str(REPOSITORY), *map(str, self.paths), str(self.driver.parent)]
        steady = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
        environment = os.environ | steady | {"PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", "benchmarks.driven_edits.run_calls", str(asked), str(answered)]
        subprocess.run(command, env=environment, cwd=self.folder, check=True, capture_output=True, text=True)
        found: dict[Label, Ran] = pickle.loads(answered.read_bytes())
        return found

    def edits_in(self, ran: Ran) -> dict[str, Applied]:
        """The edits in functions that a call entered on the side ``before``, by their places."""
        found = {}
        for name, repair in self.repairs.items():
            spans = [(first, last) for file, first, last in ran.entered if file == str(self.folder / "before" / name)]
            for one in repair.applied:
                line = one.finding.site.line
                if any(first <= line <= last for first, last in spans):
                    found[f"{name}:{line} {one.rewrite}"] = one
        return found


def make_sides(package: Path, folder: Path, driver: Path, *, unsafe: bool, **options: Any) -> Sides:
    """Copies a package and applies all safe edits, or all, to one of the copies."""
    for side in ("before", "after"):
        shutil.copytree(package, folder / side / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    root = folder / "before"
    settings = replace(load_settings(root, None, target_torch="2.13", no_cache=True), regions="all")
    repair = repair_paths(sorted(root.rglob("*.py")), settings, WantedRewrites(unsafe, soften=False), jobs=1)
    repairs = {str(one.path.relative_to(root)): one for one in repair.files if one.changed}
    for name, one in repairs.items():
        (folder / "after" / name).write_text(one.after, encoding="utf-8")
    return Sides(folder, driver, repairs, **options)


def compared(sides: Sides) -> Result:
    """Drives both sides with the calls that reach an edit."""
    result = Result(len(sides.repairs), sum(len(one.applied) for one in sides.repairs.values()))
    if not sides.repairs:
        return result
    reaching = set()
    for (name, _), ran in sides.run("before", VARIANTS[:1]).items():
        if edits := sides.edits_in(ran):
            reaching.add(name)
            result.reached.update(edits)
    result.calls = len(reaching)
    if not reaching:
        return result
    before, after = (sides.run(side, VARIANTS, reaching) for side in ("before", "after"))
    for label in before.keys() & after.keys():
        edits = sides.edits_in(before[label])
        result.reached.update(edits)
        result.outcomes += 1
        result.returned += not any(kind.startswith("exception") for kind in before[label].outcome)
        if found := judged(label, before[label], after[label], edits):
            result.differences.append(found)
    _drop_unsteady(sides, before, result)
    return result


def judged(label: Label, before: Ran, after: Ran, edits: Mapping[str, Applied]) -> Difference | None:
    """What differs, and whether the edits state it: by the kind of what differs, as the fuzzer of the rewrites does."""
    old, new = before.outcome, after.outcome
    kinds = difference_kinds(old, new)
    if not kinds:
        return None
    stated = [one for edit in edits.values() for one in edit.differences if one.only is None]
    exactly = [one for one in stated if one.effects != frozenset(Effect)]
    raised = {call: (old[RAISED.format(call)], new[RAISED.format(call)]) for call in CALLS}
    other, inexact = (unstated(kinds, effects_of(by), raised) for by in (stated, exactly))
    return Difference(label, not other, other or inexact or kinds, tuple(edits), assumed=bool(inexact) and not other)


def _drop_unsteady(sides: Sides, before: Mapping[Label, Ran], result: Result) -> None:
    """Drops what differs in a second run of the unchanged package, too."""
    if not result.faults:
        return
    again = sides.run("before", VARIANTS, {one.label[0] for one in result.faults})
    kept = []
    for one in result.differences:
        once_more = again.get(one.label, before[one.label])
        varies = difference_kinds(before[one.label].outcome, once_more.outcome).keys()
        if one.stated or not varies & one.kinds.keys():
            kept.append(one)
    result.unsteady = len(result.differences) - len(kept)
    result.differences = kept
