"""Calls of something compiled that ran eager, why, and what to do about it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from breakscan.explanation.context import ExplainContext
from breakscan.explanation.forks import Inherited
from breakscan.explanation.frames import FrameStatus, UncompiledFrame
from breakscan.explanation.run_totals import Calls
from breakscan.model.findings import Origin, Site
from breakscan.model.problem import Caller
from breakscan.model.words import counted
from breakscan.recording.records import (
    DEFAULT_STANCE,
    EAGER_FIRST_STANCE,
    CallsRan,
    Code,
    CompileCalled,
    EagerCallsRan,
    Record,
)


@dataclass(frozen=True, slots=True)
class EagerCalls:
    """Calls of something compiled in which no graph ran: ``calls`` of all ``of`` in which nothing was compiled.

    ``stance`` is torch's during the calls (``torch.compiler.set_stance``), ``caller`` the line of the first one.
    ``site`` is the head of the function; where that is torch's own, the line that asked for it to be compiled.
    ``reason`` is why it runs eager under the default stance; None under another one.  ``values`` counts calls past the
    limit of recompiles by the value for which there is no version.
    """

    function: str
    site: Site
    origin: Origin
    calls: int
    of: int
    stance: str
    caller: Caller | None
    reason: str | None
    values: Mapping[str, int] = field(default_factory=dict)

    @property
    def intended(self) -> bool:
        """Return whether the stance is there for these calls to run eager, so that the next ones are compiled."""
        return self.stance == EAGER_FIRST_STANCE


_STANCE = 'torch.compiler.set_stance("{}")'
_WHY = {
    "force_eager": "{stance} was in force, under which nothing compiled runs",
    "eager_on_recompile": "no compiled version fitted, and {stance} was in force, under which no other is made",
    "eager_then_compile": "{stance} was in force, under which the first call runs eager",
}


def eager_calls_reason(found: EagerCalls) -> str:
    """``100 of 101 calls used no compiled code: torch.compiler.set_stance("force_eager") was in force, …``."""
    return f"{_some_of(found)} used no compiled code: {_why(found)}"


def eager_calls_total(eager_calls: Iterable[EagerCalls], calls: Iterable[Calls]) -> str | None:
    """``100 of 101 calls ran eager``: those under another stance than the default.  Of the others, it is said which
    functions run eager."""
    eager = sum(found.calls for found in eager_calls if found.stance != DEFAULT_STANCE)
    return f"{eager} of {counted(sum(call.calls for call in calls), 'call')} ran eager" if eager else None


def _some_of(found: EagerCalls) -> str:
    if found.calls == found.of:
        return "the only call" if found.of == 1 else f"all {found.of} calls"
    return f"{found.calls} of {found.of} calls"


def _why(found: EagerCalls) -> str:
    if found.reason is not None:
        return found.reason
    stance = _STANCE.format(found.stance)
    return _WHY.get(found.stance, "{stance} was in force").format(stance=stance)


_About = Code | str
"""The callee, as in :class:`.run_totals.Ran`: what shares its code is one."""


def eager_calls(
    processes: Sequence[Sequence[Record]], frames: Iterable[UncompiledFrame], context: ExplainContext
) -> list[EagerCalls]:
    """The eager calls of each function and stance, the most frequent first.

    Under the default stance, only functions count that are known not to be compiled: of others, code that was compiled
    before the recording may have run.
    """
    called: Inherited[CompileCalled] = Inherited(processes)
    for process, records in enumerate(processes):
        for record in records:
            if isinstance(record, CompileCalled):
                called.add(process, record.key, record)
    all_calls: dict[_About, int] = defaultdict(int)
    eager: dict[tuple[_About, str], list[tuple[CompileCalled, EagerCallsRan]]] = defaultdict(list)
    for process, records in enumerate(processes):
        for ran in {one.key: one for one in records if isinstance(one, CallsRan)}.values():
            if (call := called.get(process, ran.key)) is not None:
                all_calls[call.code or call.target] += ran.calls
        latest = {(one.key, one.stance): one for one in records if isinstance(one, EagerCallsRan)}
        for found in latest.values():
            if (call := called.get(process, found.key)) is not None:
                eager[call.code or call.target, found.stance].append((call, found))
    lost = (FrameStatus.EAGER, FrameStatus.RAISED)
    whole = (frame for frame in frames if frame.status in lost and not frame.rest_only)
    given_up = {(frame.function, frame.site): frame for frame in whole}
    all_eager = []
    for (about, stance), parts in eager.items():
        first, ran_first = parts[0]
        name, site, origin = _function(first, context)
        frame = given_up.get((name, site))
        if stance == DEFAULT_STANCE and frame is None:
            continue
        all_eager.append(
            EagerCalls(
                function=name,
                site=site,
                origin=origin,
                calls=sum(ran.calls for _, ran in parts),
                of=all_calls[about],
                stance=stance,
                caller=next(iter(reversed(context.callers(ran_first.stack))), None),
                reason=frame.reason.text if frame is not None and stance == DEFAULT_STANCE else None,
                values=dict(sum((Counter(ran.values) for _, ran in parts), Counter())),
            )
        )
    return sorted(all_eager, key=lambda one: -one.calls)


def _function(call: CompileCalled, context: ExplainContext) -> tuple[str, Site, Origin]:
    """The function, and its head.  Where that is torch's own, as the ``forward`` of ``nn.Sequential``: what was passed
    to torch.compile, and the line that did."""
    if call.code is not None and context.origin(call.code.path) is not Origin.FRAMEWORK:
        return context.function_of(call.code), context.site_of(call.code), context.origin(call.code.path)
    callers = context.callers(call.stack)
    where = callers[-1] if callers else Caller("<unknown>", 1, None, Origin.USER)
    return call.target, Site(where.path, where.line, 1, where.line, 1), where.origin
