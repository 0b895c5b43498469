"""What was exported, what stood against it, and what to do about that."""

from __future__ import annotations

from collections.abc import Sequence

from breakscan.explain.explanation import Explanation
from breakscan.explain.exported import Export, ExportFailure, ExportStatus, ExportTry, ExportWay
from breakscan.model.words import counted, listed, place, seconds_in_words
from breakscan.record.parsers.export_errors import ExportProblem
from breakscan.record.parsers.guards import with_article

_MOST_NAMED = 3
_WHY = {
    ExportProblem.TEST: "it tests what depends on data, which an export does not know",
    ExportProblem.NUMBER: "it needs a number out of data, which an export does not know",
    ExportProblem.SIZES: "the code does not leave the sizes free that dynamic_shapes declares",
    ExportProblem.NO_FAKE_KERNEL: "the operator {} has no fake kernel, which tells what it returns without running it",
    ExportProblem.WRONG_FAKE_KERNEL: "the fake kernel of {} tells another result than the operator gives",
    ExportProblem.INPUT: "it is given {}, a type that an export cannot take apart",
    ExportProblem.OUTPUT: "it returns {}, a type that an export cannot take apart",
    ExportProblem.UNTRACEABLE: "Dynamo cannot trace it",
    ExportProblem.ERROR: "{}",
    ExportProblem.NOT_TOLD: "the export came to this line, and a torch trace does not say what ended it there",
}
_QUOTES_TORCH = (ExportProblem.TEST, ExportProblem.NUMBER)
_INSTEAD = {
    ExportProblem.TEST: "select with torch.where or branch with torch.cond; where a number always passes the test, "
    "say so before it, such as torch._check(n > 3)",
    ExportProblem.NUMBER: "keep it a tensor; where the number is always the same, say so before it, such as "
    "torch._check(n == 4)",
    ExportProblem.SIZES: "declare them as they are, or leave them to torch with Dim.AUTO",
    ExportProblem.NO_FAKE_KERNEL: 'register one with torch.library.register_fake("{}")',
    ExportProblem.INPUT: "pass tensors, numbers, and tuples, lists or dicts of them; if it is a dataclass, register "
    "it: torch.export.register_dataclass({})",
    ExportProblem.OUTPUT: "return tensors, numbers, and tuples, lists or dicts of them; if it is a dataclass, register "
    "it: torch.export.register_dataclass({})",
    ExportProblem.WRONG_FAKE_KERNEL: "mend the function that is registered as its fake kernel",
}
_OF_LIBRARIES = dict.fromkeys(("DynamicCache", "EncoderDecoderCache"), "pass use_cache=False to the model")
"""What helps against the classes of a library: here of transformers."""
_WAYS = {
    ExportWay.EXPORT: "torch.export.export",
    ExportWay.DRAFT: "draft_export",
    ExportWay.AHEAD_OF_TIME: "AOTInductor",
    ExportWay.AOT_COMPILE: "aot_compile",
}
_COMPILED = (ExportWay.AHEAD_OF_TIME, ExportWay.AOT_COMPILE)
STATUS_WORDS = {
    ExportStatus.DONE: "done",
    ExportStatus.UNSOUND: "unsound",
    ExportStatus.FAILED: "failed",
}


def failure_reason(failure: ExportFailure) -> str:
    """``it tests what depends on data, which an export does not know (torch: u0 > 3)``."""
    if failure.rule:
        return failure.rule.why
    if failure.problem is ExportProblem.UNTRACEABLE:
        return failure.reason or _WHY[failure.problem]
    if failure.problem is ExportProblem.ERROR:
        return failure.reason or failure.about
    is_class = failure.problem in (ExportProblem.INPUT, ExportProblem.OUTPUT)
    words = _WHY[failure.problem].format(with_article(failure.about) if is_class else failure.about)
    if failure.problem in _QUOTES_TORCH:
        return f"{words} (torch: {failure.about})" if failure.about else words
    said = failure.reason or (failure.about if failure.problem is ExportProblem.SIZES else "")
    return f"{words}: {said}" if said else words


def failure_advice(failure: ExportFailure) -> str | None:
    """What to write instead; None where only torch has hints."""
    if failure.rule:
        return failure.rule.instead
    words = _OF_LIBRARIES.get(failure.about) or _INSTEAD.get(failure.problem)
    if words is None:
        return None
    fixes = f"; torch suggests {', '.join(failure.fixes)}" if failure.fixes else ""
    return words.format(failure.about) + fixes


def failure_label(failure: ExportFailure) -> str:
    """What came of the exports."""
    if not failure.fatal:
        return "makes the export unsound"
    return "fails to compile ahead of time" if _are_compiled(failure.exports) else "fails to export"


def _are_compiled(exports: Sequence[Export] | Sequence[ExportTry]) -> bool:
    return all(one.way in _COMPILED for one in exports)


def failure_consequences(failure: ExportFailure) -> list[str]:
    """Which exports it stands against, and what that means."""
    ended = [one for one in failure.exports if one.way is not ExportWay.DRAFT]
    drafts = [one for one in failure.exports if one.way is ExportWay.DRAFT]
    said = []
    if failure.fatal and ended:
        said.append(f"It ends {listed(list(map(_tried, ended)), 'export')}.")
    if drafts and failure.problem in _QUOTES_TORCH:
        said.append(
            f"{_tried(drafts[0])} goes on as with this input, and the exported program checks that "
            "other inputs do the same."
        )
    elif drafts:
        said.append(f"{_tried(drafts[0])} goes on, and what it gives is not sound.")
    return said


def way_words(way: ExportWay, strict: bool | None) -> str:
    """``torch.export.export, strict``."""
    return f"{_WAYS[way]}{', strict' if strict else ''}"


def _tried(one: ExportTry) -> str:
    return f"{_WAYS[one.way]}({one.name}{', strict=True' if one.strict else ''})"


def exports_total(exports: Sequence[Export]) -> str | None:
    """``2 of 5 exports fail and 1 is unsound``; None without any."""
    every = sum(one.count for one in exports)
    noun = "compilation ahead of time" if _are_compiled(exports) else "export"
    nouns = "compilations ahead of time" if _are_compiled(exports) else "exports"
    failed = sum(one.count for one in exports if one.status is ExportStatus.FAILED)
    unsound = sum(one.count for one in exports if one.status is ExportStatus.UNSOUND)
    if not every:
        return None
    if not failed and not unsound:
        return counted(every, f"{noun} succeeds", f"{nouns} succeed")
    parts = [f"{failed} of {counted(every, noun, nouns)} {'fails' if failed == 1 else 'fail'}"] if failed else []
    of = "" if failed else f" of {counted(every, noun, nouns)}"
    parts += [f"{unsound}{of} {'is' if unsound == 1 else 'are'} unsound"] if unsound else []
    return " and ".join(parts)


def exports_line(explanation: Explanation) -> str | None:
    """What was exported, for the list of what was compiled."""
    done = [one for one in explanation.exports if one.status is not ExportStatus.FAILED]
    if not done:
        return None
    longest = sorted(done, key=lambda one: -one.seconds)[:_MOST_NAMED]
    more = f"; and {len(done) - _MOST_NAMED} more" if len(done) > _MOST_NAMED else ""
    return "; ".join(map(_exported, longest)) + more


def _exported(one: Export) -> str:
    ops = f", {counted(one.ops, 'operation')}" if one.ops is not None else ""
    times = f" {one.count} times" if one.count > 1 else ""
    where = f" ({place(one.caller)})" if one.caller else ""
    took = f", {seconds_in_words(one.seconds)}" if one.seconds else ""
    return f"{one.name} by {way_words(one.way, one.strict)}{times}{ops}{took}{where}"


def exporting_seconds(exports: Sequence[Export]) -> float:
    """What all of them took."""
    return sum(one.seconds for one in exports)
