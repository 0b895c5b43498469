"""Exports, the problems that they met, and the advice about these."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from breakscan.explanation.context import ExplainContext, reason_of
from breakscan.model.findings import Origin, Site
from breakscan.model.problem import Caller
from breakscan.model.words import counted, listed, place, seconds_in_words
from breakscan.recording.parsers.break_text import branches_on_data, parse_causes
from breakscan.recording.parsers.export_errors import ExportProblem, ProblemRead, problem_of
from breakscan.recording.parsers.frames import user_frames
from breakscan.recording.parsers.guards import with_article
from breakscan.recording.records import ExportEnded, Record, StackFrame
from breakscan.rulebook.document import Rule


class ExportWay(str, Enum):
    EXPORT = "export"
    DRAFT = "draft_export"
    AHEAD_OF_TIME = "aot_inductor"
    AOT_COMPILE = "aot_compile"
    """For the result of ``torch.compile``."""


class ExportStatus(str, Enum):
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Export:
    """The calls of one line that exported one thing in one way, with one result.  ``ops`` are the operations of the
    result, where torch gives any; ``site`` is the head of what was exported, where it is known; ``seconds`` is what all
    calls took."""

    way: ExportWay
    name: str
    site: Site | None
    caller: Caller | None
    strict: bool | None
    status: ExportStatus
    count: int
    ops: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class ExportTry:
    """An export that had a problem: its way, its subject, and the line that called it."""

    way: ExportWay
    name: str
    strict: bool | None
    caller: Caller | None


@dataclass(frozen=True, slots=True)
class ExportFailure:
    """One problem at one site, in all exports that had it.

    ``about`` is what it is about: torch's expression, an operator, a size, a class.  ``reason`` is what torch or an
    exception says of it, in one line, and empty where ``problem`` says all; ``fixes`` are those that torch suggests.
    ``text`` is torch's whole text.
    """

    problem: ExportProblem
    about: str
    reason: str
    fixes: tuple[str, ...]
    rule: Rule | None
    gb_type: str | None
    gb_id: str | None
    hints: tuple[str, ...]
    site: Site
    function: str | None
    origin: Origin
    count: int
    exports: tuple[ExportTry, ...]
    stack: tuple[Caller, ...]
    code: str | None
    text: str


_MOST_NAMED = 3
_WHY = {
    ExportProblem.TEST: "it tests what depends on data, which an export does not know",
    ExportProblem.NUMBER: "it needs a number out of data, which an export does not know",
    ExportProblem.SIZES: "the code does not leave the sizes free that dynamic_shapes declares",
    ExportProblem.EXAMPLE: "an export fixes the sizes 0 and 1, and {} of its example is one of them",
    ExportProblem.NO_FAKE_KERNEL: "the operator {} has no fake kernel, which gives what it returns without running it",
    ExportProblem.INPUT: "it is given {}, a type that an export cannot take apart",
    ExportProblem.OUTPUT: "it returns {}, a type that an export cannot take apart",
    ExportProblem.UNTRACEABLE: "Dynamo cannot trace it",
    ExportProblem.ERROR: "{}",
}
_QUOTES_TORCH = (ExportProblem.TEST, ExportProblem.NUMBER)
_INSTEAD = {
    ExportProblem.TEST: "select with torch.where or branch with torch.cond, if both sides have one shape; else decide "
    "before the export; where a number always passes the test, say so before it, such as torch._check(n > 3)",
    ExportProblem.NUMBER: "keep it a tensor; where the number is always the same, say so before it, such as "
    "torch._check(n == 4)",
    ExportProblem.SIZES: "declare them as they are, or leave them to torch with Dim.AUTO",
    ExportProblem.EXAMPLE: "export with an example of 2 or more there",
    ExportProblem.NO_FAKE_KERNEL: 'register one with torch.library.register_fake("{}")',
    ExportProblem.INPUT: "pass tensors, numbers, and tuples, lists or dicts of them; if it is a dataclass, register "
    "it: torch.export.register_dataclass({})",
    ExportProblem.OUTPUT: "return tensors, numbers, and tuples, lists or dicts of them; if it is a dataclass, register "
    "it: torch.export.register_dataclass({})",
}
_OF_LIBRARIES = dict.fromkeys(("DynamicCache", "EncoderDecoderCache"), "pass use_cache=False to the model")
"""Advice about the classes of a library: here of transformers."""
_WAYS = {
    ExportWay.EXPORT: "torch.export.export",
    ExportWay.DRAFT: "draft_export",
    ExportWay.AHEAD_OF_TIME: "AOTInductor",
    ExportWay.AOT_COMPILE: "aot_compile",
}
_COMPILED = (ExportWay.AHEAD_OF_TIME, ExportWay.AOT_COMPILE)


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
    """The advice where no rule has any; None where only torch has hints."""
    words = _OF_LIBRARIES.get(failure.about) or _INSTEAD.get(failure.problem)
    if words is None:
        return None
    fixes = f"; torch suggests {', '.join(failure.fixes)}" if failure.fixes else ""
    return words.format(failure.about) + fixes


def failure_label(failure: ExportFailure) -> str:
    """The result of the exports, in words."""
    return "fails to compile ahead of time" if _are_compiled(failure.exports) else "fails to export"


def _are_compiled(exports: Sequence[Export] | Sequence[ExportTry]) -> bool:
    return all(export.way in _COMPILED for export in exports)


def failure_consequences(failure: ExportFailure) -> list[str]:
    """The exports that met the problem."""
    return [f"It ends {listed(list(map(_tried, failure.exports)), 'export')}."]


def way_words(way: ExportWay, strict: bool | None) -> str:
    """``torch.export.export, strict``."""
    return f"{_WAYS[way]}{', strict' if strict else ''}"


def _tried(one: ExportTry) -> str:
    return f"{_WAYS[one.way]}({one.name}{', strict=True' if one.strict else ''})"


def exports_total(exports: Sequence[Export]) -> str | None:
    """``2 of 5 exports fail``; None without any."""
    every = sum(export.count for export in exports)
    nouns = (
        ("compilation ahead of time", "compilations ahead of time") if _are_compiled(exports) else ("export", "exports")
    )
    total = counted(every, *nouns)
    failed = sum(one.count for one in exports if one.status is ExportStatus.FAILED)
    if failed:
        return f"{failed} of {total} {'fails' if failed == 1 else 'fail'}"
    return f"{total} {'succeeds' if every == 1 else 'succeed'}" if every else None


def exports_line(exports: Sequence[Export]) -> str | None:
    """The exports, for the list of what was compiled."""
    done = [export for export in exports if export.status is not ExportStatus.FAILED]
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


_TYPES = (ExportProblem.INPUT, ExportProblem.OUTPUT)
_AT_THE_CALL = (ExportProblem.SIZES, ExportProblem.EXAMPLE, *_TYPES)
"""Torch finds these before it traces, or when all is traced: its exception comes from none of the lines."""


def exports(records: Iterable[Record], context: ExplainContext) -> list[Export]:
    """The exports, in order."""
    found: dict[Hashable, Export] = {}
    for record in records:
        if isinstance(record, ExportEnded):
            one = _export(record, context)
            key = replace(one, count=0, seconds=0.0)
            known = found.get(key)
            found[key] = replace(known, count=known.count + 1, seconds=known.seconds + one.seconds) if known else one
    return list(found.values())


def _export(record: ExportEnded, context: ExplainContext) -> Export:
    return Export(
        way=ExportWay(record.way),
        name=record.target,
        site=context.site_of(record.code) if record.code else None,
        caller=_caller(record, context),
        strict=record.strict,
        status=ExportStatus.DONE if record.error is None else ExportStatus.FAILED,
        count=1,
        ops=record.ops,
        seconds=record.seconds,
    )


def export_failures(records: Iterable[Record], context: ExplainContext) -> list[ExportFailure]:
    """The problems, those in the user's code first."""
    found: dict[Hashable, ExportFailure] = {}
    for record in records:
        if isinstance(record, ExportEnded) and record.error is not None:
            failure = _failure(record, problem_of(record.error, record.text), context)
            key = _key(failure)
            known = found.get(key)
            found[key] = _joined(known, failure) if known else failure
    nearness = (Origin.USER, Origin.LIBRARY, Origin.FRAMEWORK)
    return sorted(found.values(), key=lambda one: nearness.index(one.origin))


def _failure(record: ExportEnded, read: ProblemRead, context: ExplainContext) -> ExportFailure:
    is_untraceable = read.problem is ExportProblem.UNTRACEABLE
    cause = parse_causes(record.text)[0] if is_untraceable else None
    # Of sizes, torch names the line with strict=True alone.
    own = _programs(
        user_frames(record.text) if record.text and read.problem in _AT_THE_CALL else record.failed_at, context
    )
    through = own or _programs(record.stack, context) or list(record.stack)
    at = through[-1]
    is_branch = read.problem is ExportProblem.TEST or (cause is not None and branches_on_data(cause.gb_type))
    origin = context.origin(at.path)
    form = context.sources.form(at.path, at.line, at.column, at.end_column) if is_branch else None
    return ExportFailure(
        problem=ExportProblem.TEST if is_branch else read.problem,
        about=read.about,
        reason=reason_of(cause) if cause else read.said or _first_line(record, read),
        fixes=read.fixes,
        rule=context.rule_for(cause, form, at, through[:-1], origin) if cause else None,
        gb_type=cause.gb_type if cause else None,
        gb_id=cause.gb_id if cause else None,
        hints=cause.hints if cause else (),
        site=context.sources.site(at.path, at.line, at.column, at.end_column, is_branch=is_branch),
        function=context.function(at.path, at.line, at.name),
        origin=origin,
        count=1,
        exports=(ExportTry(ExportWay(record.way), record.target, record.strict, _caller(record, context)),),
        stack=tuple(map(context.caller, own)),
        code=context.sources.line(at.path, at.line),
        text=record.text,
    )


def _key(failure: ExportFailure) -> Hashable:
    """The identity of a problem that one change would fix.  Torch words a test on data in many ways: by its own
    symbols, and otherwise with ``strict=True``."""
    if failure.problem in _QUOTES_TORCH:
        return _QUOTES_TORCH, failure.site
    if failure.problem in (ExportProblem.NO_FAKE_KERNEL, *_TYPES):
        return failure.problem, failure.about
    where = failure.exports[0].name if failure.problem is ExportProblem.SIZES else failure.site
    return failure.problem, where, failure.about, failure.gb_type or failure.reason


def _joined(known: ExportFailure, other: ExportFailure) -> ExportFailure:
    """Two problems as one.  A break, which rules know, says more."""
    most = max((known, other), key=lambda one: (one.rule is not None, bool(one.stack)))
    rest = other if most is known else known
    return replace(
        most,
        about=most.about or rest.about,
        count=known.count + other.count,
        exports=tuple(dict.fromkeys((*known.exports, *other.exports))),
        text=most.text or rest.text,
    )


def _first_line(record: ExportEnded, read: ProblemRead) -> str:
    """The exception, in one line; empty where the problem says it."""
    if read.problem is not ExportProblem.ERROR:
        return ""
    cause = parse_causes(record.text)[0]
    said = reason_of(cause) if cause.explanation else next(filter(str.strip, record.text.splitlines()), "").strip()
    return f"{record.error}: {said}" if said else str(record.error)


def _programs(stack: Iterable[StackFrame], context: ExplainContext) -> list[StackFrame]:
    return [frame for frame in stack if context.owners.is_programs(frame.path)]


def _caller(record: ExportEnded, context: ExplainContext) -> Caller | None:
    """The line that asked for the export."""
    return next(iter(reversed(context.callers(record.stack))), None)
