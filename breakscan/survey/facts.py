"""The facts of a command's JSON that reports of surveys need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from breakscan.model.problem import ProblemKind
from breakscan.survey.units import SurveyStage

Report = Mapping[str, Any]


def explain_facts(report: Report) -> dict[str, Any]:
    """Breaks, functions that run eager and recompiles by rule and place, each with the ``seconds`` that it cost, and
    what the run cost."""
    summary, problems = report["summary"], report["problems"]
    functions = (ProblemKind.FUNCTION.value, ProblemKind.FAILURE.value)
    return {
        "breaks": [
            _place(one) | {"verdict": one["verdict"], "gb": one["gb_id"], "seconds": one["cost"]}
            for one in problems
            if one["kind"] == ProblemKind.BREAK.value
        ],
        "eager": [
            _place(one) | {"of_break": one["cause"] == ProblemKind.BREAK.value, "seconds": one["cost"]}
            for one in problems
            if one["kind"] in functions and one["verdict"] is not None
        ],
        "recompiles": [
            _place({**one, "functions": [one["function"]], "reason": one["guard"]}) | {"seconds": one["seconds"]}
            for one in report["recompiles"]
        ],
        "graphs": summary["graphs"],
        "entries": summary["entries"],
        "ops": summary["ops"],
        "compile_seconds": summary["compile_seconds"],
        "seconds": report["script"]["seconds"],
        "files": sorted(report["traced"]),
    }


def _place(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rule": one["rule"],
        "path": one["site"]["path"],
        "line": one["site"]["line"],
        "function": next(iter(one["functions"]), None),
        "origin": one["origin"],
        "reason": one["reason"],
    }


def check_facts(report: Report) -> dict[str, Any]:
    """The number of findings of each rule."""
    return {"by_rule": report["summary"]["by_rule"], "files": report["summary"]["files"]}


def fix_facts(report: Report) -> dict[str, Any]:
    """The number of findings by outcome, and the number that each rewrite would remove."""
    outcomes = dict.fromkeys(FIX_OUTCOMES, 0)
    rewrites: Counter[str] = Counter()
    for file in report["files"]:
        for name in FIX_OUTCOMES:
            outcomes[name] += len(file[name])
        rewrites.update(one["rewrite"] for name in FIX_OUTCOMES[:-2] for one in file[name])
    return {"outcomes": outcomes, "rewrites": dict(rewrites)}


FIX_OUTCOMES = ("safe", "unsafe", "declined", "without")
"""The lists of a file in the JSON of ``fix``; the last two are of findings that stay."""


def verify_facts(report: Report) -> dict[str, Any]:
    """The verdict of each change, and the speed of a step with it."""
    return {
        "proofs": [
            {"label": one["label"], "rewrite": one["rewrite"], "verdict": one["verdict"], "ratio": one["ratio"]}
            for one in report["proofs"]
        ]
    }


def bench_facts(report: Report) -> dict[str, Any]:
    """The speed of each way compared with eager."""
    ways = [{"way": one["way"], "ratio": one["ratio"], "problem": one["problem"]} for one in report["ways"]]
    return {"ways": ways, "best": report["best"]}


FACTS: Mapping[SurveyStage, Callable[[Report], dict[str, Any]]] = {
    SurveyStage.EXPLAIN: explain_facts,
    SurveyStage.CHECK: check_facts,
    SurveyStage.FIX: fix_facts,
    SurveyStage.VERIFY: verify_facts,
    SurveyStage.BENCH: bench_facts,
}
