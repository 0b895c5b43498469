"""Gathers the recorded breaks: each site once, with all that happened there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from breakscan.findings import Origin, Place, Site, Verdict
from breakscan.runtime.breaktext import frame_skipped, parse_causes, traceback_frames
from breakscan.runtime.explanation import BreakSite
from breakscan.runtime.lens import Lens, reason_of
from breakscan.runtime.recording import (
    BreakSeen,
    BreakTraced,
    Code,
    CompileStarted,
    Record,
    StackFrame,
)

Key = tuple[Site, str]
"""What makes two breaks the same: site and type."""

_BRANCHING = "Data-dependent branching"
_SEVERITY = {Verdict.RAISES: 0, Verdict.EAGER: 1, Verdict.SPLITS: 2}
_NEARNESS = {Origin.USER: 0, Origin.LIBRARY: 1, Origin.FRAMEWORK: 2}


def breaks_of(records: Iterable[Record], hooked: bool) -> Iterator[BreakSeen]:
    """The breaks of one process; from the structured trace alone where the better hook is missing."""
    codes: dict[str, Code] = {}
    for record in records:
        if isinstance(record, CompileStarted):
            codes[record.compile_id] = record.code
        elif isinstance(record, BreakSeen):
            # Without the hook, these are the ones that raised: the trace does not have them.
            yield record
        elif isinstance(record, BreakTraced) and not hooked:
            stack = tuple(StackFrame(*frame) for frame in traceback_frames(record.text))
            code = codes.get(record.compile_id, Code("<unknown>", 1, "<unknown>"))
            yield BreakSeen(record.compile_id, code, record.text, stack, frame_skipped(record.text), False)


def break_sites(
    breaks: Sequence[BreakSeen], started: Mapping[str, CompileStarted], lens: Lens
) -> tuple[list[BreakSite], dict[Key, BreakSite]]:
    """The sites in the order of a report, and by their key.  ``started`` tells the stack above each compile."""
    groups: dict[Key, list[BreakSeen]] = {}
    for seen in breaks:
        groups.setdefault(break_key(seen, lens), []).append(seen)
    sites = {key: _site(key[0], group, started, lens) for key, group in groups.items()}
    ordered = sorted(
        sites.values(),
        key=lambda s: (_NEARNESS[s.origin], _SEVERITY[s.verdict], s.site.path, s.site.line, s.site.column),
    )
    return ordered, sites


def break_key(seen: BreakSeen, lens: Lens) -> Key:
    where = _where(seen, lens)
    gb_type = parse_causes(seen.text)[0].gb_type
    is_branch = gb_type.startswith(_BRANCHING)
    return lens.sources.site(where.path, where.line, where.column, where.end_column, is_branch=is_branch), gb_type


def is_skipped(seen: BreakSeen) -> bool:
    """Whether the break gave the frame up that was being compiled."""
    return not seen.raised and (seen.skipped or frame_skipped(seen.text))


def _where(seen: BreakSeen, lens: Lens) -> StackFrame:
    """The innermost frame that is not the standard library's: what it breaks on, it was called for."""
    frames = [frame for frame in seen.stack if not lens.owners.is_standard(frame.path)] or list(seen.stack)
    return frames[-1] if frames else StackFrame(seen.frame.path, seen.frame.line, seen.frame.name)


def _site(site: Site, group: Sequence[BreakSeen], started: Mapping[str, CompileStarted], lens: Lens) -> BreakSite:
    first = group[0]
    where = _where(first, lens)
    root = parse_causes(first.text)[0]
    origin = lens.origin(where.path)
    rule = lens.rule_for(root, lens.sources.form(where.path, where.line, where.column, where.end_column), origin)
    given_up = [lens.part_of(seen.frame) for seen in group if is_skipped(seen)]
    begun = started.get(first.compile_id or "")
    above = begun.stack if begun else ()
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
        stack=lens.callers((*above, *first.stack)),
    )


def _verdict(group: Sequence[BreakSeen]) -> Verdict:
    """The worst that happened there."""
    if any(seen.raised for seen in group):
        return Verdict.RAISES
    return Verdict.EAGER if any(is_skipped(seen) for seen in group) else Verdict.SPLITS


def _consequence(group: Sequence[BreakSeen]) -> str | None:
    """The type of the break that followed from the first, where a frame was given up."""
    causes = [parse_causes(seen.text) for seen in group if is_skipped(seen)]
    return next((cause[1].gb_type for cause in causes if len(cause) > 1), None)


def _place(group: Sequence[BreakSeen], lens: Lens) -> Place:
    """What the break stands in, of the things that make Dynamo give a frame up, in its function or a caller's.

    A try does so always, a with block where its manager cannot be left and entered again; a loop is told by the
    break's own text, and only needs a guess where that is missing.
    """
    found: set[Place] = set()
    for seen in group:
        if is_skipped(seen):
            for frame in seen.stack:
                found |= lens.sources.places(frame.path, frame.line, frame.column)
    return next((place for place in (Place.TRY, Place.WITH, Place.LOOP) if place in found), Place.PLAIN)
