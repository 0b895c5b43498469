"""The answer of ``fix``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from breakscan.model.words import counted, grouped_reasons
from breakscan.report.answers.answer import EditAnswer, FileDiff, FixAnswer, NextStep, at, page
from breakscan.report.answers.words import error_words, more_step

MOST_LINES = 240
"""Lines of diffs in an answer."""
REWRITTEN = "rewritten"
NEEDS_UNSAFE = "needs-unsafe"
NEEDS_SOFTEN = "needs-soften"
STAYS = "stays"
_ORDER = (REWRITTEN, NEEDS_UNSAFE, NEEDS_SOFTEN, STAYS)


def fix_answer(report: Mapping[str, Any], asked: Mapping[str, Any], offset: int, limit: int) -> FixAnswer:
    """The answer to a call with the arguments ``asked``, from the JSON of ``fix``."""
    files = report["files"]
    found = sorted((one for file in files for one in _findings(file)), key=lambda one: _ORDER.index(one.outcome))
    shown, left = page(found, offset, limit)
    written = any(file["written"] for file in files)
    paths = {one.at.partition(":")[0] for one in shown}
    diffs = _diffs([file for file in files if file["changed"] and file["path"] in paths])
    return FixAnswer(
        _summary(found, report, written),
        written,
        [] if written else diffs,
        shown,
        [error_words(one) for one in report["errors"][:limit]],
        more_step("fix", {**asked, "write": False} if "write" in asked else asked, offset + len(shown), left),
        _next(found, asked, written),
    )


def _summary(found: Sequence[EditAnswer], report: Mapping[str, Any], written: bool) -> str:
    counts = Counter(one.outcome for one in found)
    done = "rewritten" if written else "can be rewritten; no file is changed yet"
    words = {REWRITTEN: done, NEEDS_UNSAFE: "only with unsafe", NEEDS_SOFTEN: "only with soften", STAYS: "stay"}
    parts = [f"{counts[outcome]} {words[outcome]}" for outcome in words if counts[outcome]]
    files = counted(report["summary"]["files"], "file")
    return f"{counted(len(found), 'finding')} in {files}{': ' if parts else ''}{', '.join(parts)}"


def _findings(file: Mapping[str, Any]) -> Iterator[EditAnswer]:
    for key, outcome in (("applied", REWRITTEN), ("unsafe", NEEDS_UNSAFE), ("softening", NEEDS_SOFTEN)):
        for one in file[key]:
            finding = one["finding"]
            remains = f"still breaks if {one['remains']}" if one["remains"] else None
            note = "; ".join(filter(None, (one["difference"], remains)))
            yield EditAnswer(at(finding["site"]), finding["rule"], outcome, one["rewrite"], note or None)
    for one in file["regenerated"]:
        place = at(one["by"]["finding"]["site"])
        note = f"this file is generated: it is fixed at {place}"
        yield EditAnswer(at(one["finding"]["site"]), one["finding"]["rule"], STAYS, one["by"]["rewrite"], note)
    for one in file["declined"]:
        near = [reason for reason in one["reasons"] if reason["near"]] or one["reasons"]
        note = grouped_reasons((reason["rewrite"], reason["reason"]) for reason in near)
        yield EditAnswer(at(one["finding"]["site"]), one["finding"]["rule"], STAYS, None, note)
    for finding in file["without"]:
        yield EditAnswer(at(finding["site"]), finding["rule"], STAYS, None, "no rewrite is known")


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


def _next(found: Sequence[EditAnswer], asked: Mapping[str, Any], written: bool) -> NextStep:
    again = {key: value for key, value in asked.items() if key not in ("offset", "limit")}
    outcomes = {one.outcome for one in found}
    if written:
        paths = list(dict.fromkeys(one.at.partition(":")[0] for one in found if one.outcome == REWRITTEN))
        return NextStep("check", {"paths": paths}, "shows what is left; then run the project's tests")
    if REWRITTEN in outcomes and again.get("unsafe"):
        arguments: dict[str, Any] = {
            "program": "PROGRAM",
            **{key: again[key] for key in ("select", "rewrites") if key in again},
        }
        return NextStep("verify", arguments, "runs a program with and without them: some change more than speed")
    if REWRITTEN in outcomes:
        return NextStep("fix", {**again, "write": True}, "writes the diff: these rewrites are safe")
    if NEEDS_UNSAFE in outcomes:
        return NextStep("fix", {**again, "unsafe": True}, "shows the diff of those that change more than speed")
    if found:
        return NextStep("rule", {"rule": found[0].rule}, "says what to write instead by hand")
    return NextStep("explain", {"program": "PROGRAM"}, "runs a program that compiles this code: nothing is to be fixed")
