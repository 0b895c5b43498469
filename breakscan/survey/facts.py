"""What of a command's JSON a survey keeps beside the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from breakscan.explain.frames import FrameStatus
from breakscan.model.problem import Price
from breakscan.survey.units import SurveyStage

Report = Mapping[str, Any]


def explain_facts(report: Report) -> dict[str, Any]:
    """Breaks, eager functions and recompiles by rule and place, each with the ``seconds`` that it cost, and what the
    run cost.  A function in which nothing was found to compile is none that runs eager: nothing is lost there."""
    summary = report["summary"]
    frames = [one for one in report["frames"] if one["status"] != FrameStatus.PASSED_OVER.value]
    return {
        "breaks": [
            _site(one) | {"verdict": one["verdict"], "gb": one["gb_id"], "seconds": cost_in_all(one["price"])}
            for one in report["breaks"]
        ],
        "eager": [
            _site(one) | {"of_break": one["break_site"] is not None, "seconds": cost_in_all(one["price"])}
            for one in frames
        ],
        "recompiles": [_site(one) | {"seconds": one["seconds"]} for one in report["recompiles"]],
        "graphs": summary["graphs"],
        "entries": summary["entries"],
        "ops": summary["ops"],
        "compile_seconds": summary["compile_seconds"],
        "seconds": report["script"]["seconds"],
        "files": sorted(report["traced"]),
    }


def _site(one: Mapping[str, Any]) -> dict[str, Any]:
    site = one["site"] or {}
    names = {"rule": one["rule"], "path": site.get("path"), "line": site.get("line"), "function": one["function"]}
    return {**names, "origin": one["origin"], "reason": one.get("reason") or one.get("guard")}


def cost_in_all(price: Mapping[str, Any] | None) -> float | None:
    """The seconds of all calls.  None where it is not known: a single pass may have been disturbed."""
    if price is None or price["passes"] < 2:
        return None
    return Price(**{**price, "longest": None}).in_all


def check_facts(report: Report) -> dict[str, Any]:
    """How many findings of each rule."""
    return {"by_rule": report["summary"]["by_rule"], "files": report["summary"]["files"]}


def fix_facts(report: Report) -> dict[str, Any]:
    """How many findings there are by what becomes of them, and how many each rewrite would take away."""
    outcomes = dict.fromkeys(FIX_OUTCOMES, 0)
    rewrites: Counter[str] = Counter()
    for file in report["files"]:
        for name in FIX_OUTCOMES:
            outcomes[name] += len(file[name])
        rewrites.update(one["rewrite"] for name in FIX_OUTCOMES[:-2] for one in file[name])
    return {"outcomes": outcomes, "rewrites": dict(rewrites)}


FIX_OUTCOMES = ("applied", "observed", "unsafe", "softening", "regenerated", "declined", "without")
"""The lists of a file in the JSON of ``fix``; the last two are of findings that stay."""


def verify_facts(report: Report) -> dict[str, Any]:
    """The verdict of each change, and how much faster a step is with it."""
    return {
        "proofs": [
            {"label": one["label"], "rewrite": one["rewrite"], "verdict": one["verdict"], "ratio": one["ratio"]}
            for one in report["proofs"]
        ]
    }


def bench_facts(report: Report) -> dict[str, Any]:
    """The speed of each way beside eager."""
    ways = [{"way": one["way"], "ratio": one["ratio"], "problem": one["problem"]} for one in report["ways"]]
    return {"ways": ways, "best": report["best"]}


FACTS: Mapping[SurveyStage, Callable[[Report], dict[str, Any]]] = {
    SurveyStage.EXPLAIN: explain_facts,
    SurveyStage.CHECK: check_facts,
    SurveyStage.FIX: fix_facts,
    SurveyStage.VERIFY: verify_facts,
    SurveyStage.BENCH: bench_facts,
}
