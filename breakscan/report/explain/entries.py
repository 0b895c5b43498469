"""What the reports of ``explain`` say of each problem, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from breakscan.explain.advice import break_advice, frame_advice, is_torchs_wish, recompile_advice
from breakscan.explain.breaks import BreakSite, break_page, part_words
from breakscan.explain.eager_calls import EagerCalls, eager_calls_advice, eager_calls_reason
from breakscan.explain.explanation import Explanation
from breakscan.explain.exports import ExportFailure, failure_advice, failure_consequences, failure_label, failure_reason
from breakscan.explain.frames import STATUS_WORDS, FrameStatus, UncompiledFrame, reason_words
from breakscan.explain.recompiles import Recompile, recompile_sentence
from breakscan.model.findings import Origin, Severity, Site, Verdict
from breakscan.model.problem import Caller, Price, users_line
from breakscan.model.words import INSIDE, listed, short_path
from breakscan.record.records import DEFAULT_STANCE
from breakscan.report.explain.summary import dearest_first, recompile_price
from breakscan.rulebook.document import Rule, rule_words

_BOILERPLATE = (
    "This graph break is fundamental",
    "This graph break may have been caused by an earlier",
    "It may be possible to write Dynamo tracing rules",
    "This is likely to be a Dynamo bug",
    "This graph break may be difficult to debug",
    "Please report an issue to PyTorch",
    "File an issue to PyTorch",
    "If it is a Python builtin, please file an issue",
)
"""Hints of Dynamo's that are about Dynamo: nothing that a user can do about the code at hand."""


_GIVES_UP_BY_ITSELF = ("Unsupported context manager",)


_FOLLOWED_BY = {
    "graph break in loop": "the break is inside a loop",
    "Graph break under GenericContextWrappingVariable": "the break is inside a with block that must not be left",
}


def verdict_sentence(site: BreakSite) -> str | None:
    """What the break does beyond splitting the graph, or None."""
    if site.verdict is Verdict.RAISES:
        return (
            "torch.compile raises here: with fullgraph=True, nothing may break the graph. "
            "breakscan explain --keep-going shows what else does."
        )
    if site.verdict is not Verdict.EAGER:
        return None
    reason = _FOLLOWED_BY.get(site.consequence or "")
    if reason is None and site.place in INSIDE and site.gb_type not in _GIVES_UP_BY_ITSELF:
        reason = f"the break is inside {INSIDE[site.place]}"
    functions = listed([part_words(part) for part in site.given_up], "function")
    verb = "runs" if len(site.given_up) == 1 else "run"
    functions = functions[0].upper() + functions[1:] if site.given_up and site.given_up[0].rest_only else functions
    return f"{functions} {verb} as plain Python, without a graph{f': {reason}' if reason else ''}."


def useful_hints(site_hints: Sequence[str]) -> list[str]:
    """Dynamo's hints that speak of the user's code."""
    return [hint for hint in site_hints if not hint.startswith(_BOILERPLATE)]


_LONGEST_CHAIN = 4
"""Lines of the way to a failure; JSON has all."""


_MEANT = "torch's own code asks for it, with torch._dynamo.graph_break()"


class EntryKind(Enum):
    BREAK = "break"
    FRAME = "frame"
    """A function that is not compiled."""
    FAILURE = "failure"
    """A function on which torch.compile raised, without a break: at the line that it could not compile."""
    CAUSE = "cause"
    """The recompiles that one change caused."""
    EAGER_CALLS = "eager-calls"
    """Calls of something compiled that used no compiled code."""
    EXPORT = "export"
    """What stood against an export."""


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """``id`` and ``name`` are those of the rule, else PyTorch's, else those of the kind of entry.  ``label`` is what
    happened, in few words; ``why`` is a sentence without its full stop: of a cause, what changed.  ``consequences`` are
    whole sentences; ``hints`` are Dynamo's, where there is no advice.

    Of code that is not the user's, ``users_line`` is the user's line that leads there.  ``called_from`` are the lines
    that explain how the program got to the site.  ``verdict`` and ``gb_type`` are those of a break, and ``page`` is
    PyTorch's about it.  ``seconds`` is what it cost the run, of calls or of compiling, as far as that is known.
    """

    kind: EntryKind
    id: str
    name: str
    rule: Rule | None
    severity: Severity
    site: Site
    origin: Origin
    functions: tuple[str, ...]
    label: str
    count: int
    why: str
    advice: str | None
    consequences: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    called_from: tuple[Caller, ...] = ()
    users_line: Caller | None = None
    stack: tuple[Caller, ...] = ()
    verdict: Verdict | None = None
    gb_type: str | None = None
    page: str | None = None
    price: Price | None = None
    code: str | None = None
    seconds: float = 0.0

    @property
    def times(self) -> str:
        """``3×``; empty for what happened once."""
        return f"{self.count}×" if self.count > 1 or self.kind is EntryKind.CAUSE else ""

    @property
    def function(self) -> str | None:
        """The functions in words, if any is known."""
        return listed(self.functions, "function") or None


def break_entries(explanation: Explanation) -> list[ReportEntry]:
    """The breaks: the most expensive first."""
    return [break_entry(site) for site in sorted(explanation.breaks, key=dearest_first)]


def frame_entries(explanation: Explanation) -> list[ReportEntry]:
    """The functions that are not compiled, without those that a break or their recompiles already explain: the most
    expensive first."""
    over_limit = _over_limit(explanation)
    told = [frame_entry(one) for one in explanation.frames if one.break_site is None and one not in over_limit]
    return sorted(told, key=lambda entry: -entry.seconds)


def cause_entries(explanation: Explanation) -> list[ReportEntry]:
    """The recompiles, an entry for each change that caused some: those that took longest come first.  Where a function
    was recompiled too often, its main cause says so."""
    groups = cause_groups(explanation)
    over_limit: dict[int, list[str]] = {}
    for function, frame in {frame.function: frame for frame in _over_limit(explanation)}.items():
        main = max(groups, key=lambda group: sum(recompile.function == function for recompile in group))
        sentence = f"{function} runs eager from then on: {reason_words(frame.reason)}."
        over_limit.setdefault(main[0].cause, []).append(sentence)
    entries = []
    for group in groups:
        entry = cause_entry(group, over_limit.get(group[0].cause, ()))
        price = recompile_price(group, explanation)
        entries.append(replace(entry, consequences=tuple(filter(None, (*entry.consequences, price)))))
    return entries


def cause_groups(explanation: Explanation) -> list[list[Recompile]]:
    """The recompiles grouped by the change that caused them; the changes that took longest come first."""
    groups = by_cause(explanation.recompiles)
    return sorted(groups, key=lambda group: -sum(recompile.seconds for recompile in group))


def eager_call_entries(explanation: Explanation) -> list[ReportEntry]:
    return [eager_call_entry(found) for found in told_by_themselves(explanation)]


def told_by_themselves(explanation: Explanation) -> list[EagerCalls]:
    """The calls that ran eager under another stance than the default.  Of the others, it is said which functions run
    eager."""
    return [found for found in explanation.eager_calls if found.stance != DEFAULT_STANCE]


def eager_call_entry(found: EagerCalls) -> ReportEntry:
    return ReportEntry(
        EntryKind.EAGER_CALLS,
        *_named(None, "eager-calls", "calls that ran eager"),
        severity=Severity.WARNING,
        site=found.site,
        origin=found.origin,
        functions=(found.function,),
        label="ran eager",
        count=found.calls,
        why=eager_calls_reason(found),
        advice=eager_calls_advice(found),
        called_from=(found.caller,) if found.caller else (),
    )


def break_entry(site: BreakSite) -> ReportEntry:
    is_users = site.origin is Origin.USER
    is_meant = is_torchs_wish(site)
    advice = break_advice(site)
    users = None if is_users else users_line(site.stack)
    nearest = None if is_users else next((c for c in reversed(site.stack) if c.function != site.function), None)
    callers = tuple(dict.fromkeys(filter(None, [nearest, users])))
    return ReportEntry(
        EntryKind.BREAK,
        *_named(site.rule, site.gb_id or "graph-break", site.gb_type),
        severity=site.verdict.severity,
        site=site.site,
        origin=site.origin,
        functions=(site.function,) if site.function else (),
        label=site.verdict.words,
        count=site.count,
        why=site.rule.why if site.rule else _MEANT if is_meant else _with_type(site),
        advice=advice,
        consequences=tuple(filter(None, [verdict_sentence(site)])),
        hints=() if advice or site.rule else tuple(useful_hints(site.hints)),
        called_from=_chain(site.stack) if site.verdict is Verdict.RAISES else callers,
        users_line=users,
        stack=site.stack,
        verdict=site.verdict,
        gb_type=site.gb_type,
        page=break_page(site.gb_id),
        price=site.price,
        code=site.code,
        seconds=site.price.in_all if site.price else 0.0,
    )


def _with_type(site: BreakSite) -> str:
    """What torch calls the break, and its reason where that is more."""
    return site.gb_type if site.reason == site.gb_type else f"{site.gb_type}: {site.reason}"


def frame_entry(frame: UncompiledFrame) -> ReportEntry:
    if frame.status is FrameStatus.RAISED:
        return _failure_entry(frame)
    return ReportEntry(
        EntryKind.FRAME,
        *_named(frame.rule, frame.gb_id or "not-compiled", frame.gb_type or "not compiled"),
        severity=Severity.INFO if frame.status is FrameStatus.PASSED_OVER else Severity.ERROR,
        site=frame.site,
        origin=frame.origin,
        functions=(frame.function,),
        label=STATUS_WORDS[frame.status],
        count=frame.count,
        why=reason_words(frame.reason),
        advice=frame_advice(frame),
        price=frame.price,
        code=frame.code,
        seconds=frame.price.in_all if frame.price else 0.0,
    )


def _failure_entry(frame: UncompiledFrame) -> ReportEntry:
    # What failed can be a function that the compiled one calls.
    inside = frame.stack[-1].function if frame.failed_at and frame.stack else None
    return ReportEntry(
        EntryKind.FAILURE,
        *_named(frame.rule, frame.gb_id or "not-compiled", frame.gb_type or "not compiled"),
        severity=Severity.ERROR,
        site=frame.failed_at or frame.site,
        origin=frame.origin,
        functions=(inside or frame.function,),
        label=STATUS_WORDS[frame.status],
        count=frame.count,
        why=reason_words(frame.reason),
        advice=frame_advice(frame),
        called_from=_chain(frame.stack) if frame.failed_at else tuple(reversed(frame.stack))[:_LONGEST_CHAIN],
        users_line=users_line(frame.stack),
        stack=frame.stack,
        code=frame.failed_code if frame.failed_at else frame.code,
    )


def _chain(stack: Sequence[Caller]) -> tuple[Caller, ...]:
    """The lines that lead to the last of a stack, innermost first: the nearest, and the user's nearest."""
    nearest = list(dict.fromkeys(reversed(stack[:-1])))[:_LONGEST_CHAIN]
    users = users_line(stack[:-1])
    return tuple(nearest) if users is None or users in nearest else (*nearest[:-1], users)


def cause_entry(group: Sequence[Recompile], consequences: Sequence[str] = ()) -> ReportEntry:
    """The entry of recompiles that have one cause."""
    first = group[0]
    trigger = first.trigger
    is_beside = trigger is None or (trigger.path, trigger.line) == (first.site.path, first.site.line)
    users = first.users_line
    callers = () if trigger is None or is_beside else (trigger,)
    return ReportEntry(
        EntryKind.CAUSE,
        *_named(first.rule, "recompile", "recompiled"),
        severity=Severity.ERROR if consequences else Severity.WARNING,
        site=first.site,
        origin=first.origin,
        functions=tuple(dict.fromkeys(recompile.function or "a function" for recompile in group)),
        label="recompiled",
        count=len(group),
        why=recompile_sentence(group),
        advice=recompile_advice(first),
        consequences=tuple(consequences),
        called_from=tuple(dict.fromkeys(filter(None, (*callers, users)))),
        users_line=users if first.origin is not Origin.USER else None,
        seconds=sum(recompile.seconds for recompile in group),
    )


def by_cause(recompiles: Iterable[Recompile]) -> list[list[Recompile]]:
    """The recompiles grouped by the change that caused them; the changes that caused most come first."""
    groups: dict[int, list[Recompile]] = {}
    for recompile in recompiles:
        groups.setdefault(recompile.cause, []).append(recompile)
    return sorted(groups.values(), key=len, reverse=True)


def _over_limit(explanation: Explanation) -> list[UncompiledFrame]:
    """The functions that run eager because they were recompiled too often, and whose recompiles were recorded."""
    recompiled = {recompile.function for recompile in explanation.recompiles}
    return [frame for frame in explanation.frames if frame.over_limit and frame.function in recompiled]


def _named(rule: Rule | None, id_: str, name: str) -> tuple[str, str, Rule | None]:
    return (rule.id, rule.name, rule) if rule else (id_, name, None)


KIND = "export"


def export_entries(explanation: Explanation) -> list[ReportEntry]:
    """The problems: those that ended an export come first."""
    return list(map(export_entry, explanation.export_failures))


def export_entry(failure: ExportFailure) -> ReportEntry:
    rule, advice = failure.rule, failure_advice(failure)
    callers = [one.caller for one in failure.exports if one.caller]
    beside = (failure.site.path, failure.site.line)
    return ReportEntry(
        EntryKind.EXPORT,
        rule.id if rule else failure.gb_id or KIND,
        rule.name if rule else failure.gb_type or "export",
        rule,
        severity=Severity.ERROR,
        site=failure.site,
        origin=failure.origin,
        functions=(failure.function,) if failure.function else (),
        label=failure_label(failure),
        count=failure.count,
        why=failure_reason(failure),
        advice=advice,
        consequences=tuple(failure_consequences(failure)),
        hints=() if advice else tuple(useful_hints(failure.hints)),
        called_from=tuple(dict.fromkeys(one for one in callers if (one.path, one.line) != beside)),
        stack=failure.stack,
        gb_type=failure.gb_type,
        code=failure.code,
    )


class Topic(Enum):
    """What a section tells of."""

    FAILURES = "Failed to compile"
    EXPORTS = "Exports"
    BREAKS = "Graph breaks in your code"
    LIBRARY_BREAKS = "Graph breaks in libraries"
    TORCH_BREAKS = "Graph breaks inside torch"
    FRAMES = "Not compiled"
    EAGER_CALLS = "Calls that ran eager"
    RECOMPILES = "Recompiles"


BREAK_TOPICS = {
    Origin.USER: Topic.BREAKS,
    Origin.LIBRARY: Topic.LIBRARY_BREAKS,
    Origin.FRAMEWORK: Topic.TORCH_BREAKS,
}


_FIRST = {Topic.FAILURES: 0, Topic.EXPORTS: 1}


@dataclass(frozen=True, slots=True)
class Section:
    """Entries of one topic, in order.  ``seconds`` is what they cost the run, of calls or of compiling."""

    topic: Topic
    entries: Sequence[ReportEntry]

    @property
    def heading(self) -> str:
        return self.topic.value

    @property
    def seconds(self) -> float:
        return sum(entry.seconds for entry in self.entries)


def report_sections(explanation: Explanation) -> list[Section]:
    """The sections that have entries: failures and exports, then what cost most; what cost nothing that is known, in
    the order of :class:`Topic`."""
    frames, breaks = frame_entries(explanation), break_entries(explanation)
    found = [
        Section(Topic.FAILURES, [entry for entry in (*breaks, *frames) if is_failure(entry)]),
        Section(Topic.EXPORTS, export_entries(explanation)),
        *(
            Section(topic, [entry for entry in breaks if entry.origin is origin and not is_failure(entry)])
            for origin, topic in BREAK_TOPICS.items()
        ),
        Section(Topic.FRAMES, [entry for entry in frames if not is_failure(entry)]),
        Section(Topic.EAGER_CALLS, eager_call_entries(explanation)),
        Section(Topic.RECOMPILES, cause_entries(explanation)),
    ]
    told = [section for section in found if section.entries]
    return sorted(told, key=lambda section: (_FIRST.get(section.topic, len(_FIRST)), -section.seconds))


def is_failure(entry: ReportEntry) -> bool:
    """Whether torch.compile raises there."""
    return entry.kind is EntryKind.FAILURE or entry.verdict is Verdict.RAISES


MANY = 20
"""Entries from which on a report begins with an overview."""


_MOST_FILES = 10


@dataclass(frozen=True, slots=True)
class Group:
    """Entries that have something in common: ``sites`` of them, met ``times`` in all, which cost ``seconds`` of the
    run."""

    name: str
    sites: int
    times: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Overview:
    """The groups by kind of finding and by file: the most expensive first, then the largest.  ``other_files`` is the
    number of files that are left out."""

    kinds: Sequence[Group]
    files: Sequence[Group]
    other_files: int


def overview(sections: Sequence[Section]) -> Overview | None:
    """None where there are few entries."""
    entries = [entry for section in sections for entry in section.entries]
    if len(entries) < MANY:
        return None
    files = _grouped(entries, lambda entry: short_path(entry.site.path))
    kinds = _grouped(entries, lambda entry: rule_words(entry.rule) or entry.name)
    return Overview(kinds, files[:_MOST_FILES], max(0, len(files) - _MOST_FILES))


def _grouped(entries: Iterable[ReportEntry], name_of: Callable[[ReportEntry], str]) -> list[Group]:
    groups: dict[str, list[ReportEntry]] = {}
    for entry in entries:
        groups.setdefault(name_of(entry), []).append(entry)
    made = [
        Group(name, len(own), sum(entry.count for entry in own), sum(entry.seconds for entry in own))
        for name, own in groups.items()
    ]
    return sorted(made, key=lambda group: (-group.seconds, -group.sites, group.name))
