"""Two runs compared, from their JSON reports: what has changed, for people, for a pull request, and as JSON."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from breakscan.explanation.gates import LOCKED, SEVERITIES, KnownBreak, matched, merged, portable_path
from breakscan.model.findings import Verdict
from breakscan.model.problem import ProblemKind
from breakscan.model.words import counted, place, short_path
from breakscan.report.measured_page import MeasuredPage, PageRow
from breakscan.report.printable import picked, visible, write_json

_SECONDS = "compile_seconds"
_NUMBERS = {
    "break_sites": "break sites",
    "break_events": "breaks",
    "eager_frames": "eager functions",
    "recompiles": "recompiles",
    "graphs": "graphs",
    "ops": "operations",
    _SECONDS: "compile time",
}
"""The numbers of a summary that are compared, with their names."""
REPORT_KEYS = ("environment", "script", "summary", "problems")


@dataclass(frozen=True, slots=True)
class RecompileCause:
    """A cause of recompiles, the same change to the same function, and how often it was there in both runs."""

    path: str
    function: str | None
    rule: str | None
    about: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class EagerFunction:
    """A function that runs as plain Python, or the part of it after a break."""

    path: str
    function: str
    rest_only: bool


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
    numbers: Mapping[str, tuple[float, float]]
    new: Sequence[KnownBreak]
    gone: Sequence[KnownBreak]
    changed: Sequence[ChangedBreak]
    causes: Sequence[RecompileCause]
    new_eager: Sequence[EagerFunction]
    gone_eager: Sequence[EagerFunction]

    @property
    def regressions(self) -> list[str]:
        """The words for each kind of regression."""
        worse = [change for change in self.changed if change.is_worse]
        found = [
            (len(self.new), "new break site"),
            (len(worse), "worse break site"),
            (sum(cause.after - cause.before for cause in self.causes), "more recompile"),
            (len(self.new_eager), "new eager function"),
        ]
        return [counted(number, words) for number, words in found if number > 0]


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
    old_eager, new_eager = _eager(before), _eager(after)
    was, now = before["summary"], after["summary"]
    return RunComparison(
        moved=_moved(before, after),
        numbers={key: (was[key], now[key]) for key in _NUMBERS},
        new=sites.new,
        gone=sites.gone,
        changed=changed,
        causes=[RecompileCause(*cause, old[cause], new[cause]) for cause in {**new, **old}],
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


def _causes(report: Mapping[str, Any]) -> Counter[tuple[str, str | None, str | None, str]]:
    """Count the recompiles of each cause, which is named after the first function that it recompiled."""
    counts: Counter[tuple[str, str | None, str | None, str]] = Counter()
    for one in report["problems"]:
        if one["kind"] == ProblemKind.RECOMPILES.value:
            path, function = portable_path(one["site"]["path"], None), next(iter(one["functions"]), None)
            counts[path, function, one["rule"], one["reason"] or one["why"]] += one["count"]
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


def diff_page(comparison: RunComparison) -> MeasuredPage:
    """The parts of the report: numbers side by side, then what is new, worse, otherwise changed, and gone."""
    rows = [
        PageRow(_NUMBERS[key], tuple(f"{n:.1f} s" if key == _SECONDS else f"{n:,.0f}" for n in both), is_code=False)
        for key, both in comparison.numbers.items()
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
    pairs = zip(*((one.verdict.words, f"{one.count}×", one.kind) for one in (before, after)), strict=True)
    said = [f"{was} → {now}" for was, now in pairs if was != now]
    kind = "" if before.kind != after.kind else f"  {_kind(after)}"
    return f"{place(after)}  {', '.join(said)}{kind}{_inside(after)}"


def _counted(cause: RecompileCause) -> str:
    rule = f"  {cause.rule}" if cause.rule else ""
    function = cause.function or "a function"
    return f"{short_path(cause.path)}{rule}  {cause.about} in {function}: {cause.before} → {cause.after}"


def _eager_words(function: EagerFunction) -> str:
    part = "the rest of " if function.rest_only else ""
    return f"{short_path(function.path)}  {part}{function.function}"


def _kind(one: KnownBreak) -> str:
    return one.rule or one.gb or one.type


def _inside(one: KnownBreak) -> str:
    """The function and the line that it is in."""
    return f"{f'  in {one.function}' if one.function else ''}{f': {one.code}' if one.code else ''}"


SCHEMA = 1


def write_diff_json(comparison: RunComparison, stream: TextIO) -> None:
    made = {
        "schema": SCHEMA,
        **picked(comparison, "regressions moved"),
        "numbers": {key: {"before": was, "after": now} for key, (was, now) in comparison.numbers.items()},
        **picked(comparison, "new gone changed"),
        "recompiles": comparison.causes,
        **picked(comparison, "new_eager gone_eager"),
    }
    write_json(made, stream)
