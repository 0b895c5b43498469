"""Two copies of a package, as it is and with edits, and what a driver's calls do on either side."""

from __future__ import annotations

import ast
import contextlib
import difflib
import itertools
import math
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.driven_edits.run_calls import Label, NotRun, Ran, Request, Why
from benchmarks.driven_edits.variants import VARIANTS
from benchmarks.rewrite_fuzzer.effects import CALLS, unstated
from benchmarks.rewrite_fuzzer.outcomes import RAISED, Line, difference_kinds
from breakscan.fix.planner import WantedRewrites
from breakscan.fix.repair import repair_paths
from breakscan.fix.result import Applied, FileRepair
from breakscan.fix.support.difference import Effect, effects_of
from breakscan.rulebook.config import load_settings

REPOSITORY = Path(__file__).resolve().parents[2]
Answers = dict[Label, Ran | NotRun]
LOADING: Label = ("the driver", "when it is loaded")


class CannotLoadError(Exception):
    """The driver, or the package that it imports, raises or crashes when it is loaded."""


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
    """What was found for a package. ``unsteady`` calls differ anyway."""

    files: int = 0
    edits: int = 0
    reached: set[str] = field(default_factory=set)
    """The places of the edits whose statements ran."""
    unreached: list[str] = field(default_factory=list)
    calls: int = 0
    outcomes: int = 0
    returned: int = 0
    """The outcomes of both calls without an exception."""
    unsteady: int = 0
    differences: list[Difference] = field(default_factory=list)
    not_run: dict[NotRun, list[Label]] = field(default_factory=lambda: defaultdict(list))
    """The calls that have no outcome on one of the sides, by the reason."""

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

    def run(self, side: str, variants: Sequence[str], calls: Collection[str] | None = None) -> Answers:
        """Runs calls of the driver (None: all) on a side, as long as there is time. Raises CannotLoadError."""
        wanted = None if calls is None else frozenset(calls)
        return self._run(side, Request(str(self.driver), (), tuple(variants), self.seconds, wanted, self.before))

    def run_again(self, side: str, before: Answers, calls: Collection[str]) -> Answers:
        """Runs on a side what has an outcome in ``before``, however long it takes. Raises CannotLoadError."""
        without = frozenset(label for label, ran in before.items() if isinstance(ran, NotRun))
        wanted = frozenset(calls)
        request = Request(str(self.driver), (), VARIANTS, math.inf, wanted, self.before, done=without)
        return self._run(side, request)

    def _run(self, side: str, request: Request) -> Answers:
        """Runs what is asked for in a process of its own.

        If a call ends the process, the rest runs in another one, without this call.
        """
        request = replace(request, files=tuple(str(self.folder / side / name) for name in self.repairs))
        found: Answers = {}
        while True:
            process, records = self._process(side, request)
            finished = [one for one in records if len(one) == 3]
            found |= {label: answer for label, answer, _ in finished}
            begun = next((one for one in records[-1:] if len(one) == 2), None)
            if begun is None:
                if process.returncode:
                    raise CannotLoadError(_last_lines(process.stderr))
                return found
            found[begun] = NotRun(Why.CRASHED, _end_of(process))
            request = replace(
                request,
                seconds=request.seconds - max((spent for _, _, spent in finished), default=0),
                done=request.done | frozenset(found),
                skipped=request.skipped | {begun[0]},
            )

    def _process(self, side: str, request: Request) -> tuple[subprocess.CompletedProcess[str], list[Any]]:
        asked, answered = self.folder / "request", self.folder / "answers"
        asked.write_bytes(pickle.dumps(request))
        answered.unlink(missing_ok=True)
        paths = [str(self.folder / side), str(REPOSITORY), *map(str, self.paths), str(self.driver.parent)]
        steady = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
        environment = os.environ | steady | {"PYTHONPATH": os.pathsep.join(paths)}
        options = ["-X", "faulthandler", "-m", "benchmarks.driven_edits.run_calls", str(asked), str(answered)]
        process = subprocess.run(
            [sys.executable, *options], env=environment, cwd=self.folder, capture_output=True, text=True
        )
        return process, list(_records(answered))

    def edits_in(self, ran: Ran) -> dict[str, Applied]:
        """The edits whose statements a call executed on the side ``before``, by their places."""
        return {place: edit for place, (lines, edit) in self._edits.items() if not lines.isdisjoint(ran.executed)}

    def unreached(self, answers: Answers) -> list[str]:
        """The places of the edits whose statements no call executed."""
        reached = {place for ran in answers.values() if isinstance(ran, Ran) for place in self.edits_in(ran)}
        return [place for place in self._edits if place not in reached]

    @cached_property
    def _edits(self) -> dict[str, tuple[frozenset[Line], Applied]]:
        """The lines of the statement of each edit, and of those in ``__init__`` behind which it adds some, by place."""
        found: dict[str, tuple[frozenset[Line], Applied]] = {}
        for name, repair in self.repairs.items():
            file = str(self.folder / "before" / name)
            tree = ast.parse(repair.before)
            statements = list(_statements(tree))
            added = _added_behind(repair.before, repair.after)
            for one in repair.applied:
                line = one.finding.site.line
                constructor = _constructor(tree, line)
                around = {
                    number
                    for start in (line, *(one for one in added if one in constructor))
                    for number in min((lines for lines in statements if start in lines), key=len, default=(start,))
                }
                place = f"{name}:{line} {one.rewrite}"
                names = itertools.chain([place], (f"{place} {number}" for number in itertools.count(2)))
                free = next(name for name in names if name not in found)
                found[free] = frozenset((file, number) for number in around), one
        return found


def _added_behind(before: str, after: str) -> list[int]:
    """The lines behind which others were added, and none replaced."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return [start for kind, start, *_ in matcher.get_opcodes() if kind == "insert"]


def _constructor(tree: ast.Module, line: int) -> range:
    """The lines of ``__init__`` of the class around a line: some edits make there what they use."""
    classes = [
        one for one in ast.walk(tree) if isinstance(one, ast.ClassDef) and one.lineno <= line <= max(_lines(one))
    ]
    for owner in sorted(classes, key=lambda one: -one.lineno):
        for one in owner.body:
            if isinstance(one, ast.FunctionDef) and one.name == "__init__":
                return range(one.lineno, max(_lines(one)) + 1)
    return range(0)


def _statements(tree: ast.Module) -> Iterator[range]:
    """The lines of each statement; of a compound one, those before its body."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            end = min(_lines(body[0])) if body else max(_lines(node)) + 1
            first = min(_lines(node))
            yield range(first, max(end, first + 1))


def _lines(node: ast.AST) -> Iterator[int]:
    for one in ast.walk(node):
        if isinstance(one, ast.stmt | ast.expr | ast.pattern):
            yield from (one.lineno, one.end_lineno or one.lineno)


def _records(path: Path) -> Iterator[Any]:
    """What a process wrote before it ended."""
    if not path.exists():
        return
    with path.open("rb") as stream, contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            yield pickle.load(stream)


def _end_of(process: subprocess.CompletedProcess[str]) -> str:
    code = process.returncode
    if code >= 0:
        return f"exit status {code}: {_last_lines(process.stderr)}"
    return f"{signal.Signals(-code).name}: {_innermost(process.stderr)}"


def _innermost(text: str) -> str:
    """The innermost frames that the handler of a signal wrote."""
    return " < ".join([line.strip() for line in text.splitlines() if line.startswith("  File ")][:3])


def _last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-12:])


def make_sides(package: Path, folder: Path, driver: Path, *, unsafe: bool, jobs: int = 1, **options: Any) -> Sides:
    """Copies a package and applies all safe edits, or all, to one of the copies, by ``jobs`` processes."""
    for side in ("before", "after"):
        shutil.copytree(package, folder / side / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    root = folder / "before"
    settings = replace(load_settings(root, None, target_torch="2.13", no_cache=True), regions="all")
    repair = repair_paths(sorted(root.rglob("*.py")), settings, WantedRewrites(unsafe, soften=False), jobs=jobs)
    repairs = {str(one.path.relative_to(root)): one for one in repair.files if one.changed}
    for name, one in repairs.items():
        (folder / "after" / name).write_text(one.after, encoding="utf-8")
    return Sides(folder, driver, repairs, **options)


def compared(sides: Sides) -> Result:
    """Drives both sides with the calls that reach an edit. Raises CannotLoadError if the unchanged package fails."""
    result = Result(len(sides.repairs), sum(len(one.applied) for one in sides.repairs.values()))
    if not sides.repairs:
        return result
    before = sides.run("before", VARIANTS[:1])
    reaching = _reaching(sides, before)
    # Those that reach an edit come first; the others may do so with other inputs.
    for calls in (reaching, {name for (name, _), ran in before.items() if isinstance(ran, Ran)} - reaching):
        before |= sides.run("before", VARIANTS[1:], calls) if calls else {}
    reaching = _reaching(sides, before)
    result.calls = len(reaching)
    result.unreached = sides.unreached(before)
    try:
        after = sides.run_again("after", before, reaching)
    except CannotLoadError as error:
        result.differences.append(Difference(LOADING, False, {"exception": (None, str(error))}, ()))
        return result
    for label, old in before.items():
        if isinstance(old, NotRun):
            result.not_run[old].append(label)
        elif label[0] in reaching:
            _compare(sides, label, old, after[label], result)
    _drop_unsteady(sides, before, result)
    return result


def _reaching(sides: Sides, answers: Answers) -> set[str]:
    """The calls that reach an edit."""
    return {name for (name, _), ran in answers.items() if isinstance(ran, Ran) and sides.edits_in(ran)}


def _compare(sides: Sides, label: Label, old: Ran, new: Ran | NotRun, result: Result) -> None:
    edits = sides.edits_in(old)
    result.reached.update(edits)
    if isinstance(new, NotRun):
        if new.why in (Why.CRASHED, Why.NOT_BUILT):
            result.differences.append(Difference(label, False, {new.why.value: (None, new.detail)}, tuple(edits)))
        else:
            result.not_run[new].append(label)
        return
    result.outcomes += 1
    result.returned += not any(kind.startswith("exception") for kind in old.outcome)
    if found := judged(label, old, new, edits):
        result.differences.append(found)


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


def _drop_unsteady(sides: Sides, before: Answers, result: Result) -> None:
    """Drops what differs in a second run of the unchanged package, too, unless an edit states exactly that."""
    doubtful = [one for one in result.differences if not one.stated or one.assumed]
    if not doubtful:
        return
    again = sides.run_again("before", before, {one.label[0] for one in doubtful})
    unsteady = [one for one in doubtful if _varies(one, before[one.label], again.get(one.label))]
    result.unsteady = len(unsteady)
    result.differences = [one for one in result.differences if one not in unsteady]


def _varies(difference: Difference, first: Ran | NotRun, second: Ran | NotRun | None) -> bool:
    if isinstance(first, Ran) and isinstance(second, Ran):
        return bool(difference_kinds(first.outcome, second.outcome).keys() & difference.kinds.keys())
    return isinstance(second, NotRun) and second.why.value in difference.kinds
