"""The answer of ``explain``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from breakscan.model.findings import Origin
from breakscan.model.problem import ProblemKind, RemedyKind
from breakscan.model.words import counted, duration
from breakscan.report.answers.answer import ExplainAnswer, NextStep, ProblemAnswer, at, more_step, page
from breakscan.rulebook.library import Library

MOST_NOTICES = 3


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
    """All problems that no other one explains, in the order of a report; not the functions that lose nothing."""
    lossless = (ProblemKind.FUNCTION.value, None)
    told = (one for one in report["problems"] if one["cause"] is None and (one["kind"], one["verdict"]) != lossless)
    return list(map(_problem, told))


def _problem(one: Mapping[str, Any]) -> ProblemAnswer:
    remedy = next(iter(one["remedies"]), None)
    return ProblemAnswer(
        at(one["site"]),
        ProblemKind(one["kind"]).words,
        one["what"],
        ". ".join((one["why"], *(text.rstrip(".") for text in one["consequences"]))),
        one["rule"] or one["gb_id"],
        next(iter(one["functions"]), None),
        one["count"],
        f"{duration(one['cost'])} in all" if one["cost"] else None,
        remedy["text"] if remedy else next(iter(one["hints"]), None),
    )


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
    rewritable = [
        one
        for one in report["problems"]
        if one["origin"] == Origin.USER.value and any(r["kind"] == RemedyKind.EDIT.value for r in one["remedies"])
    ]
    if rewritable:
        paths = list(dict.fromkeys(one["site"]["path"] for one in rewritable))
        return NextStep("fix", {"paths": paths}, "shows which of these it can rewrite, as a diff")
    named = next((one.rule for one in found if one.rule and library.get(one.rule)), None)
    if named is not None:
        return NextStep("rule", {"rule": named}, "says what to write instead by hand")
    if found:
        return NextStep("explain", run, "again, once the code is changed as 'instead' says")
    return NextStep("check", {"paths": ["."]}, "finds what this run did not reach: it met no problem")
