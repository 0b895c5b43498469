"""Graph breaks: each site once, with all that happened there."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from breakscan.explanation.context import SIZES, ExplainContext, reason_of
from breakscan.model.findings import Origin, Place, Site, Verdict
from breakscan.model.problem import Caller, Price
from breakscan.model.words import grouped
from breakscan.recording.parsers.frames import (
    BreakCause,
    branches_on_data,
    chained,
    disabled_function,
    frame_skipped,
    is_of_comprehension,
    is_resumed,
    is_wrong_type,
    jumps_on_tensor,
    logging_method,
    parse_causes,
    rest_skipped,
)
from breakscan.recording.records import BreakSeen, Record, StackFrame
from breakscan.rulebook.document import GB, Rule
from breakscan.rulebook.remedies import ASKS_FOR_NAMES, NESTED
from breakscan.source.spans import without_locals


@dataclass(frozen=True, slots=True)
class FunctionPart:
    """A function, or with ``rest_only`` the part of it that follows a graph break."""

    function: str
    rest_only: bool = False

    @property
    def words(self) -> str:
        return f"the rest of {self.function}" if self.rest_only else self.function


@dataclass(frozen=True, slots=True)
class BreakSite:
    """All occurrences of one graph break at one site.

    ``reason`` is Dynamo's own, in one line; ``consequence`` the type of the break that followed from it, such
    as the loop around it; ``given_up`` the functions that run eager because of it; ``stack`` the way there,
    outermost first; ``code`` the line on which the site begins, without the blanks around it; ``logging_method`` what
    logs there, as an expression that any code can evaluate.  ``remedies`` are the names of those that the code there
    decides on, ``disabled`` the function that is kept out of the compiler, and where it is defined; ``keeps`` says that
    it adds to what an attribute holds.  If ``is_whole``, the function does nothing else; ``hooked`` is the only line
    that registers a backward hook.  ``is_causal`` is the argument of that name of an attention that cannot be traced
    with it.  ``in_thread`` says that another thread than the main one calls the compiled function.  If
    ``checkpointed``, it is in what a checkpoint calls; if ``fails``, an assert whose test is no tensor, and false."""

    rule: Rule | None
    gb_type: str
    gb_id: str | None
    reason: str
    hints: tuple[str, ...]
    site: Site
    function: str | None
    origin: Origin
    place: Place
    count: int
    verdict: Verdict
    consequence: str | None
    given_up: tuple[FunctionPart, ...]
    compile_ids: tuple[str, ...]
    stack: tuple[Caller, ...]
    price: Price | None = None
    code: str | None = None
    logging_method: str | None = None
    remedies: tuple[str, ...] = ()
    disabled: Caller | None = None
    keeps: bool = False
    is_whole: bool = False
    hooked: Caller | None = None
    is_causal: str | None = None
    in_thread: bool = False
    checkpointed: bool = False
    fails: bool = False


Key = tuple[Site, str]  # the identity of a break: its site and type
WORST_FIRST = (Verdict.RAISES, Verdict.EAGER, Verdict.SPLITS)
NEARNESS = (Origin.USER, Origin.LIBRARY, Origin.FRAMEWORK)


def breaks_of(records: Iterable[Record]) -> Iterator[BreakSeen]:
    """The breaks of one process.  Where Dynamo has found a break, it starts over and ends the graph there.  If that
    fails, it records another break at the same place: what followed from the first."""
    found: dict[tuple[str, str, int, int | None], BreakSeen] = {}
    for number, seen in enumerate(record for record in records if isinstance(record, BreakSeen)):
        outermost = seen.stack[0] if seen.stack else None
        key = (
            seen.compile_id or f"#{number}",
            *((outermost.path, outermost.line, outermost.column) if outermost else ("", number, None)),
        )
        first = found.get(key)
        if first and not first.skipped:
            raised, text = first.raised or seen.raised, chained(first.text, seen.text)
            seen = replace(first, text=text, skipped=is_skipped(seen), raised=raised)
        found[key] = seen
    yield from found.values()


class BreakSites:
    def __init__(self, breaks: Sequence[BreakSeen], context: ExplainContext) -> None:
        self._context = context
        self._led_to: dict[tuple[StackFrame, str], Key] = {}
        for seen in breaks:
            innermost, own = _frames(seen, context)
            if own:
                self._led_to.setdefault((innermost, _type(seen)), self._key(own, seen))

    def key(self, seen: BreakSeen) -> Key:
        """Where code of torch fails in the code that calls it and once more alone, the site of both is the call."""
        innermost, own = _frames(seen, self._context)
        if own is None and (known := self._led_to.get((innermost, _type(seen)))):
            return known
        return self._key(own or innermost, seen)

    def _key(self, where: StackFrame, seen: BreakSeen) -> Key:
        is_branch = branches_on_data(_type(seen))
        sources = self._context.sources
        return sources.site(where.path, where.line, where.column, where.end_column, is_branch=is_branch), _type(seen)


def break_sites(breaks: Sequence[BreakSeen], keys: BreakSites, context: ExplainContext) -> dict[Key, BreakSite]:
    """The sites in the order of a report."""
    groups = grouped((keys.key(seen), seen) for seen in breaks)
    sites = {key: _site(key[0], group, context) for key, group in groups.items()}
    functions = {name for site in sites.values() if site.rule and site.rule.family == SIZES for name in _names(site)}
    for key, site in sites.items():
        if site.rule and site.rule.id == "BRK205" and not functions.isdisjoint(_names(site)):
            # A list of a tensor whose own size is not known has no length: captured, torch.compile raises.
            sites[key] = replace(site, remedies=())

    def order(item: tuple[Key, BreakSite]) -> tuple[int, int, str, int, int]:
        one, at = item[1], item[1].site
        return NEARNESS.index(one.origin), WORST_FIRST.index(one.verdict), at.path, at.line, at.column

    return dict(sorted(sites.items(), key=order))


def _names(site: BreakSite) -> set[str | None]:
    """The functions that lead to a break."""
    return {site.function, *(caller.function for caller in site.stack)} - {None}


def is_skipped(seen: BreakSeen) -> bool:
    """Return whether the frame that was being compiled falls back to eager."""
    return not seen.raised and (seen.skipped or frame_skipped(seen.text))


def _type(seen: BreakSeen) -> str:
    return parse_causes(seen.text)[0].gb_type


def _frames(seen: BreakSeen, context: ExplainContext) -> tuple[StackFrame, StackFrame | None]:
    """The innermost traced frame that is not the standard library's, and the innermost not torch's either, if any."""
    frames = [frame for frame in seen.stack if not context.owners.is_standard(frame.path)] or list(seen.stack)
    own = [frame for frame in frames if context.owners.is_programs(frame.path)]
    innermost = frames[-1] if frames else StackFrame(seen.frame.path, seen.frame.line, seen.frame.name)
    return innermost, own[-1] if own else None


def _site(site: Site, group: Sequence[BreakSeen], context: ExplainContext) -> BreakSite:
    first = group[0]
    innermost, own = _frames(first, context)
    where = own or innermost
    root = parse_causes(first.text)[0]
    begun = context.started.get(first.compile_id or "")
    above = begun.stack if begun else ()
    origin = _origin(where, above, context)
    form = context.sources.form(where.path, where.line, where.column, where.end_column)
    disabled = _disabled(root, (*above, *first.stack, where), context)
    # By default, each function on the way is split and what it calls compiled alone, but for one that runs eager.
    depths = {sum(context.owners.is_programs(frame.path) for frame in seen.stack) for seen in group}
    splits = len(depths) - (_verdict(group) is Verdict.EAGER) if depths == set(range(1, len(depths) + 1)) else 0
    fails = form == "assert" and branches_on_data(root.gb_type) and not jumps_on_tensor(root)
    through = first.stack[first.stack.index(where) + 1 :] if own else ()
    rule = None if fails else context.rule_for(root, form, where, through, origin)
    where_in = _place(group, context)
    # In a loop, the functions on the way run eager with it, too.
    is_split = (
        splits > 1 and where_in is not Place.LOOP and not (rule and rule.id == ASKS_FOR_NAMES) and not first.nested
    )
    at_site = context.sources.remedies_at(rule, where.path, site, returns=first.stack[:1] == (where,)) if rule else ()
    hooked = context.sources.only_call(where.path, _BACKWARD_HOOKS) if rule and rule.id == "BRK614" else None
    given_up = [
        FunctionPart(context.function_of(seen.frame), rest_skipped(seen.text) or is_resumed(seen.frame.name))
        for seen in group
        if is_skipped(seen)
    ]
    skipped = [parse_causes(seen.text) for seen in group if is_skipped(seen)]
    return BreakSite(
        rule=rule,
        gb_type=root.gb_type,
        gb_id=root.gb_id,
        reason=_FAILS if fails else reason_of(root),
        hints=root.hints,
        site=site,
        function=context.function(where.path, where.line, where.name),
        origin=origin,
        place=where_in,
        count=len(group),
        verdict=_verdict(group),
        # The type of the break that followed from the first, where a frame fell back to eager.
        consequence=next((cause[1].gb_type for cause in skipped if len(cause) > 1), None),
        given_up=tuple(dict.fromkeys(given_up)),
        compile_ids=tuple(dict.fromkeys(seen.compile_id for seen in group if seen.compile_id)),
        stack=context.way(above, first.frame, first.stack),
        code=context.sources.line(where.path, site.line),
        logging_method=logging_method(root),
        remedies=(*at_site, NESTED) if is_split else at_site,
        disabled=replace(disabled, path=context.sources.show(disabled.path)) if disabled else None,
        keeps=disabled is not None and context.sources.keeps(disabled.path, disabled.line),
        hooked=context.caller(StackFrame(where.path, hooked, "")) if hooked else None,
        is_whole=context.sources.is_whole_body(where),
        is_causal=context.sources.keyword(where, "is_causal") if is_wrong_type(root) else None,
        in_thread=begun is not None and begun.in_thread,
        checkpointed=root.checkpointed and _verdict(group) is not Verdict.RAISES,
        fails=fails,
    )


_FAILS = "the assert fails, and Dynamo leaves it to plain Python to raise"


def _disabled(cause: BreakCause, stack: Sequence[StackFrame], context: ExplainContext) -> Caller | None:
    """The function under ``torch.compiler.disable`` that is called, if its name and its file are known: torch calls a
    hook, which can be of any file on the way there."""
    name = without_locals(disabled_function(cause) or "")
    paths = dict.fromkeys(frame.path for frame in reversed(stack) if context.owners.is_programs(frame.path))
    found = ((path, context.sources.defined_at(path, name)) for path in (paths if name else ()))
    path, line = next((one for one in found if one[1]), ("", None))
    return Caller(path, line, name, context.origin(path)) if line else None


_BACKWARD_HOOKS = ("register_full_backward_hook", "register_full_backward_pre_hook", "register_backward_hook")


def _origin(where: StackFrame, above: Sequence[StackFrame], context: ExplainContext) -> Origin:
    """Whose the code is; the standard library's is torch's where torch called it."""
    callers = [frame for frame in above if not context.owners.is_standard(frame.path)]
    if context.owners.is_standard(where.path) and callers and context.origin(callers[-1].path) is Origin.FRAMEWORK:
        return Origin.FRAMEWORK
    return context.origin(where.path)


def _verdict(group: Sequence[BreakSeen]) -> Verdict:
    """The worst that happened there."""
    if any(seen.raised for seen in group):
        return Verdict.RAISES
    return Verdict.EAGER if any(is_skipped(seen) for seen in group) else Verdict.SPLITS


def _place(group: Sequence[BreakSeen], context: ExplainContext) -> Place:
    """The statement around the break that makes Dynamo give a frame up, in its function or a caller's.  A try does so
    always, a with block where its manager cannot be left and entered again; a loop is known from the break's own text,
    and only needs a guess where that is missing."""
    found: set[Place] = set()
    for seen in group:
        if is_skipped(seen):
            for frame in seen.stack:
                if is_of_comprehension(frame.name):
                    # What stands around it is around its caller.
                    found.add(Place.LOOP)
                else:
                    found |= context.sources.places(frame.path, frame.line, frame.column)
    return next((place for place in (Place.TRY, Place.WITH, Place.LOOP) if place in found), Place.PLAIN)


BREAK_PAGES = "https://meta-pytorch.github.io/compile-graph-break-site/gb/"  # pages on breaks, as in messages of torch


def break_page(gb_id: str | None) -> str | None:
    """The page of a break by torch's id of it, such as ``GB0124``; None without one."""
    return f"{BREAK_PAGES}{gb_id.lower()}.html" if gb_id and GB.fullmatch(gb_id) else None
