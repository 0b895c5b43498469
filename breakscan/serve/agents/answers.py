"""Answers of the tools, made from the JSON that the command of the same name writes: short, with the next step.

An answer is an object of JSON.  Lists are cut: ``more`` is the call for the rest.  Empty values are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from breakscan.model.findings import Mode, Origin
from breakscan.model.problem import ProblemKind
from breakscan.model.remedy import RemedyKind
from breakscan.model.words import counted, listed, sentence
from breakscan.rulebook.document import Example
from breakscan.rulebook.library import Library

Report = Mapping[str, Any]
Answer = dict[str, Any]

MOST_PATHS = 10
"""Files that a next step names one by one."""
MOST_NAMED = 5
MOST_NOTICES = 3
MOST_DIFF_LINES = 240
_KEPT = ("written", "next")
"""Keys that an answer has even if they are empty."""
_UNLABELLED = (
    "at",
    "rule",
    "name",
    "severity",
    "message",
    "path",
    "outcome",
    "what",
    "effect",
    "why",
    "change",
    "verdict",
)
"""Keys of entries whose values need no label in the text of an answer."""
_SEVERITIES = (("error", "error"), ("warning", "warning"), ("info", "hint"))


def check_answer(report: Report, library: Library, asked: Report, offset: int, limit: int) -> Answer:
    """Answer a call of ``check`` with the arguments ``asked``."""
    findings = report["findings"]
    shown = findings[offset : offset + limit]
    return _answer(
        summary=_check_summary(report),
        findings=map(_finding, shown),
        instead={one["rule"]: ". Or: ".join(each["text"] for each in one["remedies"]) for one in reversed(shown)},
        errors=map(_error, report["errors"][:limit]),
        more=_more("check", asked, offset + limit, len(findings)),
        next=_after_check(findings, asked),
    )


def _check_summary(report: Report) -> str:
    counts = Counter(one["severity"] for one in report["findings"])
    parts = [counted(counts[severity], word) for severity, word in _SEVERITIES if counts[severity]]
    files = counted(report["summary"]["files"], "file")
    versions = " and ".join(dict.fromkeys(target["torch"] for target in report["targets"]))
    known = report["summary"]["known"]
    nothing = "nothing new" if known else "nothing found"
    before = f"; {known} known before" if known else ""
    return f"{', '.join(parts) or nothing} in {files}, for torch {versions}{before}"


def _finding(one: Report) -> Answer:
    return _brief(
        at=_at(one["site"]),
        rule=one["rule"],
        name=one["name"],
        severity=one["severity"],
        message=one["message"],
        confidence=None if one["confidence"] == "certain" else one["confidence"],
        function=one["function"],
        only_if=one["condition"],
        hidden_by=_at(one["behind"]) if one["behind"] else None,
        may_fix=bool(one["rewrites"]),
    )


def _after_check(findings: Sequence[Report], asked: Report) -> Answer:
    paths = list(dict.fromkeys(one["site"]["path"] for one in findings if one["rewrites"]))
    if paths:
        select = {"select": asked["select"]} if "select" in asked else {}
        arguments = {"paths": paths if len(paths) <= MOST_PATHS else asked.get("paths", ["."]), **select}
        return _step("fix", arguments, "shows which of these it can rewrite, as a diff")
    if findings:
        return _step("rule", {"rule": findings[0]["rule"]}, "explains what to write instead: there is no rewrite")
    return _step(
        "explain", {"program": "PROGRAM"}, "runs a program that compiles this code, and shows what only a run can"
    )


_SAFE = "safe"
_UNSAFE = "unsafe"


def fix_answer(report: Report, asked: Report, offset: int, limit: int) -> Answer:
    """Answer a call of ``fix`` with the arguments ``asked``."""
    files = report["files"]
    edits = [edit for file in files for edit in _edits(file)]
    shown = edits[offset : offset + limit]
    written = any(file["written"] for file in files)
    paths = {one["at"].partition(":")[0] for one in shown}
    changed = [] if written else [file for file in files if file["changed"] and file["path"] in paths]
    return _answer(
        summary=_fix_summary(edits, report),
        written=written,
        diffs=_diffs(changed),
        findings=shown,
        errors=map(_error, report["errors"][:limit]),
        more=_more("fix", {**asked, "write": False} if "write" in asked else asked, offset + limit, len(edits)),
        next=_after_fix(edits, asked, written),
    )


def _fix_summary(edits: Sequence[Answer], report: Report) -> str:
    counts = Counter(edit["outcome"] for edit in edits)
    parts = [f"{counts[outcome]} {outcome}" for outcome in (_SAFE, _UNSAFE) if counts[outcome]]
    if stay := len(edits) - counts[_SAFE] - counts[_UNSAFE]:
        parts.append(f"{stay} stay")
    files = counted(report["summary"]["files"], "file")
    return f"{counted(len(edits), 'finding')} in {files}{': ' if parts else ''}{', '.join(parts)}"


def _edits(file: Report) -> Iterator[Answer]:
    """The findings of a file with what a rewrite changes, or why there is none, by the lists of the JSON."""
    for outcome in (_SAFE, _UNSAFE):
        for one in file[outcome]:
            remains = f"still breaks if {one['remains']}" if one["remains"] else None
            yield _edit(one["finding"], outcome, "; ".join(filter(None, (one["difference"], remains))), one["rewrite"])
    for one in file["declined"]:
        near = next((reason["reason"] for reason in one["reasons"] if reason["near"]), "no edit is known for this form")
        yield _edit(one["finding"], "declined", near)
    for finding in file["without"]:
        yield _edit(finding, "without", "no rewrite is known")


def _edit(finding: Report, outcome: str, note: str, rewrite: str | None = None) -> Answer:
    return _brief(at=_at(finding["site"]), rule=finding["rule"], outcome=outcome, rewrite=rewrite, note=note)


def _diffs(files: Sequence[Report]) -> Iterator[Answer]:
    """The diffs of files, as far as there is room for them; ``cut`` is the number of lines that are left out."""
    room = MOST_DIFF_LINES
    for file in files:
        lines = file["diff"].splitlines(keepends=True)
        kept = lines[:room]
        room -= len(kept)
        if kept:
            yield _brief(path=file["path"], diff="".join(kept), cut=len(lines) - len(kept) or None)


def _after_fix(edits: Sequence[Answer], asked: Report, written: bool) -> Answer:
    again = _without_page(asked)
    outcomes = {one["outcome"] for one in edits}
    if written:
        kinds = (_SAFE, _UNSAFE) if asked.get("unsafe") else (_SAFE,)
        paths = dict.fromkeys(one["at"].partition(":")[0] for one in edits if one["outcome"] in kinds)
        return _step("check", {"paths": list(paths)}, "shows what is left; then run the project's tests")
    if _SAFE in outcomes:
        return _step("fix", {**again, "write": True}, "writes those that are safe")
    if _UNSAFE in outcomes:
        arguments = {"program": "PROGRAM", **_picked(again, "select", "rewrites")}
        return _step("verify", arguments, "runs a program with and without them: they change more than speed")
    if edits:
        return _step("rule", {"rule": edits[0]["rule"]}, "explains what to write instead by hand")
    return _step("explain", {"program": "PROGRAM"}, "runs a program that compiles this code: nothing is to be fixed")


def explain_answer(
    report: Report, library: Library, asked: Report, ended: str, output: str | None, offset: int, limit: int
) -> Answer:
    """Answer a call of ``explain`` with the arguments ``asked``.  ``ended`` is the program's end in words, ``output``
    its last lines if it failed."""
    found = problems(report)
    return _answer(
        summary=_explain_summary(report),
        ended=ended,
        problems=found[offset : offset + limit],
        notices=report["notices"][:MOST_NOTICES],
        output=output,
        # The rest is read from the last run: the program does not run again.
        more=_more("explain", {"last": True}, offset + limit, len(found)),
        next=_after_explain(found, report, library, asked, output),
    )


def problems(report: Report) -> list[Answer]:
    """The problems that no other one explains, in the order of a report, without functions that lose nothing."""
    lossless = (ProblemKind.FUNCTION.value, None)
    return [
        _problem(one)
        for one in report["problems"]
        if one["cause"] is None and (one["kind"], one["verdict"]) != lossless
    ]


def _problem(one: Report) -> Answer:
    return _brief(
        at=_at(one["site"]),
        what=ProblemKind(one["kind"]).words,
        effect=one["what"],
        why=". ".join((one["why"], *(text.rstrip(".") for text in one["consequences"]))),
        rule=one["rule"] or one["gb_id"],
        function=next(iter(one["functions"]), None),
        times=one["count"] if one["count"] > 1 else None,
        takes=one["takes"] or None,
        instead=". Or: ".join([remedy["text"] for remedy in one["remedies"]] or one["hints"][:1]),
    )


def _explain_summary(report: Report) -> str:
    counts, frames = report["summary"], len(report["frames"])
    parts = [counted(counts["break_sites"], "graph break")]
    if counts["recompiles"]:
        parts.append(f"{counted(counts['recompiles'], 'recompile')} of {counted(counts['causes'], 'cause')}")
    if frames:
        parts.append(counted(frames, "function that is not compiled", "functions that are not compiled"))
    if counts["export_failures"]:
        parts.append(counted(counts["export_failures"], "export problem"))
    parts.append(counted(counts["graphs"], "graph"))
    torch = report["environment"]["torch"]
    return f"{', '.join(parts)}{f', torch {torch}' if torch else ''}"


def _after_explain(
    found: Sequence[Answer], report: Report, library: Library, asked: Report, output: str | None
) -> Answer:
    run = _picked(asked, "program", "as_module", "arguments", "compile")
    if output is not None and not found:
        return _step("explain", run, "again, once the program runs: see its output")
    paths = dict.fromkeys(
        one["site"]["path"]
        for one in report["problems"]
        if one["origin"] == Origin.USER.value and any(r["kind"] == RemedyKind.EDIT.value for r in one["remedies"])
    )
    if paths:
        return _step("fix", {"paths": list(paths)}, "shows which of these it can rewrite, as a diff")
    rule = next((one["rule"] for one in found if "rule" in one and library.get(one["rule"])), None)
    if rule is not None:
        return _step("rule", {"rule": rule}, "explains what to write instead by hand")
    if found:
        return _step("explain", run, "again, once the code is changed as 'instead' says")
    return _step("check", {"paths": ["."]}, "finds what this run did not reach: it met no problem")


_VERDICTS = ("accepted", "no-faster", "too-noisy", "rejected", "not-tried")


def verify_answer(report: Report, asked: Report, ended: str | None, offset: int, limit: int) -> Answer:
    """Answer a call of ``verify`` with the arguments ``asked``; ``ended`` names the time limit that ended it."""
    proofs = report["proofs"]
    not_proved = (("not reached by this run", report["unreached"]), ("without a rewrite", report["declined"]))
    compiled = report["compiled"]
    differs = [] if compiled is None or compiled["agrees"] else [compiled["says"]]
    return _answer(
        summary=_verify_summary(proofs, report, ended),
        proofs=map(_proof, proofs[offset : offset + limit]),
        not_proved=[f"{words}: {listed(names, 'name', MOST_NAMED)}" for words, names in not_proved if names],
        notes=[*differs, *report["notes"]][:MOST_NAMED],
        more=_more("verify", {"last": True}, offset + limit, len(proofs)),
        next=_after_verify(proofs, asked, report),
    )


def _verify_summary(proofs: Sequence[Report], report: Report, ended: str | None) -> str:
    counts = Counter(one["verdict"] for one in proofs)
    parts = [f"{counts[verdict]} {verdict.replace('-', ' ')}" for verdict in _VERDICTS if counts[verdict]]
    calls = sum(one["captured"] for one in report["calls"])
    what = f"{counted(len(proofs), 'change')} verified on {counted(calls, 'captured call')}"
    outcome = f"{what}{': ' if parts else ''}{', '.join(parts)}"
    written = f"wrote {', '.join(report['applied'])}" if report["applied"] else None
    return "; ".join(filter(None, (outcome, written, report["not_applied"], ended)))


def _proof(one: Report) -> Answer:
    before, after = one["breaks"]["before"], one["breaks"]["after"]
    cautions = [caution["says"] for caution in _cautions(one)] + one["reasons"][1:]
    return _brief(
        change=one["label"],
        verdict=one["verdict"],
        why=one["says"],
        at=_at(one["site"]) if one["site"] else None,
        rule=" ".join(filter(None, (one["rule"], one["rewrite"]))),
        breaks=None if after is None else f"{before} → {after}",
        caution=list(dict.fromkeys(cautions))[:MOST_NAMED],
    )


def _cautions(proof: Report) -> list[Report]:
    return [caution for key in ("unseen", "varied") for caution in proof[key]]


def _after_verify(proofs: Sequence[Report], asked: Report, report: Report) -> Answer:
    run = _picked(asked, "program", "as_module", "arguments", "compile")
    accepted = [one for one in proofs if one["verdict"] == "accepted"]
    is_plain = bool(accepted) and not any(map(_cautions, accepted))
    if asked.get("patch") is not None:
        if is_plain:
            return _step("check", {"paths": ["."]}, "once you have applied the patch, which was accepted")
        return _step("verify", run, "with a patch that is changed as the reasons say")
    if report["applied"]:
        return _step("check", {"paths": list(report["applied"])}, "shows what is left; then run the project's tests")
    if is_plain:
        return _step(
            "verify", {**_without_page(asked), "write": True}, "verifies once more, and writes what is accepted"
        )
    if accepted:
        paths = list(dict.fromkeys(one["site"]["path"] for one in proofs if one["site"])) or ["."]
        why = "shows the diff; see the caution of each: the calls of this run do not show that all is equal"
        return _step("fix", {"paths": paths, "unsafe": True}, why)
    if proofs:
        return _step("explain", run, "what costs most is elsewhere: no change was accepted")
    return _step("explain", run, "shows what broke in this run: no rewrite applies to it")


def tune_answer(report: Report, asked: Report, ended: str | None, offset: int, limit: int) -> Answer:
    """Answer a call of ``tune`` with the arguments ``asked``; ``ended`` names the time limit that ended it."""
    best, tried = report["best"], report["tried"]
    written = f"wrote {', '.join(report['applied'])}" if report["applied"] else None
    return _answer(
        summary="; ".join(filter(None, (report["says"], written, report["not_applied"], ended))),
        changes=[name for one in best["candidates"] for name in one["names"]] if best else [],
        diffs=_diffs([{"path": "patch", "diff": best["patch"]}] if best else []),
        assumes=best["assumes"] if best else [],
        caution=best["held_back"] if best else [],
        tried=[
            _brief(change=" + ".join(one["names"]), verdict=one["verdict"], why=one["reason"])
            for one in tried[offset : offset + limit]
        ],
        notes=report["notes"][:MOST_NAMED],
        more=_more("tune", {"last": True}, offset + limit, len(tried)),
        next=_after_tune(best, asked, report),
    )


def _after_tune(best: Report | None, asked: Report, report: Report) -> Answer:
    if report["applied"]:
        return _step("check", {"paths": list(report["applied"])}, "shows what is left; then run the project's tests")
    if best is None:
        run = _picked(asked, "program", "as_module", "arguments", "compile")
        return _step("explain", run, "shows what costs most: no way is better than the program as it is")
    why = "once you have applied the patch, whose caution names what no run shows" if best["held_back"] else None
    return _step("check", {"paths": ["."]}, why or "once you have applied the patch")


def rule_answer(report: Report, examples: Sequence[Example]) -> Answer:
    """Answer a call of ``rule``, with examples of its document."""
    why = "finds it in the project; fix shows a diff" if report["rewrites"] else "finds it in the project"
    return _answer(
        **_picked(report, "rule", "name", "summary", "why", "instead"),
        breaks=next(one.source.strip() for one in examples if one.breaks),
        compiles=next((one.source.strip() for one in examples if not one.breaks), None),
        verdicts=_verdicts(report),
        rewrites=report["rewrites"],
        next=_step("check", {"select": [report["rule"]]}, why),
    )


def _verdicts(report: Report) -> dict[str, str]:
    """``{"2.11, 2.13": "plain: splits; loop, try, with: eager"}``: versions that do the same are together."""
    rulings = [one for one in report["verdicts"] if one["example"].startswith("breaks/")]
    modes = {one["mode"] for one in rulings}
    mode = next((one.value for one in (Mode.DEFAULT, Mode.EXPORT, Mode.EXPORT_STRICT) if one.value in modes), None)
    by_torch: dict[str, dict[str, dict[str, None]]] = {}
    for one in rulings:
        if one["mode"] == mode:
            by_torch.setdefault(one["torch"], {}).setdefault(one["place"], {})[one["verdict"]] = None
    alike: dict[str, list[str]] = {}
    for torch, places in by_torch.items():
        alike.setdefault(_by_verdict(places), []).insert(0, torch)
    return {", ".join(versions): words for words, versions in alike.items()}


def _by_verdict(places: Mapping[str, Iterable[str]]) -> str:
    by_verdict: dict[str, list[str]] = {}
    for place, verdicts in places.items():
        by_verdict.setdefault(" or ".join(verdicts), []).append(place)
    if len(by_verdict) == 1:
        return next(iter(by_verdict))
    return "; ".join(f"{', '.join(names)}: {verdict}" for verdict, names in by_verdict.items())


def _answer(**values: Any) -> Answer:
    return _brief(**{key: list(value) if isinstance(value, Iterator | map) else value for key, value in values.items()})


def _brief(**values: Any) -> Answer:
    """The values that are not empty."""
    return {key: value for key, value in values.items() if key in _KEPT or value not in (None, "", [], {}, False)}


def _picked(values: Report, *keys: str) -> dict[str, Any]:
    return {key: values[key] for key in keys if key in values}


def _without_page(asked: Report) -> dict[str, Any]:
    return {key: value for key, value in asked.items() if key not in ("offset", "limit")}


def _step(tool: str, arguments: Mapping[str, Any], why: str) -> Answer:
    """A tool to call, with its arguments, and the reason."""
    return {"tool": tool, "arguments": dict(arguments), "why": why}


def _more(tool: str, asked: Report, shown: int, total: int) -> Answer | None:
    """The call for the entries after those that are shown."""
    return _step(tool, {**asked, "offset": shown}, f"{total - shown} more") if total > shown else None


def _at(site: Report) -> str:
    """``model.py:12:9``; of a notebook ``train.ipynb:cell 3:4:9``."""
    cell = f"cell {site['cell']}:" if site.get("cell") is not None else ""
    return f"{site['path']}:{cell}{site['line']}:{site['column']}"


def _error(error: Report) -> str:
    return f"{_at(error)}: {error['message']}"


def answer_text(answer: Answer) -> str:
    """Return the answer as text, a line for each entry, for clients that ignore structured content."""
    lines: list[str] = []
    for name, value in answer.items():
        if isinstance(value, Mapping) and "tool" in value:
            arguments = json.dumps(value["arguments"], ensure_ascii=False)
            lines.append(f"{name}: {value['tool']} {arguments} {sentence(value['why'])}")
        elif isinstance(value, Mapping):
            lines += [f"{name}:", *(f"- {key}: {text}" for key, text in value.items())]
        elif isinstance(value, list):
            lines += [f"{name}:", *(f"- {_entry_text(entry)}" for entry in value)]
        else:
            lines.append(f"{name}:{_separator(str(value), ' ')}{value}")
    return "\n".join(lines)


def _entry_text(entry: Any) -> str:
    """``net.py:5:8, BRK401, print, warning, print() breaks the graph, function: f``."""
    if not isinstance(entry, Mapping):
        return str(entry)
    text = ""
    for name, value in entry.items():
        shown = f"{value}".rstrip() if name in (*_UNLABELLED, "diff") else f"{name}: {value}"
        text += f"{_separator(shown, ', ') if text else ''}{shown}"
    return text


def _separator(text: str, within_a_line: str) -> str:
    return "\n" if "\n" in text else within_a_line
