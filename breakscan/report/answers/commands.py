"""Answers of ``check``, ``fix``, ``verify`` and ``rule``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from breakscan.model.findings import Mode
from breakscan.model.words import counted, grouped_reasons
from breakscan.report.answers.answer import (
    CheckAnswer,
    EditAnswer,
    FileDiff,
    FindingAnswer,
    FixAnswer,
    NextStep,
    ProofAnswer,
    RuleAnswer,
    VerifyAnswer,
    at,
    error_words,
    more_step,
    page,
)
from breakscan.rulebook.document import Example
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
    instead = {one["rule"]: rule.instead_in(Mode(one["mode"])) for one in shown if (rule := library.get(one["rule"]))}
    return CheckAnswer(
        _check_summary(report),
        [_finding(one) for one in shown],
        instead,
        [error_words(one) for one in report["errors"][:limit]],
        more_step("check", asked, offset + len(shown), left),
        _after_check(found, asked),
    )


def _check_summary(report: Mapping[str, Any]) -> str:
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


def _after_check(found: list[Mapping[str, Any]], asked: Mapping[str, Any]) -> NextStep:
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


MOST_LINES = 240
"""Lines of diffs in an answer."""
_DONE = "applied"
_REWRITES = {
    "unsafe": "only with unsafe",
}
"""The outcomes that have a rewrite which was not asked for, as the JSON of ``fix`` names them."""


def fix_answer(report: Mapping[str, Any], asked: Mapping[str, Any], offset: int, limit: int) -> FixAnswer:
    """The answer to a call with the arguments ``asked``, from the JSON of ``fix``."""
    files = report["files"]
    edits = [edit for file in files for edit in _edits(file)]
    shown, left = page(edits, offset, limit)
    written = any(file["written"] for file in files)
    paths = {one.at.partition(":")[0] for one in shown}
    return FixAnswer(
        _fix_summary(edits, report, written),
        written,
        [] if written else _diffs([file for file in files if file["changed"] and file["path"] in paths]),
        shown,
        [error_words(one) for one in report["errors"][:limit]],
        more_step("fix", {**asked, "write": False} if "write" in asked else asked, offset + len(shown), left),
        _after_fix(edits, asked, written),
    )


def _fix_summary(edits: Sequence[EditAnswer], report: Mapping[str, Any], written: bool) -> str:
    counts = Counter(edit.outcome for edit in edits)
    words = {_DONE: "rewritten" if written else "can be rewritten; no file is changed yet", **_REWRITES}
    parts = [f"{counts[outcome]} {words[outcome]}" for outcome in words if counts[outcome]]
    if stay := len(edits) - sum(counts[outcome] for outcome in words):
        parts.append(f"{stay} stay")
    files = counted(report["summary"]["files"], "file")
    return f"{counted(len(edits), 'finding')} in {files}{': ' if parts else ''}{', '.join(parts)}"


def _edits(file: Mapping[str, Any]) -> Iterator[EditAnswer]:
    """In the order of the JSON, with its names of outcomes."""
    for outcome in (_DONE, *_REWRITES):
        for one in file[outcome]:
            remains = f"still breaks if {one['remains']}" if one["remains"] else None
            yield _edit(one["finding"], outcome, "; ".join(filter(None, (one["difference"], remains))), one["rewrite"])
    for one in file["declined"]:
        near = [reason for reason in one["reasons"] if reason["near"]] or one["reasons"]
        yield _edit(
            one["finding"], "declined", grouped_reasons((reason["rewrite"], reason["reason"]) for reason in near)
        )
    for finding in file["without"]:
        yield _edit(finding, "without", "no rewrite is known")


def _edit(finding: Mapping[str, Any], outcome: str, note: str, rewrite: str | None = None) -> EditAnswer:
    return EditAnswer(at(finding["site"]), finding["rule"], outcome, rewrite, note or None)


def _diffs(files: Sequence[Mapping[str, Any]]) -> list[FileDiff]:
    """The diffs of some files, as far as there is room for them: each is cut between lines."""
    made, room = [], MOST_LINES
    for file in files:
        lines = file["diff"].splitlines(keepends=True)
        kept = lines[:room]
        room -= len(kept)
        if kept:
            made.append(FileDiff(file["path"], "".join(kept), len(lines) - len(kept) or None))
    return made


def _after_fix(found: Sequence[EditAnswer], asked: Mapping[str, Any], written: bool) -> NextStep:
    again = {key: value for key, value in asked.items() if key not in ("offset", "limit")}
    outcomes = {one.outcome for one in found}
    if written:
        paths = list(dict.fromkeys(one.at.partition(":")[0] for one in found if one.outcome == _DONE))
        return NextStep("check", {"paths": paths}, "shows what is left; then run the project's tests")
    if _DONE in outcomes and again.get("unsafe"):
        arguments: dict[str, Any] = {
            "program": "PROGRAM",
            **{key: again[key] for key in ("select", "rewrites") if key in again},
        }
        return NextStep("verify", arguments, "runs a program with and without them: some change more than speed")
    if _DONE in outcomes:
        return NextStep("fix", {**again, "write": True}, "writes the diff: these rewrites are safe")
    if "unsafe" in outcomes:
        return NextStep("fix", {**again, "unsafe": True}, "shows the diff of those that change more than speed")
    if found:
        return NextStep("rule", {"rule": found[0].rule}, "says what to write instead by hand")
    return NextStep("explain", {"program": "PROGRAM"}, "runs a program that compiles this code: nothing is to be fixed")


MOST_NAMED = 5
ACCEPTED, NO_FASTER, REJECTED = "accepted", "no-faster", "rejected"
_WORDS = {ACCEPTED: "accepted", NO_FASTER: "no faster", REJECTED: "rejected"}


def verify_answer(
    report: Mapping[str, Any], asked: Mapping[str, Any], ended: str | None, offset: int, limit: int
) -> VerifyAnswer:
    """The answer to a call with the arguments ``asked``, from the JSON of ``verify``; ``ended`` says that a time limit
    ended it."""
    proofs = report["proofs"]
    shown, left = page([_proof(one) for one in proofs], offset, limit)
    return VerifyAnswer(
        _verify_summary(proofs, report, ended),
        shown,
        _not_proved(report),
        report["notes"][:MOST_NAMED],
        more_step("verify", {"last": True}, offset + len(shown), left),
        _after_verify(proofs, asked, report),
    )


def _verify_summary(proofs: Sequence[Mapping[str, Any]], report: Mapping[str, Any], ended: str | None) -> str:
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


def _after_verify(proofs: Sequence[Mapping[str, Any]], asked: Mapping[str, Any], report: Mapping[str, Any]) -> NextStep:
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
