"""Gathers the recorded recompiles: the guard that failed, the call that met it, and what they have in common."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from breakscan.explain.callers import Caller, users_line
from breakscan.explain.closest_guards import closest_guards, parsed_guard
from breakscan.explain.compiled import CompiledFrame
from breakscan.explain.context import ExplainContext
from breakscan.explain.explanation import AdviceKind, Recompile, RecompileAdvice, UncompiledFrame
from breakscan.model.findings import Origin, Site
from breakscan.record.parsers.frames import calls_user_code, is_compiler_entry, is_module_wrapper, is_resumed
from breakscan.record.parsers.guards import NONE_FAILED, GuardKind, ParsedGuard, Within, parse_expression
from breakscan.record.records import Code, FailedGuard, RecompileSeen, StackFrame
from breakscan.rulebook.matching import explaining_rule

_SIZE = re.compile(r"(?P<tensor>.+)\.shape\[(?P<dimension>\d+)\]$")
_IN_KWARGS = re.compile(r"^kwargs\['(\w+)'\]$")
_POSITIONAL = re.compile(r"^args\[\d+\]")
_LEARNING_RATE = re.compile(r"\.param_groups\[\d+\]\['lr'\]$")
_ARGUMENTS = re.compile(r"^(?:len\((?:kw)?args\)|(?:not )?'\w+' in kwargs|list\(kwargs\)\[\d+\])$")
_SPREADING = (
    GuardKind.SIZE,
    GuardKind.STRIDE,
    GuardKind.TENSOR,
    GuardKind.PARAMETER,
    GuardKind.TYPE,
    GuardKind.GLOBAL,
)
"""Kinds of guards that, once one fails, fail in all functions that the changed input runs through."""
_GRADIENT = ".requires_grad"
_APART = ("0", "1")
"""Sizes that are compiled separately from all others."""


def recompiles(
    processes: Sequence[Sequence[RecompileSeen]],
    fates: Sequence[UncompiledFrame],
    compiles: Iterable[CompiledFrame],
    lens: ExplainContext,
) -> list[Recompile]:
    """All recompiles in their order, numbered by cause; those of the user's code first."""
    versions = {one.compile_id: one for one in compiles}
    causes = _Causes()
    eager = {fate.function: fate for fate in fates if fate.break_site}
    found = []
    for process in processes:
        met = [_Met(seen, failed, versions) for seen, failed in zip(process, closest_guards(process), strict=True)]
        times = Counter((one.seen.frame, one.guard.subject) for one in met)
        for one in met:
            recompile = _recompile(one, times[one.seen.frame, one.guard.subject], causes, eager, lens)
            version = versions.get(recompile.compile_id)
            seconds = version.seconds + version.backward_seconds if version else 0.0
            found.append(replace(recompile, seconds=seconds))
    return sorted(found, key=lambda recompile: recompile.origin is not Origin.USER)


_Values = tuple[str | Within | None, str | None]
"""Of a guard: the old value and the new one."""


@dataclass(slots=True)
class _Change:
    """What one call brought: the recompile that met it first, as a name, and what it recompiled until now.  ``trigger``
    is the call, None where a stack that is cut does not tell it."""

    name: str
    trigger: Caller | None
    kind: GuardKind
    frames: set[Code] = field(default_factory=set)
    values: set[_Values] = field(default_factory=set)

    def brings(self, frame: Code, guard: ParsedGuard, values: _Values, *, is_last: bool) -> bool:
        """Whether another recompile at the same call is of this change; ``is_last`` says that none lies between."""
        same = all(values) and values in self.values
        if guard.kind in _SPREADING:
            return same or (is_last and frame not in self.frames)
        # A value is handed on under its name; an attribute is a separate one in each object.
        return same and "." not in guard.subject.removesuffix(".item()")


@dataclass(slots=True)
class _Causes:
    """Numbers causes.  A change that one call brings recompiles the function, what it calls and the code after
    its breaks, one after the other: they are one cause, that of the first.  Where others come between, what changed
    from the same value to the same belongs together."""

    numbers: dict[object, int] = field(default_factory=dict)
    changes: dict[object, _Change] = field(default_factory=dict)
    last: _Change | None = None

    def number(
        self, frame: Code, guard: ParsedGuard, values: _Values, trigger: Caller | None, *, begins_call: bool
    ) -> int:
        kind = GuardKind.IDENTITY if guard.kind is GuardKind.FREED else guard.kind
        about = (trigger, guard.kind) if guard.kind in _SPREADING else (trigger, guard.kind, guard.subject)
        change = None if begins_call else self.changes.get(about, self._unplaced(guard.kind))
        if change is None or not change.brings(frame, guard, values, is_last=change is self.last):
            change = _Change(f"{frame.path}:{frame.line}:{kind.value}:{guard.subject}", trigger, guard.kind)
        self.changes[about] = change
        self.last = change
        change.frames.add(frame)
        change.values.add(values)
        return self.numbers.setdefault((change.trigger, change.name), len(self.numbers))

    def _unplaced(self, kind: GuardKind) -> _Change | None:
        """The last change, if it has no call and is of that kind: what follows it is part of the same call."""
        last = self.last
        return last if last is not None and last.trigger is None and last.kind is kind else None


class _Met:
    """A recompile and the guard that explains it."""

    def __init__(self, seen: RecompileSeen, failed: FailedGuard | None, versions: Mapping[str, CompiledFrame]) -> None:
        self.seen = seen
        self.failed = failed
        self.guard = parsed_guard(seen, failed, versions) if failed else NONE_FAILED


def _recompile(
    met: _Met,
    times: int,
    causes: _Causes,
    eager: Mapping[str, UncompiledFrame],
    lens: ExplainContext,
) -> Recompile:
    """``times`` is how often the function was compiled again over what the guard is about."""
    seen, failed, guard = met.seen, met.failed, met.guard
    trigger = _trigger(seen, lens)
    text = f"{guard.view}._base" if guard.view else failed.text if failed else ""
    origin = _origin(seen, lens)
    new = guard.new or (failed.new if failed else None)
    broken = _given_up_caller(seen, guard, eager, lens) if origin is not Origin.USER else None
    explained = text and not _ARGUMENTS.match(guard.subject)
    rule = explaining_rule(lens.rules, gb=None, text=text, guard=text, times=times) if explained else None
    return Recompile(
        rule=rule,
        function=lens.function_of(seen.frame),
        site=_site(seen, failed, guard, lens),
        origin=origin,
        trigger=trigger,
        guard=guard.demand,
        subject=guard.subject,
        old=guard.old,
        new=new,
        advice=broken or _advice(guard, new, seen.frame, origin, lens),
        compile_id=seen.compile_id or "",
        users_line=_users_line(seen, trigger, origin, lens),
        cause=causes.number(
            seen.frame,
            guard,
            (guard.old, new),
            _known_trigger(seen, trigger),
            begins_call=_begins_call(seen, lens),
        ),
    )


def _origin(seen: RecompileSeen, lens: ExplainContext) -> Origin:
    caller = _caller_of_generated(seen, lens)
    return lens.origin(caller.path if caller else seen.frame.path)


def _caller_of_generated(seen: RecompileSeen, lens: ExplainContext) -> StackFrame | None:
    """Who called a function that was made as text and has no file, as the methods of dataclasses are."""
    if seen.frame.path != "<string>" or lens.sources.line(seen.frame.path, seen.frame.line) is not None:
        return None
    return next(reversed(lens.not_torchs(seen.stack)), None)


def _trigger(seen: RecompileSeen, lens: ExplainContext) -> Caller | None:
    """The call of compiled code that met the guard: the line above torch's first frame, as a rule the user's."""
    call = _call(seen, lens)
    return lens.caller(call) if call else None


def _users_line(seen: RecompileSeen, trigger: Caller | None, origin: Origin, lens: ExplainContext) -> Caller | None:
    if origin is Origin.USER and (trigger is None or trigger.origin is Origin.USER):
        return None
    return users_line(lens.callers(seen.stack))


def _known_trigger(seen: RecompileSeen, trigger: Caller | None) -> Caller | None:
    """The call, but for a stack that is cut before the entry into compiled code: the call is missing there."""
    return trigger if not seen.cut or any(is_compiler_entry(frame.path) for frame in seen.stack) else None


def _begins_call(seen: RecompileSeen, lens: ExplainContext) -> bool:
    """Whether the program itself called the function, rather than compiled code."""
    if seen.cut and (is_resumed(seen.frame.name) or (seen.stack and calls_user_code(seen.stack[-1]))):
        # One of the frames that are missing is the program's.
        return False
    entry = next((i for i, frame in enumerate(seen.stack) if is_compiler_entry(frame.path)), None)
    if entry is None:
        return seen.cut
    return all(lens.origin(frame.path) is Origin.FRAMEWORK for frame in seen.stack[entry:])


def _call(seen: RecompileSeen, lens: ExplainContext) -> StackFrame | None:
    entry = next((i for i, frame in enumerate(seen.stack) if is_compiler_entry(frame.path)), len(seen.stack))
    return next(reversed(lens.not_torchs(seen.stack[:entry])), None)


def _given_up_caller(
    seen: RecompileSeen, guard: ParsedGuard, eager: Mapping[str, UncompiledFrame], lens: ExplainContext
) -> RecompileAdvice | None:
    """Where a library's function is compiled on its own only because its caller runs eager: what to do about that."""
    for caller in reversed(lens.callers(seen.stack)):
        fate = eager.get(caller.function or "")
        if fate and fate.break_site:
            site = fate.break_site
            size = _SIZE.match(guard.subject)
            dimension = size["dimension"] if size else ""
            return RecompileAdvice(AdviceKind.BREAK_IN_CALLER, fate.function, dimension, site.path, site.line)
    return None


def _advice(
    guard: ParsedGuard, new: str | None, frame: Code, origin: Origin, lens: ExplainContext
) -> RecompileAdvice | None:
    """Advice in the names of the case at hand, where that is possible."""
    if guard.crosses_break:
        return RecompileAdvice(AdviceKind.VALUE_ACROSS_BREAK, path=lens.sources.show(frame.path), line=frame.line)
    if _ARGUMENTS.match(guard.subject):
        return RecompileAdvice(AdviceKind.ARGUMENTS)
    if guard.view is not None:
        return RecompileAdvice(AdviceKind.VIEW, guard.view)
    if guard.subject.endswith(".item()"):
        return RecompileAdvice(AdviceKind.NUMBER_AS_INDEX)
    if guard.kind is GuardKind.PARAMETER:
        is_gradient = guard.subject.endswith(_GRADIENT)
        return RecompileAdvice(AdviceKind.FROZEN_PARAMETER if is_gradient else AdviceKind.PARAMETER)
    if guard.subject.endswith(_GRADIENT):
        return RecompileAdvice(AdviceKind.GRADIENT, guard.subject.removesuffix(_GRADIENT))
    if _LEARNING_RATE.search(guard.subject):
        return RecompileAdvice(AdviceKind.LEARNING_RATE)
    if origin is Origin.LIBRARY and guard.old == "None" and "." in guard.subject and _is_literal(new):
        return RecompileAdvice(AdviceKind.ATTRIBUTE, guard.subject, value=str(new))
    size = _SIZE.match(guard.subject)
    if size is None:
        return None
    if guard.new in _APART or guard.old in _APART:
        return RecompileAdvice(AdviceKind.SIZE_0_OR_1)
    name = _IN_KWARGS.sub(r"\1", size["tensor"])
    if _POSITIONAL.match(name):
        kind = AdviceKind.SIZE_OF_POSITIONAL
    elif lens.sources.parameter(frame.path, frame.line, name) or name != size["tensor"]:
        kind = AdviceKind.SIZE_OF_PARAMETER
    else:
        kind = AdviceKind.SIZE
    return RecompileAdvice(kind, name, size["dimension"])


def _is_literal(text: str | None) -> bool:
    return text is not None and isinstance(parse_expression(text), ast.Constant)


def _name(guard: ParsedGuard) -> str:
    """The variable that the guard is about, as far as it is about one."""
    return guard.subject.split(".")[0].split("[")[0]


def _site(seen: RecompileSeen, failed: FailedGuard | None, guard: ParsedGuard, lens: ExplainContext) -> Site:
    """Where the code relies on the guard, as torch says; else the parameter that it is about, else the function.  Of a
    module of torch's and of a generated function it is the call: there is no code of the user's."""
    frame = seen.frame
    call = _call(seen, lens) if is_module_wrapper(frame.path) else _caller_of_generated(seen, lens)
    if call:
        return lens.sources.site(call.path, call.line, call.column, call.end_column)
    if failed and failed.stack:
        where = failed.stack[-1]
        return lens.sources.site(where.path, where.line, where.column, where.end_column)
    return lens.sources.parameter(frame.path, frame.line, _name(guard)) or lens.site_of(frame)
