"""The answer of ``rule``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from breakscan.report.answers.answer import NextStep, RuleAnswer
from breakscan.rulebook.document import Example

_MODES = ("default", "export", "export-strict")


def rule_answer(report: Mapping[str, Any], examples: Sequence[Example]) -> RuleAnswer:
    """The answer from the JSON of ``rule`` and the examples of its document."""
    breaks = next(one.source.strip() for one in examples if one.breaks)
    compiles = next((one.source.strip() for one in examples if not one.breaks), None)
    why = "finds it in the project; fix shows a diff" if report["rewrites"] else "finds it in the project"
    return RuleAnswer(
        report["rule"],
        report["name"],
        report["summary"],
        report["why"],
        report["instead"],
        breaks,
        compiles,
        _verdicts(report),
        report["rewrites"],
        NextStep("check", {"select": [report["rule"]]}, why),
    )


def _verdicts(report: Mapping[str, Any]) -> dict[str, str]:
    """``{"2.11, 2.13": "plain: splits; loop, try, with: eager"}``: what versions do alike stands together."""
    rulings = [one for one in report["verdicts"] if one["example"].startswith("breaks/")]
    mode = next((mode for mode in _MODES if any(one["mode"] == mode for one in rulings)), None)
    by_torch: dict[str, dict[str, list[str]]] = {}
    for one in rulings:
        if one["mode"] == mode:
            verdicts = by_torch.setdefault(one["torch"], {}).setdefault(one["place"], [])
            verdicts += [] if one["verdict"] in verdicts else [one["verdict"]]
    alike: dict[str, list[str]] = {}
    for torch, places in by_torch.items():
        alike.setdefault(_words(places), []).insert(0, torch)
    return {", ".join(versions): words for words, versions in alike.items()}


def _words(places: Mapping[str, list[str]]) -> str:
    by_verdict: dict[str, list[str]] = {}
    for place, verdicts in places.items():
        by_verdict.setdefault(" or ".join(verdicts), []).append(place)
    if len(by_verdict) == 1:
        return next(iter(by_verdict))
    return "; ".join(f"{', '.join(names)}: {verdict}" for verdict, names in by_verdict.items())
