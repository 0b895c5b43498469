"""The exports of a run, and each problem that stood against one: once, however many exports met it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from breakscan.explain.callers import Caller
from breakscan.explain.context import ExplainContext, reason_of
from breakscan.explain.exported import Export, ExportFailure, ExportStatus, ExportTry, ExportWay
from breakscan.model.findings import Origin
from breakscan.record.parsers.break_text import branches_on_data, parse_causes
from breakscan.record.parsers.export_errors import ExportProblem, ProblemRead, problem_of, problem_of_draft
from breakscan.record.records import ExportEnded, Record, StackFrame

_BY_DATA = (ExportProblem.TEST, ExportProblem.NUMBER)
_TYPES = (ExportProblem.INPUT, ExportProblem.OUTPUT)
_OPERATORS = (ExportProblem.NO_FAKE_KERNEL, ExportProblem.WRONG_FAKE_KERNEL)
_AT_THE_CALL = (ExportProblem.SIZES, *_TYPES)
"""Torch finds these before it traces, or when all is traced, and names no line."""


def exports(records: Iterable[Record], context: ExplainContext) -> list[Export]:
    """What was exported, in order."""
    found: dict[Hashable, Export] = {}
    for record in records:
        if isinstance(record, ExportEnded):
            one = _export(record, context)
            key = replace(one, count=0, seconds=0.0)
            known = found.get(key)
            found[key] = replace(known, count=known.count + 1, seconds=known.seconds + one.seconds) if known else one
    return list(found.values())


def _export(record: ExportEnded, context: ExplainContext) -> Export:
    ended = ExportStatus.UNSOUND if record.issues else ExportStatus.DONE
    return Export(
        way=ExportWay(record.way),
        name=record.target,
        site=context.site_of(record.code) if record.code else None,
        caller=_caller(record, context),
        strict=record.strict,
        status=ExportStatus.FAILED if record.error is not None else ended,
        count=1,
        ops=record.ops,
        seconds=record.seconds,
    )


def export_failures(records: Iterable[Record], context: ExplainContext) -> list[ExportFailure]:
    """The problems: those that ended an export come first, and of these, those in the user's code."""
    found: dict[Hashable, ExportFailure] = {}
    for record in records:
        for met in _met(record) if isinstance(record, ExportEnded) else ():
            failure = _failure(met, context)
            key = _key(failure)
            known = found.get(key)
            found[key] = _joined(known, failure) if known else failure
    nearness = (Origin.USER, Origin.LIBRARY, Origin.FRAMEWORK)
    return sorted(found.values(), key=lambda one: (not one.fatal, nearness.index(one.origin)))


@dataclass(frozen=True, slots=True)
class _Met:
    """A problem that an export met, with the stack at which it did, how often, and torch's text if it ended it."""

    record: ExportEnded
    read: ProblemRead
    stack: Sequence[StackFrame]
    count: int
    text: str


def _met(record: ExportEnded) -> Iterator[_Met]:
    for issue in record.issues:
        yield _Met(record, problem_of_draft(issue.kind, issue.about, issue.reason), issue.stack, issue.count, "")
    if record.error is not None:
        yield _Met(record, problem_of(record.error, record.text), record.failed_at, 1, record.text)


def _failure(met: _Met, context: ExplainContext) -> ExportFailure:
    read, record = met.read, met.record
    is_untraceable = read.problem is ExportProblem.UNTRACEABLE
    cause = parse_causes(met.text)[0] if is_untraceable else None
    own = [] if met.text and read.problem in _AT_THE_CALL else _programs(met.stack, context)
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
        count=met.count,
        fatal=bool(met.text) or record.error is not None,
        exports=(ExportTry(ExportWay(record.way), record.target, record.strict, _caller(record, context)),),
        stack=tuple(map(context.caller, own)),
        code=context.sources.line(at.path, at.line),
        text=met.text,
    )


def _key(failure: ExportFailure) -> Hashable:
    """What one change would mend.  Torch words a test on data in many ways: by its own symbols, and otherwise with
    ``strict=True``."""
    if failure.problem in _BY_DATA:
        return _BY_DATA, failure.site
    if failure.problem in (*_OPERATORS, *_TYPES):
        return failure.problem, failure.about
    return failure.problem, failure.site, failure.about, failure.gb_type or failure.reason


def _joined(known: ExportFailure, other: ExportFailure) -> ExportFailure:
    """Both as one.  What ended an export tells more, and so does a break, which rules know."""
    most = max((known, other), key=lambda one: (one.rule is not None, one.fatal, bool(one.stack)))
    rest = other if most is known else known
    return replace(
        most,
        about=most.about or rest.about,
        count=known.count + other.count,
        fatal=known.fatal or other.fatal,
        exports=tuple(dict.fromkeys((*known.exports, *other.exports))),
        text=most.text or rest.text,
    )


def _first_line(record: ExportEnded, read: ProblemRead) -> str:
    """What was raised, in one line; empty where the problem says it."""
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
