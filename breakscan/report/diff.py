"""Two runs compared, from their JSON reports: what has changed, for people, for a pull request, and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TextIO

from breakscan.explanation.lock_file import LOCKED, SEVERITIES, KnownBreak, matched, merged, portable_path
from breakscan.model.findings import Verdict
from breakscan.model.problem import ProblemKind
from breakscan.model.words import place, short_path
from breakscan.report.measured_page import MeasuredPage, PageRow
from breakscan.report.printable import visible

_NUMBERS = {
    "break_sites": "break sites",
    "break_events": "breaks",
    "eager_frames": "eager functions",
    "recompiles": "recompiles",
    "graphs": "graphs",
    "ops": "operations",
}
REPORT_KEYS = ("environment", "script", "summary", "problems")


@dataclass(frozen=True, slots=True)
class RecompileCause:
    """A cause of recompiles: the same change to the same function."""

    path: str
    function: str | None
    rule: str | None
    about: str


@dataclass(frozen=True, slots=True)
class EagerFunction:
    """A function that runs as plain Python, or the part of it after a break."""

    path: str
    function: str
    rest_only: bool


@dataclass(frozen=True, slots=True)
class CauseCounts:
    """Something that was there so often before and is so often after."""

    cause: RecompileCause
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Number:
    """A number of both runs by its key in the reports; ``name`` is for people, ``unit`` empty or ``s``."""

    key: str
    name: str
    before: float
    after: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class ChangedBreak:
    """A break that both runs have, and that is worse, milder, more or less often, or broken for another reason."""

    before: KnownBreak
    after: KnownBreak

    @property
    def is_worse(self) -> bool:
        return SEVERITIES.index(self.after.verdict) > SEVERITIES.index(self.before.verdict)


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs side by side.  ``moved`` holds what is different of the runs themselves, such as their torch."""

    moved: Sequence[str]
    numbers: Sequence[Number]
    new: Sequence[KnownBreak]
    gone: Sequence[KnownBreak]
    changed: Sequence[ChangedBreak]
    causes: Sequence[CauseCounts]
    new_eager: Sequence[EagerFunction]
    gone_eager: Sequence[EagerFunction]

    @property
    def recompiles(self) -> tuple[int, int]:
        """The numbers before and after."""
        return sum(c.before for c in self.causes), sum(c.after for c in self.causes)

    @property
    def regressions(self) -> list[str]:
        """The words for each kind of regression."""
        worse = [change for change in self.changed if change.is_worse]
        before, after = self.recompiles
        found = [
            (len(self.new), "new break site"),
            (len(worse), "worse break site"),
            (after - before, "more recompile"),
            (len(self.new_eager), "new eager function"),
        ]
        return [f"{number} {words}{'' if number == 1 else 's'}" for number, words in found if number > 0]


def is_report(value: object) -> bool:
    """Return True if a JSON value is a report of ``explain``."""
    return isinstance(value, dict) and all(key in value for key in REPORT_KEYS)


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> RunComparison:
    """Compare two reports.  Raises KeyError, TypeError or ValueError for a value that is not a report."""
    sites = matched(_breaks(before), _breaks(after))
    changed = [
        ChangedBreak(old, new)
        for old, new in sites.pairs
        if (old.verdict, old.count, old.kind) != (new.verdict, new.count, new.kind)
    ]
    old, new = _causes(before), _causes(after)
    causes = [CauseCounts(cause, old[cause], new[cause]) for cause in {**new, **old}]
    old_eager, new_eager = _eager(before), _eager(after)
    return RunComparison(
        moved=_moved(before, after),
        numbers=_numbers(before, after),
        new=sites.new,
        gone=sites.gone,
        changed=changed,
        causes=causes,
        new_eager=[frame for frame in new_eager if frame not in old_eager],
        gone_eager=[frame for frame in old_eager if frame not in new_eager],
    )


def _breaks(report: Mapping[str, Any]) -> list[KnownBreak]:
    """The breaks, what stood against exports, and what the compiler does not report."""
    around = [kind.value for kind in LOCKED]
    kinds = (ProblemKind.BREAK.value, ProblemKind.EXPORT.value, *around)
    return merged(
        KnownBreak(
            path=portable_path(one["site"]["path"], None),
            function=next(iter(one["functions"]), None),
            rule=one["rule"],
            gb=one["gb_id"],
            type=one["kind"] if one["kind"] in around else one["gb_type"] or one["reason"],
            code=one["code"] or "",
            verdict=Verdict.SPLITS if one["kind"] in around else Verdict(one["verdict"] or Verdict.RAISES),
            count=1 if one["kind"] in around else one["count"],
            line=one["site"]["line"],
        )
        for one in report["problems"]
        if one["kind"] in kinds
    )


def _causes(report: Mapping[str, Any]) -> Counter[RecompileCause]:
    """Count the recompiles of each cause, which is named after the first function that it recompiled."""
    counts: Counter[RecompileCause] = Counter()
    for one in report["problems"]:
        if one["kind"] == ProblemKind.RECOMPILES.value:
            path, function = portable_path(one["site"]["path"], None), next(iter(one["functions"]), None)
            counts[RecompileCause(path, function, one["rule"], one["reason"] or one["why"])] += one["count"]
    return counts


def _eager(report: Mapping[str, Any]) -> list[EagerFunction]:
    """The functions that are not compiled, those too that breaks explain: each once, in order."""
    kinds = (ProblemKind.FUNCTION.value, ProblemKind.FAILURE.value)
    heads = [
        (one["head"] or {"site": one["site"], "function": next(iter(one["functions"]), "")}, one["rest_only"])
        for one in report["problems"]
        if one["kind"] in kinds and one["verdict"] is not None
    ]
    found = (EagerFunction(portable_path(head["site"]["path"], None), head["function"], rest) for head, rest in heads)
    return list(dict.fromkeys(found))


def _moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    pairs = [
        ("", " ".join(before["script"]["argv"]), " ".join(after["script"]["argv"])),
        ("torch ", before["environment"]["torch"], after["environment"]["torch"]),
        ("Python ", before["environment"]["python"], after["environment"]["python"]),
        ("", before["environment"]["device"], after["environment"]["device"]),
        ("exit status ", before["script"]["exit_status"], after["script"]["exit_status"]),
    ]
    return [f"{name}{_said(old)} → {_said(new)}" for name, old, new in pairs if old != new]


def _said(value: object) -> str:
    return "unknown" if value in (None, "") else str(value)


def _numbers(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Number]:
    old, new = before["summary"], after["summary"]
    numbers = [Number(key, name, old[key], new[key]) for key, name in _NUMBERS.items()]
    seconds = "compile_seconds"
    return [*numbers, Number(seconds, "compile time", old[seconds], new[seconds], "s")]


def diff_page(comparison: RunComparison) -> MeasuredPage:
    """The parts of the report: numbers side by side, then what is new, worse, otherwise changed, and gone."""
    rows = [
        PageRow(one.name, (_amount(one.before, one.unit), _amount(one.after, one.unit)), is_code=False)
        for one in comparison.numbers
    ]
    changes = [(f"{heading}: ", visible(entry)) for heading, entries in _sections(comparison) for entry in entries]
    regressions = ", ".join(comparison.regressions)
    return MeasuredPage(
        "diff",
        f"Regression: {regressions}" if regressions else "No regression",
        ("", "before", "after", ""),
        rows,
        paragraphs=[*(("", visible(one)) for one in comparison.moved), *changes],
    )


def _sections(comparison: RunComparison) -> Iterator[tuple[str, list[str]]]:
    worse = [_changed(change) for change in comparison.changed if change.is_worse]
    other = [_changed(change) for change in comparison.changed if not change.is_worse]
    yield "New graph break", list(map(_entry, comparison.new))
    yield "Worse graph break", worse
    yield "New eager function", list(map(_eager_words, comparison.new_eager))
    yield "More recompiles", [_counted(one) for one in comparison.causes if one.after > one.before]
    yield "Changed graph break", other
    yield "Gone graph break", list(map(_entry, comparison.gone))
    yield "No longer eager", list(map(_eager_words, comparison.gone_eager))
    yield "Fewer recompiles", [_counted(one) for one in comparison.causes if one.after < one.before]


def _entry(one: KnownBreak) -> str:
    times = f" {one.count}×" if one.count > 1 else ""
    return f"{place(one)}  {one.words}{times}  {_kind(one)}{_inside(one)}"


def _changed(change: ChangedBreak) -> str:
    before, after = change.before, change.after
    said = []
    if before.verdict is not after.verdict:
        said.append(f"{before.verdict.words} → {after.verdict.words}")
    if before.count != after.count:
        said.append(f"{before.count}× → {after.count}×")
    if before.kind != after.kind:
        said.append(f"{before.kind} → {after.kind}")
    kind = "" if before.kind != after.kind else f"  {_kind(after)}"
    return f"{place(after)}  {', '.join(said)}{kind}{_inside(after)}"


def _counted(counts: CauseCounts) -> str:
    cause = counts.cause
    rule = f"  {cause.rule}" if cause.rule else ""
    function = cause.function or "a function"
    return f"{short_path(cause.path)}{rule}  {cause.about} in {function}: {counts.before} → {counts.after}"


def _eager_words(function: EagerFunction) -> str:
    part = "the rest of " if function.rest_only else ""
    return f"{short_path(function.path)}  {part}{function.function}"


def _kind(one: KnownBreak) -> str:
    return one.rule or one.gb or one.type


def _inside(one: KnownBreak) -> str:
    """The function and the line that it is in."""
    return f"{f'  in {one.function}' if one.function else ''}{f': {one.code}' if one.code else ''}"


def _amount(value: float, unit: str) -> str:
    return f"{value:.1f} {unit}" if unit else f"{value:,.0f}"


SCHEMA = 1


def write_diff_json(comparison: RunComparison, stream: TextIO) -> None:
    """Writes one JSON object, ASCII only, and a line end."""
    made = {
        "schema": SCHEMA,
        "regressions": comparison.regressions,
        "moved": list(comparison.moved),
        "numbers": {n.key: {"before": n.before, "after": n.after} for n in comparison.numbers},
        "new": [_plain(one) for one in comparison.new],
        "gone": [_plain(one) for one in comparison.gone],
        "changed": [{"before": _plain(c.before), "after": _plain(c.after)} for c in comparison.changed],
        "recompiles": [{**asdict(c.cause), "before": c.before, "after": c.after} for c in comparison.causes],
        "new_eager": [asdict(function) for function in comparison.new_eager],
        "gone_eager": [asdict(function) for function in comparison.gone_eager],
    }
    json.dump(made, stream, indent=2)
    stream.write("\n")


def _plain(one: KnownBreak) -> dict[str, object]:
    return {**asdict(one), "verdict": one.verdict.value}
