"""Gathers the recorded recompiles: the guard that failed, the call that met it, and what they have in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from breakscan.findings import Origin, Site
from breakscan.rulebook.document import Rule
from breakscan.rulebook.matching import explaining_rule
from breakscan.runtime.explanation import Caller, FrameFate, Recompile
from breakscan.runtime.guardtext import BEHIND_BREAK, Guard, read_guard
from breakscan.runtime.lens import Lens
from breakscan.runtime.naming import is_compiler_entry
from breakscan.runtime.records import (
    Code,
    CompileStarted,
    FailedGuard,
    FrameEnded,
    RecompileSeen,
    RecompileTraced,
    Record,
)

_SIZE = re.compile(r"(?P<tensor>.+)\.shape\[(?P<dimension>\d+)\]$")
_IN_KWARGS = re.compile(r"^kwargs\['(\w+)'\]$")
_SPREADING = ("size", "stride", "tensor", "type", "global")
"""Kinds of guards that, once one fails, fail in all functions that the changed input runs through."""


_NONE_FAILED = Guard("other", "", "no guard fails when asked again: two threads may have compiled it at once")


def recompiles_of(records: Iterable[Record], hooked: bool) -> Iterator[RecompileSeen]:
    """The recompiles of one process; from the structured trace alone where the better hook is missing.

    One that ran into the recompile limit did not happen, and is left out.
    """
    found: list[RecompileSeen] = []
    reasons: dict[str, tuple[str, ...]] = {}
    for record in records:
        if isinstance(record, RecompileSeen):
            found.append(record)
        elif isinstance(record, RecompileTraced):
            if not hooked:
                reasons[record.compile_id] = record.reasons
            elif found and found[-1].compile_id == record.compile_id and not found[-1].guards:
                # No guard of the function's own: the log knows what else did not fit, such as the backend.
                found[-1] = replace(found[-1], guards=tuple(map(_traced_guard, record.reasons)))
        elif isinstance(record, CompileStarted) and record.compile_id in reasons:
            guards = tuple(_traced_guard(reason) for reason in reasons.pop(record.compile_id))
            found.append(RecompileSeen(record.compile_id, record.code, guards, record.stack))
        elif isinstance(record, FrameEnded) and record.limit and hooked:
            last = next((seen for seen in reversed(found) if seen.frame == record.frame), None)
            if last is not None:
                found.remove(last)
    yield from found


def closest_guard(seen: RecompileSeen) -> FailedGuard | None:
    """The guard of the version that fits best: most of its guards held before this one failed."""
    return max(seen.guards, key=lambda guard: guard.executed, default=None)


def recompiles(processes: Sequence[Sequence[RecompileSeen]], fates: Sequence[FrameFate], lens: Lens) -> list[Recompile]:
    """All recompiles in their order, numbered by cause; those of the user's code first."""
    causes = _Causes()
    eager = {fate.function: fate for fate in fates if fate.break_site}
    found = []
    for process in processes:
        guards = [_guard(seen) for seen in process]
        times = Counter((seen.frame, guard.subject) for seen, guard in zip(process, guards, strict=True))
        for seen, guard in zip(process, guards, strict=True):
            found.append(_recompile(seen, guard, times[seen.frame, guard.subject], causes, eager, lens))
    return sorted(found, key=lambda recompile: recompile.origin is not Origin.USER)


@dataclass(slots=True)
class _Causes:
    """Numbers causes.  A change that one call brings recompiles the function, what it calls and what stands behind
    its breaks, one after the other: they are one cause, that of the first."""

    numbers: dict[object, int] = field(default_factory=dict)
    chain: set[Code] = field(default_factory=set)
    head: tuple[object, str] | None = None

    def number(self, frame: Code, guard: Guard, trigger: Caller | None) -> int:
        call = (trigger, guard.kind)
        if guard.kind not in _SPREADING or self.head is None or self.head[0] != call or frame in self.chain:
            self.chain = set()
            self.head = (call, f"{frame.path}:{frame.line}:{guard.subject}")
        self.chain.add(frame)
        return self.numbers.setdefault((trigger, self.head[1]), len(self.numbers))


def _guard(seen: RecompileSeen) -> Guard:
    failed = closest_guard(seen)
    return read_guard(failed.text) if failed else _NONE_FAILED


def _recompile(
    seen: RecompileSeen, guard: Guard, times: int, causes: _Causes, eager: Mapping[str, FrameFate], lens: Lens
) -> Recompile:
    """``times`` is how often the function was compiled again over what the guard is about."""
    failed = closest_guard(seen)
    trigger = _trigger(seen, lens)
    text = failed.text if failed else ""
    origin = lens.origin(seen.frame.path)
    broken = _given_up_caller(seen, eager, lens) if origin is not Origin.USER else None
    rule = explaining_rule(lens.rules, gb=None, text=text, guard=text, times=times) if text else None
    return Recompile(
        rule=rule,
        function=lens.function_of(seen.frame),
        site=_site(seen.frame, failed, guard, lens),
        origin=origin,
        trigger=trigger,
        guard=guard.demand,
        subject=guard.subject,
        old=guard.old,
        new=guard.new or (failed.new if failed else None),
        advice=broken or _advice(guard, rule, seen.frame, lens),
        compile_id=seen.compile_id or "",
        cause=causes.number(seen.frame, guard, trigger),
    )


def _trigger(seen: RecompileSeen, lens: Lens) -> Caller | None:
    """The call of compiled code that met the guard: the line above torch's first frame, as a rule the user's."""
    entry = next((i for i, frame in enumerate(seen.stack) if is_compiler_entry(frame.path)), len(seen.stack))
    return next(iter(reversed(lens.callers(seen.stack[:entry]))), None)


def _given_up_caller(seen: RecompileSeen, eager: Mapping[str, FrameFate], lens: Lens) -> str | None:
    """Where a library's function is compiled on its own only because its caller runs eager: what to do about that."""
    for caller in reversed(lens.callers(seen.stack)):
        fate = eager.get(caller.function or "")
        if fate and fate.break_site:
            where = f"{fate.break_site.path.rpartition('/')[2]}:{fate.break_site.line}"
            return f"first remove the break at {where}: it makes {fate.function} run eager, and compile this on its own"
    return None


def _advice(guard: Guard, rule: Rule | None, frame: Code, lens: Lens) -> str | None:
    """What the rule says, in the names of the case at hand where that is possible."""
    if BEHIND_BREAK in guard.subject:
        where = f"{lens.sources.show(frame.path).rpartition('/')[2]}:{frame.line}"
        return f"remove the break at {where}: what stands behind it is compiled for the values that cross it"
    size = _SIZE.match(guard.subject)
    if size and guard.new in ("0", "1"):
        return (
            "nothing, if it stays at that: sizes 0 and 1 are compiled apart from all others, with dynamic=True as well"
        )
    if size:
        name = _IN_KWARGS.sub(r"\1", size["tensor"])
        dynamic = "compile with torch.compile(..., dynamic=True)"
        if lens.sources.parameter(frame.path, frame.line, name) or name != size["tensor"]:
            dynamic = f"call torch._dynamo.mark_dynamic({name}, {size['dimension']}) before the first call"
        return f"{dynamic}, or keep the size constant, as by padding or drop_last=True"
    return rule.instead if rule else None


def _name(guard: Guard) -> str:
    """The variable that the guard is about, as far as it is about one."""
    return guard.subject.split(".")[0].split("[")[0]


def _site(frame: Code, failed: FailedGuard | None, guard: Guard, lens: Lens) -> Site:
    """Where the code relies on the guard, as torch says; else the parameter that it is about, else the function."""
    if failed and failed.stack:
        where = failed.stack[-1]
        return lens.sources.site(where.path, where.line, where.column, where.end_column)
    return lens.sources.parameter(frame.path, frame.line, _name(guard)) or lens.site_of(frame)


def _traced_guard(reason: str) -> FailedGuard:
    """A reason of the trace, such as ``0/1: flag == 'a'  # …``."""
    compile_id, _, text = reason.partition(": ")
    return FailedGuard(compile_id, text, 0, None, ())
