"""Gathers the recorded breaks: each site once, with all that happened there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from breakscan.explain.context import ExplainContext, reason_of
from breakscan.explain.explanation import BreakSite, FunctionPart
from breakscan.model.findings import Origin, Place, Site, Verdict
from breakscan.model.observations import ValueSeen
from breakscan.record.parsers.break_text import (
    branches_on_data,
    chained,
    frame_skipped,
    logging_method,
    parse_causes,
    rest_skipped,
)
from breakscan.record.parsers.frames import is_of_comprehension, is_resumed
from breakscan.record.records import BreakSeen, CompileStarted, Record, StackFrame

Key = tuple[Site, str]
"""What makes two breaks the same: site and type."""

_SEVERITY = {Verdict.RAISES: 0, Verdict.EAGER: 1, Verdict.SPLITS: 2}
_NEARNESS = {Origin.USER: 0, Origin.LIBRARY: 1, Origin.FRAMEWORK: 2}


def breaks_of(records: Iterable[Record]) -> Iterator[BreakSeen]:
    """The breaks of one process.

    Where Dynamo has found a break, it starts over and ends the graph there.  If that fails, it records another break
    at the same place: what followed from the first.
    """
    found: dict[tuple[str, str, int, int | None], BreakSeen] = {}
    for number, seen in enumerate(record for record in records if isinstance(record, BreakSeen)):
        outermost = seen.stack[0] if seen.stack else None
        key = (
            seen.compile_id or f"#{number}",
            *((outermost.path, outermost.line, outermost.column) if outermost else ("", number, None)),
        )
        first = found.get(key)
        found[key] = _with_consequence(first, seen) if first and not first.skipped else seen
    yield from found.values()


def _with_consequence(first: BreakSeen, second: BreakSeen) -> BreakSeen:
    return replace(
        first, text=chained(first.text, second.text), skipped=is_skipped(second), raised=first.raised or second.raised
    )


class BreakSites:
    """Which site each break belongs to."""

    def __init__(self, breaks: Sequence[BreakSeen], lens: ExplainContext) -> None:
        self._lens = lens
        self._led_to: dict[tuple[StackFrame, str], Key] = {}
        for seen in breaks:
            innermost, own = _frames(seen, lens)
            if own:
                self._led_to.setdefault((innermost, _type(seen)), self._key(own, seen))

    def key(self, seen: BreakSeen) -> Key:
        """Code of torch is compiled with the code that calls it, and where that fails once more alone: the site of
        both is the call."""
        innermost, own = _frames(seen, self._lens)
        if own is None and (known := self._led_to.get((innermost, _type(seen)))):
            return known
        return self._key(own or innermost, seen)

    def _key(self, where: StackFrame, seen: BreakSeen) -> Key:
        is_branch = branches_on_data(_type(seen))
        sources = self._lens.sources
        return sources.site(where.path, where.line, where.column, where.end_column, is_branch=is_branch), _type(seen)


def break_sites(
    breaks: Sequence[BreakSeen],
    keys: BreakSites,
    started: Mapping[str, CompileStarted],
    values: Mapping[tuple[str, int], Mapping[str, ValueSeen]],
    lens: ExplainContext,
) -> dict[Key, BreakSite]:
    """Returns the sites in the order of a report.  ``started`` holds the stack above each compile, ``values`` what the
    names on lines were."""
    groups: dict[Key, list[BreakSeen]] = {}
    for seen in breaks:
        groups.setdefault(keys.key(seen), []).append(seen)
    sites = {key: _site(key[0], group, started, values, lens) for key, group in groups.items()}
    return dict(
        sorted(
            sites.items(),
            key=lambda item: (
                _NEARNESS[item[1].origin],
                _SEVERITY[item[1].verdict],
                item[1].site.path,
                item[1].site.line,
                item[1].site.column,
            ),
        )
    )


def is_skipped(seen: BreakSeen) -> bool:
    """Whether the frame that was being compiled falls back to eager."""
    return not seen.raised and (seen.skipped or frame_skipped(seen.text))


def _type(seen: BreakSeen) -> str:
    return parse_causes(seen.text)[0].gb_type


def _frames(seen: BreakSeen, lens: ExplainContext) -> tuple[StackFrame, StackFrame | None]:
    """The innermost traced frame, the standard library's aside, and the innermost that is not torch's either: None
    where Dynamo compiles code of torch alone."""
    frames = [frame for frame in seen.stack if not lens.owners.is_standard(frame.path)] or list(seen.stack)
    own = [frame for frame in frames if lens.owners.is_programs(frame.path)]
    innermost = frames[-1] if frames else StackFrame(seen.frame.path, seen.frame.line, seen.frame.name)
    return innermost, own[-1] if own else None


def _site(
    site: Site,
    group: Sequence[BreakSeen],
    started: Mapping[str, CompileStarted],
    values: Mapping[tuple[str, int], Mapping[str, ValueSeen]],
    lens: ExplainContext,
) -> BreakSite:
    first = group[0]
    innermost, own = _frames(first, lens)
    where = own or innermost
    root = parse_causes(first.text)[0]
    begun = started.get(first.compile_id or "")
    above = begun.stack if begun else ()
    origin = _origin(where, above, lens)
    form = lens.sources.form(where.path, where.line, where.column, where.end_column)
    rule = lens.rule_for(root, form, where, first.stack[first.stack.index(where) + 1 :] if own else (), origin)
    given_up = [_given_up(seen, lens) for seen in group if is_skipped(seen)]
    return BreakSite(
        rule=rule,
        gb_type=root.gb_type,
        gb_id=root.gb_id,
        reason=reason_of(root),
        hints=root.hints,
        advice=rule.instead if rule else None,
        site=site,
        function=lens.function(where.path, where.line, where.name),
        origin=origin,
        place=_place(group, lens),
        count=len(group),
        verdict=_verdict(group),
        consequence=_consequence(group),
        given_up=tuple(dict.fromkeys(given_up)),
        compile_ids=tuple(dict.fromkeys(seen.compile_id for seen in group if seen.compile_id)),
        stack=lens.way(above, first.frame, first.stack),
        code=lens.sources.line(where.path, site.line),
        values=values.get((where.path, where.line), {}),
        logging_method=logging_method(root),
    )


def _given_up(seen: BreakSeen, lens: ExplainContext) -> FunctionPart:
    rest_only = rest_skipped(seen.text) or is_resumed(seen.frame.name)
    return FunctionPart(lens.function_of(seen.frame), rest_only)


def _origin(where: StackFrame, above: Sequence[StackFrame], lens: ExplainContext) -> Origin:
    """Whose the code is; the standard library's is torch's where torch called it."""
    callers = [frame for frame in above if not lens.owners.is_standard(frame.path)]
    if lens.owners.is_standard(where.path) and callers and lens.origin(callers[-1].path) is Origin.FRAMEWORK:
        return Origin.FRAMEWORK
    return lens.origin(where.path)


def _verdict(group: Sequence[BreakSeen]) -> Verdict:
    """The worst that happened there."""
    if any(seen.raised for seen in group):
        return Verdict.RAISES
    return Verdict.EAGER if any(is_skipped(seen) for seen in group) else Verdict.SPLITS


def _consequence(group: Sequence[BreakSeen]) -> str | None:
    """The type of the break that followed from the first, where a frame fell back to eager."""
    causes = [parse_causes(seen.text) for seen in group if is_skipped(seen)]
    return next((cause[1].gb_type for cause in causes if len(cause) > 1), None)


def _place(group: Sequence[BreakSeen], lens: ExplainContext) -> Place:
    """What the break stands in, of the things that make Dynamo give a frame up, in its function or a caller's.

    A try does so always, a with block where its manager cannot be left and entered again; a loop is known from the
    break's own text, and only needs a guess where that is missing.
    """
    found: set[Place] = set()
    for seen in group:
        if is_skipped(seen):
            for frame in seen.stack:
                if is_of_comprehension(frame.name):
                    # What stands around it is around its caller.
                    found.add(Place.LOOP)
                else:
                    found |= lens.sources.places(frame.path, frame.line, frame.column)
    return next((place for place in (Place.TRY, Place.WITH, Place.LOOP) if place in found), Place.PLAIN)
