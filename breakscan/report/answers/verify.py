"""The answer of ``verify``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from breakscan.model.words import counted
from breakscan.report.answers.answer import NextStep, ProofAnswer, VerifyAnswer, at, page
from breakscan.report.answers.words import more_step

MOST_NAMED = 5
ACCEPTED, NO_FASTER, REJECTED = "accepted", "no-faster", "rejected"
_WORDS = {ACCEPTED: "accepted", NO_FASTER: "equal, but no faster", REJECTED: "rejected"}


def verify_answer(
    report: Mapping[str, Any], asked: Mapping[str, Any], ended: str | None, offset: int, limit: int
) -> VerifyAnswer:
    """The answer to a call with the arguments ``asked``, from the JSON of ``verify``; ``ended`` says that a time limit
    ended it."""
    proofs = report["proofs"]
    shown, left = page([_proof(one) for one in proofs], offset, limit)
    return VerifyAnswer(
        _summary(proofs, report, ended),
        shown,
        _not_proved(report),
        report["notes"][:MOST_NAMED],
        more_step("verify", {"last": True}, offset + len(shown), left),
        _next(proofs, asked, report),
    )


def _summary(proofs: Sequence[Mapping[str, Any]], report: Mapping[str, Any], ended: str | None) -> str:
    counts = Counter(one["verdict"] for one in proofs)
    parts = [f"{counts[verdict]} {_WORDS[verdict]}" for verdict in _WORDS if counts[verdict]]
    calls = sum(one["captured"] for one in report["calls"])
    what = f"{counted(len(proofs), 'change')} verified on {counted(calls, 'captured call')}"
    said = f"{what}{': ' if parts else ''}{', '.join(parts)}"
    written = f"wrote {', '.join(report['applied'])}" if report["applied"] else None
    return "; ".join(filter(None, (said, written, report["not_applied"], ended)))


def _proof(one: Mapping[str, Any]) -> ProofAnswer:
    breaks = one["breaks"]
    after = breaks["after"]
    cautions = [said["says"] for key in ("unseen", "stressed_outcomes", "stress") for said in one[key]]
    cautions += one["reasons"][1:]
    rule = " ".join(filter(None, (one["rule"], one["rewrite"]))) or None
    return ProofAnswer(
        one["label"],
        one["verdict"],
        one["says"],
        at(one["site"]) if one["site"] else None,
        rule,
        None if after is None else f"{breaks['before']} → {after}",
        list(dict.fromkeys(cautions))[:MOST_NAMED],
    )


def _not_proved(report: Mapping[str, Any]) -> list[str]:
    parts = [("not reached by this run", report["unreached"]), ("without a rewrite", report["declined"])]
    return [
        f"{words}: {', '.join(names[:MOST_NAMED])}{f' and {len(names) - MOST_NAMED} more' * (len(names) > MOST_NAMED)}"
        for words, names in parts
        if names
    ]


def _next(proofs: Sequence[Mapping[str, Any]], asked: Mapping[str, Any], report: Mapping[str, Any]) -> NextStep:
    run = {key: asked[key] for key in ("program", "as_module", "arguments", "compile") if key in asked}
    again = {key: value for key, value in asked.items() if key not in ("offset", "limit")}
    accepted = [one for one in proofs if one["verdict"] == ACCEPTED]
    cautious = [one for one in accepted if one["unseen"] or one["stressed_outcomes"] or one["stress"]]
    if asked.get("patch") is not None:
        if accepted and not cautious:
            return NextStep("check", {"paths": ["."]}, "once you have applied the patch, which was accepted")
        return NextStep("verify", run, "with a patch that is changed as the reasons say")
    if report["applied"]:
        return NextStep("check", {"paths": list(report["applied"])}, "shows what is left; then run the project's tests")
    if accepted and not cautious:
        return NextStep("verify", {**again, "write": True}, "verifies once more, and writes what is accepted")
    if accepted:
        paths = list(dict.fromkeys(one["site"]["path"] for one in proofs if one["site"])) or ["."]
        why = "shows the diff; see the caution of each: the calls of this run do not show that all is equal"
        return NextStep("fix", {"paths": paths, "unsafe": True}, why)
    if proofs:
        return NextStep("explain", run, "what costs most is elsewhere: no change was accepted")
    return NextStep("explain", run, "shows what broke in this run: no rewrite applies to it")
