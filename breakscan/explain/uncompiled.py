"""What became of the functions that were to be compiled and are not."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from breakscan.explain.break_sites import BreakSites, Key, is_skipped
from breakscan.explain.context import ExplainContext, reason_of
from breakscan.explain.explanation import BreakSite, FrameStatus, UncompiledFrame
from breakscan.explain.reasons import OverLimit, Quoted, RaisedInTrace, Reason
from breakscan.model.findings import Origin
from breakscan.record.parsers.break_text import parse_causes
from breakscan.record.parsers.frames import is_generator, is_resumed, limit_of, skip_of, user_frames
from breakscan.record.records import BreakSeen, Code, CompileStarted, FrameEnded, GraphCompiled, Record, StackFrame

_WRAPPED = "InternalTorchDynamoError"
"""Dynamo's own exception, around that of whatever it ran while it traced."""
_ORDER = (FrameStatus.RAISED, FrameStatus.EAGER, FrameStatus.PASSED_OVER)
_NEARNESS = (Origin.USER, Origin.LIBRARY, Origin.FRAMEWORK)


@dataclass(frozen=True, slots=True)
class Ending:
    """A frame that ended uncompiled, with the break that did it, where one did, and the stack above the frame, where
    its compilation was seen to start."""

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
    endings: Sequence[Ending],
    graphs: Collection[GraphCompiled],
    targets: Collection[Code | None],
    keys: BreakSites,
    sites: Mapping[Key, BreakSite],
    lens: ExplainContext,
) -> list[UncompiledFrame]:
    """Each function once an end and a reason, in the order of a report."""
    fates: dict[tuple[Code, FrameStatus, Reason], UncompiledFrame] = {}
    settled = {graph.frame for graph in graphs} | {e.frame.frame for e in endings if e.frame.error}
    for ending in endings:
        frame = ending.frame
        is_users = lens.origin(frame.frame.path) is Origin.USER
        if frame.error is None and (frame.frame in settled or (graphs and not is_users)):
            # Passed over on one call and compiled on another, or expected, as the shell around a user's model is.
            continue
        if is_generator(frame.text) and not is_users and frame.frame not in targets:
            # Generators of libraries run as plain Python wherever they are called from plain Python.
            continue
        fate = _fate(ending, keys, sites, lens)
        key = (frame.frame, fate.status, fate.reason)
        known = fates.get(key)
        fates[key] = replace(known, count=known.count + 1) if known else fate
    return sorted(
        fates.values(),
        key=lambda f: (_NEARNESS.index(f.origin), _ORDER.index(f.status), f.site.path, f.site.line),
    )


def _fate(ending: Ending, keys: BreakSites, sites: Mapping[Key, BreakSite], lens: ExplainContext) -> UncompiledFrame:
    frame = ending.frame
    status = FrameStatus.RAISED if frame.raised else FrameStatus.EAGER if frame.error else FrameStatus.PASSED_OVER
    fate = UncompiledFrame(
        function=lens.function_of(frame.frame),
        site=lens.site_of(frame.frame),
        origin=lens.origin(frame.frame.path),
        status=status,
        rest_only=is_resumed(frame.frame.name),
        reason=Quoted(""),
        rule=None,
        gb_type=None,
        gb_id=None,
        advice=None,
        break_site=None,
        over_limit=False,
        count=1,
        code=lens.sources.line(lens.place_of(frame.frame)[0], lens.site_of(frame.frame).line),
    )
    if ending.cause is not None:
        site = sites[keys.key(ending.cause)]
        return replace(
            fate,
            reason=Quoted(site.reason),
            rule=site.rule,
            gb_type=site.gb_type,
            gb_id=site.gb_id,
            advice=site.advice,
            break_site=site.site,
        )
    if frame.error is None:
        return replace(fate, reason=_skipped(frame.text))
    cause = parse_causes(frame.text)[0]
    stack = frame.stack or user_frames(frame.text)
    innermost = stack[-1] if stack else StackFrame(frame.frame.path, frame.frame.line, frame.frame.name)
    rule = lens.rule_for(cause, None, innermost, (), fate.origin)
    fate = _with_stack(fate, ending, stack, lens)
    if frame.error in ("Unsupported", "UserError"):
        return replace(
            fate,
            reason=OverLimit(limit_of(frame.text)) if frame.limit else Quoted(reason_of(cause)),
            rule=rule,
            gb_type=cause.gb_type,
            gb_id=cause.gb_id,
            advice=rule.instead if rule else next(iter(cause.hints), None),
            over_limit=frame.limit,
        )
    if rule is not None:
        fate = replace(fate, rule=rule, advice=rule.instead)
    if frame.limit:
        return replace(fate, reason=OverLimit(None, raises=True))
    if frame.error == _WRAPPED and rule is None and stack:
        where = lens.sources.show(innermost.path)
        return replace(fate, reason=RaisedInTrace(where, innermost.line, _error_of(frame)))
    return replace(fate, reason=Quoted(_error_of(frame)))


def _with_stack(
    fate: UncompiledFrame, ending: Ending, traced: Sequence[StackFrame], lens: ExplainContext
) -> UncompiledFrame:
    """With the way to the line that failed."""
    fate = replace(fate, stack=lens.way(ending.above, ending.frame.frame, traced))
    if not traced:
        return fate
    # The last line that is not torch's: below it, there is nothing that the reader could change.
    where = lens.not_torchs(traced)[-1]
    return replace(
        fate,
        failed_at=lens.sources.site(where.path, where.line, where.column, where.end_column),
        failed_code=lens.sources.line(where.path, where.line),
    )


def _skipped(text: str) -> Reason:
    return skip_of(text) or Quoted(next(iter(text.splitlines()), ""))


def _error_of(frame: FrameEnded) -> str:
    """What was raised, in one line."""
    cause = parse_causes(frame.text)[0]
    if cause.explanation:
        return reason_of(cause)
    lines = [line.strip() for line in frame.text.splitlines() if line.strip()]
    said = " ".join(lines[:2]) if lines and lines[0].endswith(":") else next(iter(lines), "")
    return said if frame.error == _WRAPPED and re.match(r"\w+(?:Error|Exception)\b", said) else f"{frame.error}: {said}"
