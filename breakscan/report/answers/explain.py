"""The answer of ``explain``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from breakscan.model.words import counted, duration, seconds_in_words
from breakscan.report.answers.answer import ExplainAnswer, NextStep, ProblemAnswer, at, more_step, page
from breakscan.rulebook.library import Library

MOST_NOTICES = 3
BREAK, NOT_COMPILED, RECOMPILED, RAN_EAGER, EXPORT = (
    "graph break",
    "not compiled",
    "recompiled",
    "calls that ran eager",
    "export problem",
)
_EFFECTS = {"splits": "splits the graph", "eager": "the function runs eager", "raises": "torch.compile raises"}
_PASSED_OVER = "passed-over"


def explain_answer(
    report: Mapping[str, Any],
    library: Library,
    asked: Mapping[str, Any],
    ended: str,
    output: str | None,
    offset: int,
    limit: int,
) -> ExplainAnswer:
    """The answer to a call with the arguments ``asked``, from the JSON of ``explain``."""
    found = problems(report)
    shown, left = page(found, offset, limit)
    notices = report["notices"][:MOST_NOTICES]
    # What is left is read from the last run: the program does not run again.
    more = more_step("explain", {"last": True}, offset + len(shown), left)
    return ExplainAnswer(
        _summary(report), ended, shown, notices, output, more, _next(found, report, library, asked, output)
    )


def problems(report: Mapping[str, Any]) -> list[ProblemAnswer]:
    """All problems: what raises first, then what cost the run most."""
    found = [*_breaks(report), *_frames(report), *_causes(report), *_eager_calls(report), *_exports(report)]
    found.sort(key=lambda one: (-one[0], -one[1]))
    return [one for _, _, one in found]


_Ranked = tuple[bool, float, ProblemAnswer]


def _summary(report: Mapping[str, Any]) -> str:
    counts = report["summary"]
    parts = [
        counted(counts["break_sites"], "graph break"),
        f"{counted(counts['recompiles'], 'recompile')} of {counted(counts['causes'], 'cause')}"
        if counts["recompiles"]
        else "",
        counted(len(report["frames"]), "function that is not compiled", "functions that are not compiled")
        if report["frames"]
        else "",
        counted(counts["export_failures"], "export problem") if counts["export_failures"] else "",
        counted(counts["graphs"], "graph"),
    ]
    torch = report["environment"]["torch"]
    return f"{', '.join(filter(None, parts))}{f', torch {torch}' if torch else ''}"


def _breaks(report: Mapping[str, Any]) -> Iterator[_Ranked]:
    for one in report["breaks"]:
        effect = _EFFECTS.get(one["verdict"], one["verdict"])
        why = one["gb_type"] if one["reason"] == one["gb_type"] else f"{one['gb_type']}: {one['reason']}"
        cost = _cost(one["price"])
        yield (
            one["verdict"] == "raises",
            cost,
            ProblemAnswer(
                at(one["site"]),
                BREAK,
                effect,
                why,
                one["rule"] or one["gb_id"],
                one["function"],
                one["count"],
                _cost_words(one["price"]),
                one["advice"] or next(iter(one["hints"]), None),
            ),
        )


def _frames(report: Mapping[str, Any]) -> Iterator[_Ranked]:
    """The functions that are not compiled; those that a break explains are told of there."""
    for one in report["frames"]:
        if one["break_site"] is not None or one["status"] == _PASSED_OVER:
            continue
        raised = one["status"] == "raised"
        yield (
            raised,
            _cost(one["price"]),
            ProblemAnswer(
                at(one["failed_at"] or one["site"]),
                NOT_COMPILED,
                _EFFECTS["raises"] if raised else _EFFECTS["eager"],
                one["reason"],
                one["rule"] or one["gb_id"],
                one["function"],
                one["count"],
                _cost_words(one["price"]),
                one["advice"],
            ),
        )


def _causes(report: Mapping[str, Any]) -> Iterator[_Ranked]:
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for one in report["recompiles"]:
        groups.setdefault(one["cause"], []).append(one)
    for group in groups.values():
        first, last = group[0], group[-1]
        seconds = sum(one["seconds"] for one in group)
        changed = f": {first['subject']} was {first['old']}, then {last['new']}" if first["old"] else ""
        yield (
            False,
            seconds,
            ProblemAnswer(
                at(first["site"]),
                RECOMPILED,
                f"compiles again, {seconds_in_words(seconds)}",
                f"{first['guard']}{changed}",
                first["rule"],
                first["function"],
                len(group),
                None,
                first["advice"],
            ),
        )


def _eager_calls(report: Mapping[str, Any]) -> Iterator[_Ranked]:
    told = {one["function"] for one in report["frames"]}
    for one in report["eager_calls"]:
        if one["function"] not in told:
            reason, place = one["reason"], at(one["site"])
            problem = ProblemAnswer(
                place, RAN_EAGER, _EFFECTS["eager"], reason, None, one["function"], one["calls"], None, one["advice"]
            )
            yield False, 0.0, problem


def _exports(report: Mapping[str, Any]) -> Iterator[_Ranked]:
    for one in report["export_failures"]:
        effect = "the export fails" if one["fatal"] else "the export is for some inputs only"
        rule = one["rule"] or one["gb_id"]
        problem = ProblemAnswer(
            at(one["site"]),
            EXPORT,
            effect,
            one["reason"],
            rule,
            one["function"],
            one["count"],
            None,
            one["advice"] or next(iter((*one["fixes"], *one["hints"])), None),
        )
        yield one["fatal"], 0.0, problem


def _cost(price: Mapping[str, Any] | None) -> float:
    return 0.0 if price is None else price["host_seconds"] * price["passes"] + price["compile_seconds"]


def _cost_words(price: Mapping[str, Any] | None) -> str | None:
    if price is None:
        return None
    once = f", and {duration(price['compile_seconds'])} of compiling" if price["compile_seconds"] else ""
    return f"{duration(price['host_seconds'])} × {price['passes']}{once}"


def _next(
    found: Sequence[ProblemAnswer],
    report: Mapping[str, Any],
    library: Library,
    asked: Mapping[str, Any],
    output: str | None,
) -> NextStep:
    run = {key: asked[key] for key in ("program", "as_module", "arguments", "compile") if key in asked}
    if output is not None and not found:
        return NextStep("explain", run, "again, once the program runs: see its output")
    users = {at(one["site"]) for key in ("breaks", "frames") for one in report[key] if one["origin"] == "user"}
    rules = {one.rule: library.get(one.rule) for one in found if one.rule}
    rewritable = [one for one in found if one.at in users and (rule := rules.get(one.rule or "")) and rule.rewrites]
    if rewritable:
        paths = list(dict.fromkeys(one.at.partition(":")[0] for one in rewritable))
        return NextStep("fix", {"paths": paths}, "shows which of these it can rewrite, as a diff")
    named = next((one.rule for one in found if rules.get(one.rule or "")), None)
    if named is not None:
        return NextStep("rule", {"rule": named}, "says what to write instead by hand")
    if found:
        return NextStep("explain", run, "again, once the code is changed as 'instead' says")
    return NextStep("check", {"paths": ["."]}, "finds what this run did not reach: it met no problem")
