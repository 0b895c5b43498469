"""The answer of ``check``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from breakscan.model.words import counted
from breakscan.report.answers.answer import CheckAnswer, FindingAnswer, NextStep, at, page
from breakscan.report.answers.words import error_words, more_step
from breakscan.rulebook.library import Library

MOST_PATHS = 10
"""Files that a next step names one by one."""
_SEVERITIES = (("error", "error"), ("warning", "warning"), ("info", "hint"))


def check_answer(
    report: Mapping[str, Any], library: Library, asked: Mapping[str, Any], offset: int, limit: int
) -> CheckAnswer:
    """The answer to a call with the arguments ``asked``, from the JSON of ``check``."""
    found = report["findings"]
    shown, left = page(found, offset, limit)
    rules = dict.fromkeys(one["rule"] for one in shown)
    instead = {rule.id: rule.instead for rule in map(library.get, rules) if rule}
    return CheckAnswer(
        _summary(report),
        [_finding(one) for one in shown],
        instead,
        [error_words(one) for one in report["errors"][:limit]],
        more_step("check", asked, offset + len(shown), left),
        _next(found, asked),
    )


def _summary(report: Mapping[str, Any]) -> str:
    counts = Counter(one["severity"] for one in report["findings"])
    parts = [counted(counts[severity], word) for severity, word in _SEVERITIES if counts[severity]]
    files = counted(report["summary"]["files"], "file")
    versions = " and ".join(dict.fromkeys(target["torch"] for target in report["targets"]))
    known = report["summary"]["known"]
    nothing = "nothing new" if known else "nothing found"
    of_old = f"; {known} known before" if known else ""
    return f"{', '.join(parts) or nothing} in {files}, for torch {versions}{of_old}"


def _finding(one: Mapping[str, Any]) -> FindingAnswer:
    return FindingAnswer(
        at(one["site"]),
        one["rule"],
        one["name"],
        one["severity"],
        one["message"],
        None if one["confidence"] == "certain" else one["confidence"],
        one["function"],
        one["condition"],
        at(one["behind"]) if one["behind"] else None,
        bool(one["rewrites"]),
    )


def _next(found: list[Mapping[str, Any]], asked: Mapping[str, Any]) -> NextStep:
    rewritable = [one for one in found if one["rewrites"]]
    if rewritable:
        paths = list(dict.fromkeys(one["site"]["path"] for one in rewritable))
        arguments = {"paths": paths if len(paths) <= MOST_PATHS else asked.get("paths", ["."])}
        if "select" in asked:
            arguments["select"] = asked["select"]
        return NextStep("fix", arguments, "shows which of these it can rewrite, as a diff")
    if found:
        rule = found[0]["rule"]
        return NextStep("rule", {"rule": rule}, "says why, and what to write instead: there is no rewrite")
    return NextStep(
        "explain", {"program": "PROGRAM"}, "runs a program that compiles this code, and shows what only a run can"
    )
