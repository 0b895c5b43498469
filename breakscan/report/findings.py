"""Findings and their conditions, in words and in JSON: the same in all reports."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from breakscan.model.findings import (
    Assumption,
    CheckTarget,
    Condition,
    ConditionKind,
    Finding,
    Kind,
    Mode,
    Place,
    Region,
    Verdict,
)
from breakscan.model.words import INSIDE, counted, listed
from breakscan.report.printable import picked, visible
from breakscan.report.sources import NotebookCells, start_of_line
from breakscan.rulebook.library import Library
from breakscan.rulebook.remedies import finding_remedies

_LONGEST = 100


def conditions_in_words(conditions: Iterable[Condition]) -> str | None:
    """``"`x` is a tensor and `verbose` is on"``; None for no condition."""
    return " and ".join(dict.fromkeys(map(_shortened, conditions))) or None


def _shortened(condition: Condition) -> str:
    words = _in_words(condition)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 2]}…`"


def _in_words(condition: Condition) -> str:
    subject = f"`{condition.subject}`" if condition.subject else "it"
    match condition.kind:
        case ConditionKind.TEST | ConditionKind.DEVICE:
            return subject if condition.outcome else f"not {subject}"
        case ConditionKind.GIVEN:
            return f"{subject} is given"
        case ConditionKind.FLAG:
            return f"{subject} is {'on' if condition.outcome else 'off'}"
        case ConditionKind.TENSOR:
            return f"{subject} is a tensor"
        case ConditionKind.MASK:
            return f"{subject} is a tensor of booleans"
        case ConditionKind.RETURNS_TENSOR:
            return f"{subject} returns a tensor"
        case ConditionKind.INSTANCE:
            names = (f"{'an' if name == 'int' else 'a'} {name}" for name in condition.classes)
            return f"{subject} is {' or '.join(names)}"
        case ConditionKind.RAISED:
            return f"{subject if condition.subject else 'something'} is raised"
        case ConditionKind.CHOSEN:
            return f"{subject} is this function"
        case ConditionKind.PASSED_ON:
            return f"`@{condition.classes[0]}` lets it through to this {subject}"
        case ConditionKind.UNSEEN:
            return "the values are not those of the recorded run"


FIX_HINT = "'breakscan fix' shows a diff for {} of these {}."
_MOST_LINES_NAMED = 8

MODE_WORDS = {
    Mode.DEFAULT: "default mode",
    Mode.FULLGRAPH: "fullgraph=True",
    Mode.EXPORT: "torch.export",
    Mode.EXPORT_STRICT: "torch.export, strict",
}


def versions_words(targets: Iterable[CheckTarget]) -> str:
    """``2.13``, or ``2.12 and 2.16 (judged by the verdicts of 2.15)`` where configurations differ."""
    versions = dict.fromkeys((one.torch, one.ledger) for one in targets)
    words = (visible(t) if t == by else f"{visible(t)} (judged by the verdicts of {visible(by)})" for t, by in versions)
    return " and ".join(words)


def verdict_sentence(finding: Finding) -> str | None:
    """The effect on compiling, beyond what the rule says, or None."""
    torch = finding.torch
    if finding.mode.exports:
        if finding.verdict is Verdict.WRONG:
            return f"With torch {torch}, the exported program always has the value from the export here."
        return f"torch.export.export of torch {torch} raises an error here; plain Python does not."
    if finding.verdict is Verdict.EAGER:
        if finding.place is Place.LOOP:
            where = f"{finding.via} calls this in a loop" if finding.via else "The break is inside a loop"
            frame = f"all of {finding.via}" if finding.via else "the whole function"
            if finding.after_split:
                return f"{where}: torch {torch} runs the rest of the function eager, from the break before it on."
            return f"{where}: torch {torch} runs {frame} eager (0 graphs), not just this line."
        if finding.place in INSIDE:
            inside = INSIDE[finding.place]
            where = f"{finding.via} calls this inside {inside}" if finding.via else f"The break is inside {inside}"
            frame = finding.via or "the function"
            return f"{where}: torch {torch} cannot resume there and runs the rest of {frame} eagerly."
        return f"torch {torch} cannot resume after it and runs the rest of the function eagerly, as plain Python."
    if finding.verdict is Verdict.RAISES and finding.kind is not Kind.MISUSE:
        return f"torch {torch} raises an error here when it compiles; plain Python does not."
    return "Nothing is ever compiled." if finding.verdict is Verdict.UNUSED else None


_ASSUMED = {Assumption.FORWARD: "nn.Module.forward", Assumption.FUNCTION: "any function"}


def how_compiled(region: Region) -> str:
    """The code that compiles a region, or what is assumed to be compiled."""
    return region.how if region.assumed is None else _ASSUMED[region.assumed]


def region_words(finding: Finding) -> str:
    """The function of the finding, and the reason that its code counts as compiled."""
    inside = f"in {finding.function}" if finding.function else ""
    region = finding.region
    if region is None:
        return inside
    same_file = region.path == finding.site.path
    where = f"line {region.line}" if same_file else f"{region.path}:{region.line}"
    entry = region.entry if region.entry != finding.function else None
    compiled = "exported" if finding.mode.exports else "compiled"
    if region.recorded:
        why = "compiled in the recorded run"
    elif region.assumed is None:
        why = f"{compiled} from {where}{f' via {entry}' if entry else ''}"
    elif region.entry == finding.function and same_file:
        why = f"assumed {compiled}"
    else:
        why = f"from {f'{region.entry} ({where})' if region.entry else where}, assumed {compiled}"
    return f"{inside}, {why}" if inside else why


def behind_sentence(behind: Sequence[Finding]) -> str:
    """The number and the lines of the findings that a finding, or a recorded break, hides."""
    lines = list(dict.fromkeys(str(finding.site.line) for finding in behind))
    where = f"{'line' if len(lines) == 1 else 'lines'} {listed(lines, 'line', _MOST_LINES_NAMED)}"
    appear = "appears" if len(behind) == 1 else "appear"
    return f"It hides {counted(len(behind), 'more finding')} ({where}), which {appear} once this one is fixed."


def one_line(finding: Finding) -> str:
    """The message, with the condition under which alone it holds and the line of the finding that hides it."""
    words = finding.message
    if condition := conditions_in_words(finding.conditions):
        words += f" (only when {condition})"
    if finding.observed:
        words += f" (observed in {counted(finding.observed, 'call')})"
    if finding.behind:
        words += f" (hidden by line {finding.behind.line})"
    return words


def finding_object(finding: Finding, cells: NotebookCells, library: Library) -> dict[str, Any]:
    """A finding, whose places are as reports show them, as a dictionary for :func:`.write_json_report`."""
    rule = library.get(finding.rule)
    return {
        **picked(finding, "rule name kind severity confidence message function gb rewrite mode torch"),
        "site": cells.object(finding.site),
        "region": _region(finding.region, cells) if finding.region else None,
        "rewrites": rule.rewrites if rule else [],
        "remedies": [{**asdict(one), "command": one.command} for one in finding_remedies(finding, rule)],
        "condition": conditions_in_words(finding.conditions),
        "behind": cells.object(finding.behind) if finding.behind else None,
        "observed": finding.observed or None,
    }


def targets_object(targets: Sequence[CheckTarget]) -> dict[str, Any]:
    """The targets of a check: several where configurations differ, and the first of them."""
    listed = [{"torch": one.torch, "fullgraph": one.mode is Mode.FULLGRAPH, "mode": one.mode.value} for one in targets]
    return {"target": listed[0], "targets": listed}


def _region(region: Region, cells: NotebookCells) -> dict[str, Any]:
    start = cells.object(start_of_line(region))
    at: dict[str, Any] = {key: value for key, value in start.items() if key in ("path", "cell", "line")}
    return {**at, "how": how_compiled(region), "entry": region.entry}
