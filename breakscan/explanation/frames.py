"""Functions that were to be compiled and are not: what became of them, and why."""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from breakscan.explanation.breaks import NEARNESS, BreakSite, BreakSites, Key, is_skipped
from breakscan.explanation.context import ExplainContext, reason_of
from breakscan.model.findings import Origin, Site
from breakscan.model.problem import Caller, Price
from breakscan.model.words import Worded
from breakscan.recording.parsers.frames import (
    ExportProblem,
    is_forbidden,
    is_generator,
    is_resumed,
    limit_reason,
    parse_causes,
    problem_of,
    skip_reason,
    user_frames,
)
from breakscan.recording.parsers.guards import readable
from breakscan.recording.records import (
    BreakSeen,
    Code,
    CompileCalled,
    CompileStarted,
    FrameEnded,
    GraphCompiled,
    Record,
    StackFrame,
)
from breakscan.rulebook.document import Rule


class FrameStatus(Worded):
    EAGER = "eager", "runs eager"  # as plain Python
    RAISED = "raised", "fails to compile"
    PASSED_OVER = "passed-over", "has nothing to compile"


@dataclass(frozen=True, slots=True)
class UncompiledFrame:
    """A function that was to be compiled and is not.  ``rest_only`` says that it is the part after a break; ``reason``
    is a clause, and ``quoted`` what torch or an exception says, where that is another text; ``break_site`` is the break
    that caused it, where one did; ``over_limit`` says that it was recompiled too often; ``code`` is its first line.

    Of a failure, ``stack`` is the way to the line that could not be compiled, outermost first, and ``failed_at`` that
    line, with its text in ``failed_code``; None where torch does not name it.  ``helps`` names the remedy, where what
    failed decides on it; ``only_compiled`` says that plain code cannot raise it."""

    function: str
    site: Site
    origin: Origin
    status: FrameStatus
    rest_only: bool
    reason: str
    rule: Rule | None = None
    gb_type: str | None = None
    gb_id: str | None = None
    break_site: Site | None = None
    over_limit: bool = False
    count: int = 1
    price: Price | None = None
    code: str | None = None
    stack: tuple[Caller, ...] = ()
    failed_at: Site | None = None
    failed_code: str | None = None
    hints: tuple[str, ...] = ()
    helps: str | None = None
    only_compiled: bool = False
    quoted: str | None = None


_WRAPPED = "InternalTorchDynamoError"  # Dynamo's own exception, around that of whatever it ran while it traced
_RAISES_OVER_LIMIT = "it was recompiled more often than torch allows, which is an error here"
_NOT_SAID = "the compiler passed it over, and does not say why"
_ORDER = (FrameStatus.RAISED, FrameStatus.EAGER, FrameStatus.PASSED_OVER)


@dataclass(frozen=True, slots=True)
class Ending:
    """A frame that ended uncompiled, with the break that did it, where one did, and the known stack above it."""

    frame: FrameEnded
    cause: BreakSeen | None = None
    above: tuple[StackFrame, ...] = ()


def endings_of(records: Iterable[Record], breaks: Sequence[BreakSeen]) -> Iterator[Ending]:
    """The frames of one process that ended uncompiled, each with its break."""
    causes: dict[Code, deque[BreakSeen]] = defaultdict(deque)
    for seen in breaks:
        if seen.raised or is_skipped(seen):
            causes[seen.frame].append(seen)
    above: dict[Code, tuple[StackFrame, ...]] = {}
    for record in records:
        if isinstance(record, CompileStarted):
            above[record.code] = record.stack
        elif isinstance(record, FrameEnded):
            broke = record.error is not None and not record.limit and bool(causes[record.frame])
            cause = causes[record.frame].popleft() if broke else None
            yield Ending(record, cause, above.get(record.frame, ()))


def frame_fates(
    endings: Sequence[Ending], keys: BreakSites, sites: Mapping[Key, BreakSite], context: ExplainContext
) -> list[UncompiledFrame]:
    """Each function once an end and a reason, in the order of a report."""
    graphs, targets = context.of(GraphCompiled), {call.code for call in context.of(CompileCalled)}
    fates: dict[tuple[Code, FrameStatus, str], UncompiledFrame] = {}
    settled = {graph.frame for graph in graphs} | {e.frame.frame for e in endings if e.frame.error}
    for ending in endings:
        frame = ending.frame
        is_users = context.origin(frame.frame.path) is Origin.USER
        if frame.error is None and (frame.frame in settled or (graphs and not is_users)):
            # Passed over on one call and compiled on another, or expected, as the shell around a user's model is.
            continue
        if is_generator(frame.text) and not is_users and frame.frame not in targets:
            # Generators of libraries run as plain Python wherever they are called from plain Python.
            continue
        fate = _fate(ending, keys, sites, context)
        fate = fate if fate.reason else replace(fate, reason=_NOT_SAID, quoted="")
        key = (frame.frame, fate.status, fate.reason)
        known = fates.get(key)
        fates[key] = replace(known, count=known.count + 1) if known else fate
    return sorted(
        fates.values(), key=lambda f: (NEARNESS.index(f.origin), _ORDER.index(f.status), f.site.path, f.site.line)
    )


def _fate(ending: Ending, keys: BreakSites, sites: Mapping[Key, BreakSite], context: ExplainContext) -> UncompiledFrame:
    frame = ending.frame
    status = FrameStatus.RAISED if frame.raised else FrameStatus.EAGER if frame.error else FrameStatus.PASSED_OVER
    fate = UncompiledFrame(
        function=context.function_of(frame.frame),
        site=context.site_of(frame.frame),
        origin=context.origin(frame.frame.path),
        status=status,
        rest_only=is_resumed(frame.frame.name),
        reason="",
        code=context.sources.line(context.place_of(frame.frame)[0], context.site_of(frame.frame).line),
    )
    if ending.cause is not None:
        known = sites[keys.key(ending.cause)]
        fate = replace(fate, reason=known.reason, rule=known.rule, break_site=known.site)
        return replace(fate, gb_type=known.gb_type, gb_id=known.gb_id)
    if frame.error is None:
        return replace(fate, reason=skip_reason(frame.text) or next(iter(frame.text.splitlines()), ""))
    cause = parse_causes(frame.text)[0]
    stack = frame.stack or user_frames(frame.text)
    innermost = stack[-1] if stack else StackFrame(frame.frame.path, frame.frame.line, frame.frame.name)
    rule = context.rule_for(cause, None, innermost, (), fate.origin)
    way = context.way(ending.above, frame.frame, stack)
    fate = replace(fate, rule=rule, stack=way, only_compiled=frame.compilers)
    if stack:
        # The last line that is not torch's: below it, there is nothing that the reader could change.
        last = context.not_torchs(stack)[-1]
        site = context.sources.site(last.path, last.line, last.column, last.end_column)
        fate = replace(fate, failed_at=site, failed_code=context.sources.line(last.path, last.line))
    if frame.error in ("Unsupported", "UserError"):
        return replace(
            fate,
            reason=limit_reason(frame.text) if frame.limit else reason_of(cause),
            gb_type=cause.gb_type,
            gb_id=cause.gb_id,
            hints=() if rule else cause.hints,
            over_limit=frame.limit,
        )
    if frame.limit:
        return replace(fate, reason=_RAISES_OVER_LIMIT, helps="recompile_limit")
    if is_forbidden(frame.text):
        reason = "torch does not allow this call in compiled code"
        return replace(fate, reason=reason, quoted=_error_of(frame), helps="call-before", only_compiled=True)
    read = problem_of(frame.error, frame.text)
    if read.problem is ExportProblem.SIZES:
        said = f"{readable(read.about)} is marked as dynamic: {read.said}"
        return replace(fate, reason=said, quoted=_error_of(frame), helps="size-that-comes")
    if frame.error == _WRAPPED and rule is None and stack:
        error, where = _error_of(frame), PurePath(innermost.path).name
        reason = f"while Dynamo traced {where}:{innermost.line}, this was raised: {error}"
        return replace(fate, reason=reason, quoted=error, helps="run-outside")
    is_dynamos = frame.error == AssertionError.__name__ and frame.compilers and stack
    at = (innermost.path, innermost.line, innermost.column, innermost.end_column)
    if is_dynamos and context.sources.form(*at) in ("assert", "assert-message"):
        # With torch 2.11, Dynamo itself raises what a failing assert of the program raises.
        return replace(fate, reason=_error_of(frame), only_compiled=False)
    return replace(fate, reason=_error_of(frame), helps="run-outside" if is_dynamos else None)


def _error_of(frame: FrameEnded) -> str:
    cause = parse_causes(frame.text)[0]
    if cause.explanation:
        return reason_of(cause)
    lines = [line.strip() for line in frame.text.splitlines() if line.strip()]
    said = " ".join(lines[:2]) if lines and lines[0].endswith(":") else next(iter(lines), "")
    return said if frame.error == _WRAPPED and re.match(r"\w+(?:Error|Exception)\b", said) else f"{frame.error}: {said}"
