"""The problems of a run: made once, deduplicated, priced, explained and ordered, for all that read them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from breakscan.explanation.around import MAYBE_PLAIN, ONLY_COMPILED
from breakscan.explanation.breaks import WORST_FIRST, BreakSite, break_page
from breakscan.explanation.frames import FrameStatus, UncompiledFrame
from breakscan.explanation.recompiles import Recompile, changes_of, recompile_sentence, subject_in_words
from breakscan.explanation.remedies import (
    OF_LIMIT,
    break_remedies,
    frame_remedies,
    is_torchs_wish,
    limit_remedies,
    recompile_remedies,
)
from breakscan.model.findings import Origin, Severity, Verdict
from breakscan.model.problem import AROUND_COMPILER, Caller, FunctionHead, Problem, ProblemKind, SharedCode, users_line
from breakscan.model.remedy import Remedy, RemedyKind
from breakscan.model.words import INSIDE, counted, grouped, listed, place, seconds_in_words
from breakscan.rulebook.document import Rule

_BOILERPLATE = (
    "This graph break is fundamental",
    "This graph break may have been caused by an earlier",
    "It may be possible to write Dynamo tracing rules",
    "This is likely to be a Dynamo bug",
    "This graph break may be difficult to debug",
    "Please report an issue to PyTorch",
    "File an issue to PyTorch",
    "If it is a Python builtin, please file an issue",
    "Your code may result in an error when running in eager",
    "Report an issue to the backend compiler repo",
)
"""Hints of Dynamo's that are about Dynamo: nothing that a user can do about the code at hand."""
_GIVES_UP_BY_ITSELF = ("Unsupported context manager",)
_FOLLOWED_BY = {
    "graph break in loop": "the break is inside a loop",
    "Graph break under GenericContextWrappingVariable": "the break is inside a with block that must not be left",
}


def verdict_sentence(site: BreakSite) -> str | None:
    """The effect of a break beyond splitting the graph, or None."""
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
    functions = listed([part.words for part in site.given_up], "function")
    verb = "runs" if len(site.given_up) == 1 else "run"
    functions = functions[0].upper() + functions[1:] if site.given_up and site.given_up[0].rest_only else functions
    return f"{functions} {verb} as plain Python, without a graph, from this call on{f': {reason}' if reason else ''}."


def useful_hints(site_hints: Sequence[str]) -> list[str]:
    """Dynamo's hints that speak of the user's code."""
    return [hint for hint in site_hints if not hint.startswith(_BOILERPLATE)]


_LONGEST_CHAIN = 4  # lines of the way to a failure; JSON has all
_MEANT = "torch's own code asks for it, with torch._dynamo.graph_break()"
LONG_RECOMPILES = 1.0  # seconds of compiling again from which on they are worth a word


class Topic(Enum):
    """The topic of a section of a report; failures and exports come first, then what cost most."""

    FAILURES = "Failed to compile"
    EXPORTS = "Exports"
    BREAKS = "Graph breaks in your code"
    LIBRARY_BREAKS = "Graph breaks in libraries"
    TORCH_BREAKS = "Graph breaks inside torch"
    FRAMES = "Not compiled"
    AROUND = "Around the compiler"
    RECOMPILES = "Recompiles"


_BREAK_TOPICS = {Origin.USER: Topic.BREAKS, Origin.LIBRARY: Topic.LIBRARY_BREAKS, Origin.FRAMEWORK: Topic.TORCH_BREAKS}
_TOPICS = {
    ProblemKind.FUNCTION: Topic.FRAMES,
    ProblemKind.EXPORT: Topic.EXPORTS,
    **dict.fromkeys(AROUND_COMPILER, Topic.AROUND),
    ProblemKind.RECOMPILES: Topic.RECOMPILES,
}
_FIRST = {Topic.FAILURES: 0, Topic.EXPORTS: 1}


def topic_of(problem: Problem) -> Topic:
    if problem.is_failure:
        return Topic.FAILURES
    return _BREAK_TOPICS[problem.origin] if problem.kind is ProblemKind.BREAK else _TOPICS[problem.kind]


@dataclass(frozen=True, slots=True)
class Section:
    topic: Topic
    problems: Sequence[Problem]


def sections_of(problems: Iterable[Problem]) -> list[Section]:
    """The sections of a report, of problems that no other one explains: failures and exports, then what cost most; what
    cost nothing that is known, in the order of :class:`Topic`."""
    by_topic: dict[Topic, list[Problem]] = {topic: [] for topic in Topic}
    for problem in problems:
        if problem.cause is None:
            by_topic[topic_of(problem)].append(problem)
    sections = [Section(topic, found) for topic, found in by_topic.items() if found]
    return sorted(sections, key=lambda one: (_FIRST.get(one.topic, len(_FIRST)), -_cost(one.problems)))


def problems_of(
    breaks: Iterable[BreakSite],
    frames: Sequence[UncompiledFrame],
    recompiles: Sequence[Recompile],
    around: Sequence[Problem],
    export_problems: Iterable[Problem],
    compile_seconds: float,
) -> list[Problem]:
    """All problems of a run in the order of a report; those that others explain come last."""
    recompiled = {recompile.function for recompile in recompiles}
    over_limit = {frame.function: frame for frame in frames if frame.over_limit and frame.function in recompiled}
    functions = [frame_problem(frame, is_told=frame.function in over_limit and frame.over_limit) for frame in frames]
    problems = [
        *map(break_problem, sorted(breaks, key=dearest_first)),
        *sorted(functions, key=lambda problem: -_cost([problem])),
        *export_problems,
        *around,
        *_recompile_problems(recompiles, over_limit, compile_seconds),
    ]
    in_sections = [problem for section in sections_of(problems) for problem in section.problems]
    return [*in_sections, *(problem for problem in problems if problem.cause is not None)]


def _cost(problems: Iterable[Problem]) -> float:
    return sum(problem.cost or 0.0 for problem in problems)


def dearest_first(site: BreakSite) -> tuple[float, int, float]:
    """Sort key: by what a site cost in all passes, then the worst verdict first, then by what was compiled for it."""
    cost, compiling = (site.price.cost or 0.0, site.price.compile_seconds) if site.price else (0.0, 0.0)
    return -cost, WORST_FIRST.index(site.verdict), -compiling


def break_problem(site: BreakSite) -> Problem:
    is_users = site.origin is Origin.USER
    remedies = break_remedies(site)
    users = None if is_users else users_line(site.stack)
    nearest = None if is_users else next((c for c in reversed(site.stack) if c.function != site.function), None)
    callers = tuple(dict.fromkeys(filter(None, [nearest, users])))
    hooked = f"The hook is registered at {place(site.hooked)}." if site.hooked else None
    within = "All that is checkpointed there runs as plain Python: it is all or none." if site.checkpointed else None
    with_type = site.reason if site.fails or site.reason == site.gb_type else f"{site.gb_type}: {site.reason}"
    return Problem(
        ProblemKind.BREAK,
        *named(site.rule, site.gb_id or "graph-break", site.gb_type),
        site.verdict,
        site.verdict.severity,
        site.site,
        site.origin,
        functions=(site.function,) if site.function else (),
        what=site.verdict.words,
        why=site.rule.why if site.rule else _MEANT if is_torchs_wish(site) else with_type,
        remedies=remedies,
        count=site.count,
        reason=with_type,
        consequences=tuple(filter(None, [verdict_sentence(site), within, hooked])),
        hints=() if remedies or site.rule else tuple(useful_hints(site.hints)),
        called_from=_chain(site.stack) if site.verdict is Verdict.RAISES else callers,
        users_line=users,
        stack=site.stack,
        gb_type=site.gb_type,
        gb_id=site.gb_id,
        page=break_page(site.gb_id),
        price=site.price,
        cost=site.price.cost if site.price else None,
        code=site.code,
    )


def frame_problem(frame: UncompiledFrame, *, is_told: bool = False) -> Problem:
    """``is_told`` says that recompiles explain it."""
    raised = frame.status is FrameStatus.RAISED
    # What failed can be a function that the compiled one calls.
    failed = raised and frame.failed_at is not None
    inside = frame.stack[-1].function if failed and frame.stack else None
    fails = (ONLY_COMPILED if frame.only_compiled else MAYBE_PLAIN,) if raised and not frame.over_limit else ()
    verdict = Verdict.RAISES if raised else Verdict.EAGER if frame.status is FrameStatus.EAGER else None
    return Problem(
        ProblemKind.FAILURE if raised else ProblemKind.FUNCTION,
        *named(frame.rule, frame.gb_id or "not-compiled", frame.gb_type or "not compiled"),
        verdict,
        Severity.INFO if verdict is None else Severity.ERROR,
        (frame.failed_at if raised else None) or frame.site,
        frame.origin,
        functions=(inside or frame.function,),
        what=frame.status.words,
        why=frame.reason,
        remedies=() if is_told else frame_remedies(frame),
        count=frame.count,
        consequences=fails,
        hints=tuple(useful_hints(frame.hints)),
        reason=frame.reason if frame.quoted is None else frame.quoted,
        called_from=_chain(frame.stack) if failed else tuple(reversed(frame.stack))[:_LONGEST_CHAIN] if raised else (),
        users_line=users_line(frame.stack) if raised else None,
        stack=frame.stack if raised else (),
        gb_type=frame.gb_type,
        gb_id=frame.gb_id,
        price=frame.price,
        cost=frame.price.cost if frame.price else None,
        code=frame.failed_code if failed else frame.code,
        cause=ProblemKind.BREAK if frame.break_site else ProblemKind.RECOMPILES if is_told else None,
        rest_only=frame.rest_only,
        head=FunctionHead(frame.site, frame.function) if failed else None,
    )


def _chain(stack: Sequence[Caller]) -> tuple[Caller, ...]:
    """The lines that lead to the last of a stack, innermost first: the nearest, and the user's nearest."""
    nearest = list(dict.fromkeys(reversed(stack[:-1])))[:_LONGEST_CHAIN]
    users = users_line(stack[:-1])
    return tuple(nearest) if users is None or users in nearest else (*nearest[:-1], users)


def _recompile_problems(
    recompiles: Sequence[Recompile], over_limit: dict[str, UncompiledFrame], compile_seconds: float
) -> list[Problem]:
    """One for each change that caused some: the longest first.  A function's main cause says that the limit is met."""
    groups = causes_of(recompiles)
    problems: list[Problem] = []
    described: set[str | None] = set()
    mains: dict[str, tuple[Remedy, ...]] = {}
    for group in groups:
        first = group[0]
        over = over_limit.get(first.function or "")
        of_function = [one for one in groups if one[0].function == first.function]
        # Where the limit is an error, the function did not run eager.
        is_past = over is not None or (first.shared is not None and first.shared.limit is not None)
        is_main = is_past and group is max(of_function, key=len)
        limit = [f"{first.function} runs eager from then on: {over.reason}."] if over and is_main else []
        words = () if first.function in described else _versions_words(first.shared)
        described.add(first.function)
        eager = _eager_words(group) if is_main or over is None else ()
        problems.append(cause_problem(group, (*limit, *words, *eager), compile_seconds))
        if is_main and first.shared:
            needed = _needed(problems[-1].remedies) or limit_remedies(first, first.shared)
            mains[first.function or "a function"] = needed
            problems[-1] = replace(problems[-1], remedies=needed)
    return [_with_main(problem, mains.get(problem.functions[0], ())) for problem in problems]


def _needed(remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    return tuple(one for one in remedies if one.kind is not RemedyKind.NOTHING)


def _with_main(problem: Problem, main: tuple[Remedy, ...]) -> Problem:
    """The problem; of a function past the limit, ``main`` are the remedies of its main cause.  With one of the limit,
    each version that is needed is one too many; with others, the limit is not met any more."""
    is_limit = any(one.name in OF_LIMIT for one in main)
    own = _needed(problem.remedies) if is_limit else [one for one in problem.remedies if one.name not in OF_LIMIT]
    return replace(problem, remedies=tuple(own) or main) if main else problem


def cause_problem(
    group: Sequence[Recompile], consequences: Sequence[str] = (), compile_seconds: float = 0.0
) -> Problem:
    """The problem of recompiles that have one cause; ``consequences`` say what runs eager of it."""
    first = group[0]
    trigger = first.trigger
    callers, at = () if trigger is None else (trigger,), place(first.site)
    seconds = sum(recompile.seconds for recompile in group)
    whole = seconds_in_words(max(seconds, compile_seconds))
    shared = first.shared
    price = f"Compiling again took {seconds_in_words(seconds)} of {whole} spent on compiling."
    return Problem(
        ProblemKind.RECOMPILES,
        *named(first.rule, "recompile", "recompiled"),
        Verdict.RECOMPILES,
        Severity.ERROR if shared and shared.limit and first.hit_limit else Severity.WARNING,
        first.site,
        first.origin,
        functions=tuple(dict.fromkeys(recompile.function or "a function" for recompile in group)),
        what="recompiled",
        why=recompile_sentence(group),
        remedies=recompile_remedies(group),
        count=len(group),
        reason=first.subject,
        consequences=(*consequences, *([price] if seconds >= LONG_RECOMPILES else [])),
        called_from=tuple(one for one in dict.fromkeys((*callers, first.users_line)) if one and place(one) != at),
        users_line=first.users_line if first.origin is not Origin.USER else None,
        cost=seconds,
        changes=tuple(changes_of(group)),
        shared=shared,
    )


def _eager_words(group: Sequence[Recompile]) -> Iterator[str]:
    first = next((one for one in group if one.hit_limit), group[0])
    shared = first.shared
    if shared is not None and shared.limit and shared.eager_calls:
        values = listed(shared.eager_values, "value")
        of_values = f", as with {first.subject} = {values}" if values and first.subject else ""
        at = f", the first from {place(shared.eager_from)}" if shared.eager_from else ""
        yield f"{counted(shared.eager_calls, 'call')} ran eager past the limit{at}{of_values}."


def _versions_words(shared: SharedCode | None) -> Iterator[str]:
    if shared is not None and (len(shared.subjects) > 1 or len(shared.callers) > 1):
        lines = listed([place(caller) for caller in shared.callers], "line")
        at = f"; it is called at {lines}" if len(shared.callers) > 1 else ""
        over = listed([*map(subject_in_words, shared.subjects)], "value")
        yield f"{shared.function} has {shared.versions} versions, over {over}{at}."


def causes_of(recompiles: Iterable[Recompile]) -> list[list[Recompile]]:
    """The recompiles by the change that caused them; what took longest, then what caused most comes first."""
    groups = grouped((recompile.cause, recompile) for recompile in recompiles)
    return sorted(groups.values(), key=lambda group: (-sum(recompile.seconds for recompile in group), -len(group)))


def named(rule: Rule | None, id_: str, name: str) -> tuple[str, str, str | None]:
    return (rule.id, rule.name, rule.id) if rule else (id_, name, None)
