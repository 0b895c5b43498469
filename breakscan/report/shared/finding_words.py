"""What reports say about a finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from breakscan.fix.offer import Offer
from breakscan.model.findings import Assumption, CheckTarget, Finding, Mode, Place, Region, Verdict
from breakscan.model.words import INSIDE, counted
from breakscan.report.shared.condition_words import conditions_in_words
from breakscan.report.shared.printable import visible

FIX_HINT = "'breakscan fix' shows a diff of those that it can rewrite."
_ASKED_FOR = {
    Offer.SAFE: FIX_HINT,
    Offer.UNSAFE: "'breakscan fix --unsafe' shows a diff of those that it can rewrite, and says what else it changes.",
    Offer.SOFTENING: "'breakscan fix --soften' shows a diff that takes what breaks out of the graph.",
}
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
    """What the compiler does at the finding beyond what its rule says of it, or None."""
    torch = finding.torch
    if finding.mode.exports:
        if finding.verdict is Verdict.WRONG:
            return f"With torch {torch}, the exported program always has the value from the export here."
        return f"torch.export.export of torch {torch} raises an error here; plain Python does not."
    if finding.verdict is Verdict.EAGER:
        if finding.place is Place.LOOP:
            where = f"{finding.via} calls this in a loop" if finding.via else "The break is inside a loop"
            frame = f"all of {finding.via}" if finding.via else "the whole function"
            return f"{where}: torch {torch} runs {frame} eager (0 graphs), not just this line."
        if finding.place in INSIDE:
            inside = INSIDE[finding.place]
            where = f"{finding.via} calls this inside {inside}" if finding.via else f"The break is inside {inside}"
            frame = finding.via or "the function"
            return f"{where}: torch {torch} cannot resume there and runs the rest of {frame} eagerly."
        return f"torch {torch} cannot resume after it and runs the rest of the function eagerly, as plain Python."
    if finding.verdict is Verdict.RAISES:
        return f"torch {torch} raises an error here when it compiles; plain Python does not."
    if finding.verdict is Verdict.UNUSED:
        return "Nothing is ever compiled."
    return None


def fix_hint(offer: Offer) -> str:
    """How to see the edits of the best kind that there is."""
    return _ASKED_FOR[offer]


_ASSUMED = {Assumption.FORWARD: "nn.Module.forward", Assumption.FUNCTION: "any function"}


def how_compiled(region: Region) -> str:
    """The code that compiles a region, or what is assumed to be compiled."""
    return region.how if region.assumed is None else _ASSUMED[region.assumed]


def region_words(finding: Finding) -> str:
    """Where the finding is, and why that code counts as compiled."""
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
    """How many findings a finding hides, and where they are."""
    lines = list(dict.fromkeys(str(finding.site.line) for finding in behind))
    if len(lines) > _MOST_LINES_NAMED:
        where = f"lines {lines[0]} to {lines[-1]}"
    else:
        where = f"{'line' if len(lines) == 1 else 'lines'} {', '.join(lines)}"
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
