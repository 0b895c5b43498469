"""Recompiles: what changed, and what the recompiles have in common."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from pathlib import PurePath

from breakscan.explanation.around import eager_calls_of, past_limit
from breakscan.explanation.compilations import CompiledFrame
from breakscan.explanation.context import ExplainContext
from breakscan.explanation.frames import UncompiledFrame
from breakscan.model.findings import ChangeKind, Holder, Origin, Site
from breakscan.model.problem import Caller, SharedCode, ValueChange, users_line
from breakscan.model.words import grouped
from breakscan.recording.parsers.frames import calls_user_code, is_compiler_entry, is_module_wrapper, resumed_at
from breakscan.recording.parsers.guards import (
    BEFORE_BREAK,
    NONE_FAILED,
    ParsedGuard,
    leaves_open,
    line_of,
    lost_view,
    read_guard,
)
from breakscan.recording.records import (
    DEFAULT_STANCE,
    BreakSeen,
    Code,
    CompileStarted,
    CompileTimed,
    FailedGuard,
    GuardsBuilt,
    RecompileSeen,
    Record,
    StackFrame,
)
from breakscan.rulebook.document import Rule
from breakscan.rulebook.matching import explaining_rule


@dataclass(frozen=True, slots=True)
class HowCompiled:
    """``torch.compile`` for a function: the number of its calls, ``dynamic`` as Python writes it, torch's version."""

    calls: int
    dynamic: str | None
    torch: str


NOT_KNOWN = HowCompiled(0, None, "")
Objects = tuple[tuple[str, int], ...]  # variables of a function that hold an object, each with its number


@dataclass(frozen=True, slots=True)
class Recompile:
    """A recompile of a function.  ``guard`` is what had to hold, ``subject`` what it is about;
    ``cause`` numbers, from 0, what they have in common: the same change at the same call; ``seconds`` is what compiling
    took, the backward included, but for the first backward of the function.  ``trigger`` is the call that met the
    guard, ``users_line`` the user's line that leads there, where that call or the function is not the user's,
    ``asked_at`` the line that the guard is for, and ``switched_at`` the line that changed what it is about.

    ``also`` are other guards that failed at that call, each with its new value; ``objects`` those of the version and of
    the call.  ``hit_limit`` says that the same changed when the limit was met.

    ``how`` is how the function is compiled.  Of sizes, ``opened`` says that the new version leaves them open, and
    ``passed`` holds the expressions that the call passes for their tensors, as far as they are simple ones.  If it is
    compiled alone only because another function runs eager, ``made_by`` is the break that does that, with its name.  If
    ``is_memo``, compiled code keeps what changed in an attribute until what it is for changes.  ``unrolled`` is a
    loop whose rounds depend on it, ``container`` the expression of the ``nn.Sequential`` that called the function.
    ``alone_for`` is a break in the function, or in what it calls, without which its caller's graph would have it;
    ``is_elsewhere`` says that another line calls the function than when the version was compiled.
    ``selected`` is an index that has the number next to others, and what takes the same by ``select``.
    ``runs`` is how often graphs had run in the process before it; ``in_thread`` says that another thread than the main
    one called the version that did not fit."""

    rule: Rule | None
    function: str | None
    site: Site
    origin: Origin
    trigger: Caller | None
    guard: ParsedGuard
    subject: str
    old: str | None
    new: str | None
    compile_id: str
    cause: int
    users_line: Caller | None = None
    asked_at: Caller | None = None
    switched_at: Caller | None = None
    also: tuple[ParsedGuard, ...] = ()
    objects: tuple[Objects, Objects] = ((), ())
    shared: SharedCode | None = None
    hit_limit: bool = False
    seconds: float = 0.0
    how: HowCompiled = NOT_KNOWN
    opened: bool = False
    passed: Mapping[str, str] = field(default_factory=dict)
    made_by: tuple[Site, str] | None = None
    is_memo: bool = False
    unrolled: Caller | None = None
    alone_for: Caller | None = None
    is_elsewhere: bool = False
    container: str | None = None
    runs: int | None = None
    in_thread: bool = False
    selected: tuple[str, str] | None = None


_MOST_VALUES = 5
_MOST_OTHERS = 2  # changes besides the first that a sentence has


def changes_of(group: Sequence[Recompile]) -> list[ValueChange]:
    """The changes that came at once, in recompiles of one cause: the one that torch noticed first comes first."""
    by_subject: dict[str, list[tuple[Recompile, ParsedGuard]]] = {}
    frame = group[0].compile_id.rpartition("/")[0]
    for recompile in group:
        # What else was compiled again, as the part after a break, follows from it.
        is_same = frame and recompile.compile_id.rpartition("/")[0] == frame
        if is_same or (recompile.subject, recompile.function) == (group[0].subject, group[0].function):
            own = replace(recompile.guard, subject=recompile.subject, old=recompile.old, new=recompile.new)
            for guard in (own, *recompile.also):
                by_subject.setdefault(guard.subject, []).append((recompile, guard))
    first = by_subject.pop(group[0].subject)
    return [_change(met) for met in (first, *by_subject.values())]


def _change(met: Sequence[tuple[Recompile, ParsedGuard]]) -> ValueChange:
    """The change that recompiles of one function over one value have in common."""
    recompile, guard = met[0]
    is_own = guard.subject == recompile.subject
    values = (guard.old, *(one.new for _, one in met))
    return ValueChange(
        guard.kind,
        guard.holder,
        guard.subject,
        guard.demand,
        tuple(value for value in dict.fromkeys(values) if value is not None),
        owner=guard.owner,
        dimension=guard.dimension,
        is_parameter=guard.is_parameter,
        is_bound=guard.is_bound,
        objects=_objects_with_own_values(met),
        asked_at=recompile.asked_at if is_own else None,
        switched_at=recompile.switched_at if is_own else None,
    )


def _objects_with_own_values(met: Sequence[tuple[Recompile, ParsedGuard]]) -> int:
    """The number of objects, if each was met with one value alone."""
    values: dict[Objects, set[str | None]] = {}
    selves = set()
    for recompile, guard in met:
        root = _ROOT.match(guard.subject)
        for objects, value in zip(recompile.objects, (guard.old, guard.new), strict=True):
            named = dict(objects)
            # What is no object belongs to the object whose method the function is, and to no other argument.
            owner = next((name for name in (root[0] if root else "", "self", "args[0]") if name in named), None)
            values.setdefault(((owner, named[owner]),) if owner else (), set()).add(value)
            selves.add(named.get("self"))
    # An object that a call of one model is given is one of the call's values, and may be another each time.
    is_given = len(selves) == 1 and None not in selves and not met[0][1].is_parameter
    is_known = () not in values and not any(guard.is_bound for _, guard in met)
    is_each = not is_given and is_known and all(len(own) == 1 for own in values.values())
    return len(values) if is_each and len(values) > 1 else 0


def is_of_one_object(recompile: Recompile, change: ValueChange) -> bool:
    """Return whether what changed is held by the same object as when the version was compiled."""
    root = _ROOT.match(change.subject)
    then, now = (dict(objects).get(root[0]) if root else None for objects in recompile.objects)
    return then is not None and then == now


_ROOT = re.compile(r"\w+(?=[.\[]|$)")  # the variable of an expression


def recompile_sentence(group: Sequence[Recompile]) -> str:
    """The changes: ``x.shape[0] was 32, then 31``."""
    first, *others = changes_of(group)
    if not first.subject:
        is_own = group[0].guard == NONE_FAILED
        return first.demand if is_own else f"no compiled version fits (torch says: {first.demand})"
    more = f"; and {len(others) - _MOST_OTHERS} more" if len(others) > _MOST_OTHERS else ""
    is_new = len(first.values) == 1 and group[0].old is None
    sentence = "; ".join((_sentence(first, is_new=is_new), *map(_sentence, others[:_MOST_OTHERS]))) + more
    return f"{sentence}: {first.objects} objects share the code" if first.objects else sentence


def _sentence(change: ValueChange, *, is_new: bool = False) -> str:
    """The change in words; ``is_new`` says that only the new value is known."""
    kind, known = change.kind, change.values
    subject = subject_in_words(change.subject)
    if change.holder is Holder.CLOSURE and change.owner:
        subject = f"{subject}, which {change.owner} closes over,"
    if change.holder is Holder.DEFAULT and change.owner:
        subject = f"{subject}, a default of {change.owner},"
    if kind is ChangeKind.FREED:
        return f"{subject} was freed, and with it the version that was compiled for it"
    if kind in (ChangeKind.OBJECT, ChangeKind.FUNCTION) and known[:1] == ("another object",):
        others = ", ".join(known[1:_MOST_VALUES]) + (" and so on" if len(known) > _MOST_VALUES else "")
        return f"{subject} is another object than before{f' ({others})' if others else ''}"
    if kind is ChangeKind.BRANCH_ON_SIZE and len(change.demand) > _LONGEST_TEST:
        sizes = " and ".join(dict.fromkeys(_SIZE_IN_TEST.findall(change.demand)))
        return f"a comparison of {sizes or 'sizes'} held, and does not now"
    if len(known) < 2:
        if kind in (ChangeKind.GLOBAL_STATE, ChangeKind.GRAD_MODE):
            return f"{subject} changed"
        return f"a compiled version asks that {change.demand}{f', and is {known[0]} now' if is_new else ''}"
    rest = " and so on" if len(known) > _MOST_VALUES else ""
    if change.objects:
        shown = ", ".join(known[:_MOST_VALUES])
        return f"{subject} is {shown}{rest}"
    shown = ", ".join(known[1:_MOST_VALUES])
    before = f"{change.demand} held" if change.is_bound else f"{subject} was {known[0]}"
    return f"{before}, then {f'{subject} was ' if change.is_bound else ''}{shown}{rest}"


def subject_in_words(subject: str) -> str:
    """``shape[0] of the value …``: words in place of a name cannot have an attribute."""
    return _PART_OF_VALUE.sub(lambda found: f"{found[2].removeprefix('.')} of {found[1]}", subject)


_LONGEST_TEST = 60
_SIZE_IN_TEST = re.compile(r"[\w.\[\]]+\.shape\[\d+\]")
_PART_OF_VALUE = re.compile(rf"^({re.escape(BEFORE_BREAK)})([.\[].+)$")


_SPREADING = {
    **dict.fromkeys((ChangeKind.SIZE, ChangeKind.BRANCH_ON_SIZE, ChangeKind.EQUAL_SIZES), "size"),
    **dict.fromkeys((ChangeKind.RANK, ChangeKind.DTYPE, ChangeKind.DEVICE, ChangeKind.TENSOR), "tensor"),
    **dict.fromkeys((ChangeKind.REQUIRES_GRAD, ChangeKind.INFERENCE), "tensor"),
    **dict.fromkeys((ChangeKind.TYPE, ChangeKind.TENSOR_TYPE), "type"),
    **dict.fromkeys((ChangeKind.GRAD_MODE, ChangeKind.GLOBAL_STATE), "state"),
    ChangeKind.LAYOUT: "layout",
}
"""Kinds of guards that, once one fails, fail in all functions that the changed input runs through."""
APART = {"0", "1"}  # sizes that are compiled separately from all others
_INDEX = re.compile(r"\[\d+\]$")
_SAME = {ChangeKind.FREED: ChangeKind.OBJECT, ChangeKind.FUNCTION: ChangeKind.OBJECT}


def recompiles(
    fates: Sequence[UncompiledFrame],
    compiles: Iterable[CompiledFrame],
    breaks: Sequence[BreakSeen],
    torch: str,
    context: ExplainContext,
) -> list[Recompile]:
    """All recompiles in their order, numbered by cause; those of the user's code first."""
    how: dict[Code | None, HowCompiled] = {}
    for call in context.asked:
        known = how.get(call.code, NOT_KNOWN)
        how[call.code] = HowCompiled(known.calls + 1, call.settings.get("dynamic", known.dynamic), torch)
    direct = {(code.path, context.function_of(code)) for code in how if code}
    versions = {compiled.compile_id: compiled for compiled in compiles}
    broken = {(frame.path, frame.line): context.not_torchs(seen.stack)[-1] for seen in breaks for frame in seen.stack}
    inside = {
        (frame.path, context.function(frame.path, frame.line, frame.name)): context.not_torchs(seen.stack)[-1]
        for seen in breaks
        for frame in seen.stack[1:]
    }
    causes = _Causes()
    met_limit = past_limit(context)
    ran_eager = grouped((call.code, ran) for call, ran in eager_calls_of(context) if ran.stance == DEFAULT_STANCE)
    found = []
    for process in context.processes:
        run = _Process(process)
        met = [_Met(seen, failed, versions) for seen, failed in zip(run.seen, _closest_guards(run.seen), strict=True)]
        times = Counter((one.seen.frame, one.guard.subject) for one in met)
        own = []
        for one in met:
            count = times[one.seen.frame, one.guard.subject]
            ways = how.get(one.seen.frame, NOT_KNOWN)
            recompile = _recompile(one, count, causes, fates, broken, run, versions, ways, context)
            about = one.seen.frame.path, recompile.function
            at = None if about in direct else inside.get(about)
            seconds = _seconds_again(recompile.compile_id, versions, run.first_backward)
            own.append(replace(recompile, seconds=seconds, alone_for=context.caller(at) if at else None))
        seen_again = list(zip(own, run.seen, strict=True))
        limits: dict[tuple[str | None, str], dict[str, None]] = {}
        eager_from: dict[Code, Caller] = {}
        for recompile, seen in seen_again:
            if seen.past_limit:
                ran = ran_eager.get(seen.frame, ())
                later = (one.values for one in ran if one.about == recompile.subject)
                values = dict.fromkeys(value for value in chain([recompile.new], *later) if value)
                limits.setdefault((recompile.function, recompile.subject), {}).update(values)
                compiled_from = {(f.path, f.line) for one in run.started.values() for f in one.stack}
                others = [f for f in context.not_torchs(seen.stack) if (f.path, f.line) not in compiled_from]
                if others:
                    eager_from.setdefault(seen.frame, context.caller(others[-1]))
        shared = {frame: _shared(frame, run, own, context) for frame in {seen.frame for seen in run.seen}}
        for frame, code in shared.items():
            eager_calls = sum(one.calls for one in ran_eager.get(frame, ()))
            if code and (eager_calls or frame in how):
                # The call that met the limit is none of those that are timed.
                code = replace(code, eager_calls=eager_calls + met_limit[frame], eager_from=eager_from.get(frame))
                shared[frame] = code
        for recompile, seen in seen_again:
            if not seen.past_limit:
                at_limit, code = limits.get((recompile.function, recompile.subject)), shared[seen.frame]
                code = code and replace(code, eager_values=tuple(at_limit or ()))
                found.append(replace(recompile, hit_limit=at_limit is not None, shared=code))
    return sorted(found, key=lambda recompile: recompile.origin is not Origin.USER)


class _Process:
    """The recompiles of a process, with what else was recorded of the functions."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.seen: list[RecompileSeen] = []
        self.started: dict[str, CompileStarted] = {}
        self.objects: dict[str, Objects] = {}  # those of each version
        self.first_backward: dict[str, str] = {}  # the compilation whose backward came first, by the id of its frame
        for record in records:
            if isinstance(record, RecompileSeen):
                self.seen.append(record)
            elif isinstance(record, CompileStarted):
                self.started[record.compile_id] = record
            elif isinstance(record, GuardsBuilt) and record.compile_id is not None:
                self.objects[record.compile_id] = tuple(record.objects.items())
            elif isinstance(record, CompileTimed) and record.backward:
                self.first_backward.setdefault(record.compile_id.rpartition("/")[0], record.compile_id)


def _shared(frame: Code, run: _Process, recompiles: Sequence[Recompile], context: ExplainContext) -> SharedCode | None:
    """A function that was compiled more than twice."""
    versions = [compile_id for compile_id, started in run.started.items() if started.code == frame]
    of_frame = [(one, seen) for one, seen in zip(recompiles, run.seen, strict=True) if seen.frame == frame]
    if len(of_frame) < 2:
        return None
    has_limit = any(seen.past_limit for _, seen in of_frame)
    objects = {run.objects.get(version, ())[:1] for version in versions} | {one.objects[1][:1] for one, _ in of_frame}
    return SharedCode(
        context.function_of(frame),
        subjects=tuple(dict.fromkeys(one.subject for one, _ in of_frame if one.subject)),
        versions=len(versions),
        limit=len(versions) if has_limit else None,
        objects=len(objects - {()}),
        callers=tuple(dict.fromkeys(one.trigger for one, _ in of_frame if one.trigger)),
        eager_calls=0,
        eager_values=(),
    )


def _seconds_again(compile_id: str, versions: Mapping[str, CompiledFrame], first_backward: Mapping[str, str]) -> float:
    """The seconds that a single version would have saved.  The first backward is compiled anyhow, and finds out about
    compilers; of the version that had it, that of the first version counts, which came later."""
    frame = compile_id.rpartition("/")[0]
    has_first = first_backward.get(frame) == compile_id
    version, backward = versions.get(compile_id), versions.get(f"{frame}/0" if has_first else compile_id)
    return (version.seconds if version else 0.0) + (backward.backward_seconds if backward else 0.0)


_Broken = Mapping[tuple[str, int], StackFrame]


@dataclass(slots=True)
class _Change:
    """A change that one call brought: the recompile that met it first, as a name, and the frames recompiled until
    now.  ``trigger`` is the call, None where a stack that is cut does not have it."""

    name: str
    trigger: Caller | None
    kind: str
    frames: set[Code] = field(default_factory=set)
    values: set[tuple[str | None, str | None]] = field(default_factory=set)

    def brings(self, frame: Code, guard: ParsedGuard, *, is_last: bool) -> bool:
        """Return whether another recompile of the call is of this change; ``is_last``: none lies between."""
        same = bool(guard.old and guard.new) and (guard.old, guard.new) in self.values
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

    def number(self, frame: Code, guard: ParsedGuard, trigger: Caller | None, *, begins_call: bool) -> int:
        kind, last = _SPREADING.get(guard.kind, _SAME.get(guard.kind, guard.kind).value), self.last
        # What follows a change without a call is part of the same call.
        unplaced = last if last is not None and last.trigger is None and last.kind == kind else None
        about = (trigger, kind) if guard.kind in _SPREADING else (trigger, kind, guard.subject)
        change = None if begins_call else self.changes.get(about, unplaced)
        if change is None or not change.brings(frame, guard, is_last=change is last):
            same_kind = _SAME.get(guard.kind, guard.kind)
            subject = _INDEX.sub("", guard.subject) if guard.kind is ChangeKind.NUMBER else guard.subject
            change = _Change(f"{frame.path}:{frame.line}:{same_kind.value}:{subject}", trigger, kind)
        self.changes[about] = change
        self.last = change
        change.frames.add(frame)
        change.values.add((guard.old, guard.new))
        return self.numbers.setdefault((change.trigger, change.name), len(self.numbers))


def _closest_guards(process: Iterable[RecompileSeen]) -> list[FailedGuard | None]:
    """The guard that explains each recompile of a process, in their order.  A version that failed at the same guard
    before was replaced then by another one: why that one does not fit is what is new, unless the size is one for which
    there was none then.  Of the versions that are left, the one most of whose guards held before one failed."""
    known: set[tuple[Code, str, str, bool]] = set()
    closest = []
    for seen in process:
        failed = []
        for guard in seen.guards:
            read = read_guard(guard.text)
            is_apart = (read.old in APART) != (read.new in APART)
            closeness = guard.executed, not is_apart, read.kind is ChangeKind.SIZE
            failed.append((guard, closeness, (seen.frame, _version(seen, guard), read.demand, is_apart)))
        fresh = [one for one in failed if one[2] not in known] or failed
        closest.append(max(fresh, key=itemgetter(1))[0] if fresh else None)
        known.update(key for *_, key in failed)
    return closest


def _version(seen: RecompileSeen, guard: FailedGuard) -> str:
    """The unique id of the version that the guard is of: compiled in the same process, after the same reset."""
    prefix = (seen.compile_id or "").rpartition(":")[0]
    return f"{prefix}:{guard.compile_id}" if prefix else guard.compile_id


class _Met:
    """A recompile and the guard that explains it; ``compiles`` are the compiled versions by their ids."""

    def __init__(self, seen: RecompileSeen, failed: FailedGuard | None, compiles: Mapping[str, CompiledFrame]) -> None:
        self.seen = seen
        self.failed = failed
        self.guard = NONE_FAILED
        self.also: tuple[ParsedGuard, ...] = ()
        self.version = _version(seen, failed) if failed else ""
        if failed is not None:
            version = compiles.get(self.version)
            demands = [guard.text for guard in version.guards] if version else []
            if is_module_wrapper(seen.frame.path):
                parts = tuple(replace(part, text=_of_module(part.text)) for part in failed.also)
                failed = replace(failed, text=_of_module(failed.text), also=parts)
            guard = lost_view(failed.text, demands) or read_guard(failed.text, failed.name, seen.stored_as)
            self.guard = replace(guard, old=failed.old or guard.old, new=guard.new or failed.new)
            read = ((part, read_guard(part.text, None, seen.stored_as)) for part in failed.also)
            others = (replace(other, new=other.new or part.new) for part, other in read)
            # A container of which a key is gone is another one.
            self.also = tuple(other for other in others if other.subject not in guard.subject)


def _of_module(text: str) -> str:
    """A guard of torch's wrapper of a module, over the name that the module's own methods have for it."""
    return text.replace("L['fn']", "L['self']")


def _recompile(
    met: _Met,
    times: int,
    causes: _Causes,
    fates: Sequence[UncompiledFrame],
    broken: _Broken,
    run: _Process,
    versions: Mapping[str, CompiledFrame],
    how: HowCompiled,
    context: ExplainContext,
) -> Recompile:
    """``times`` is how often the function was compiled again over what the guard is about."""
    seen, failed, guard = met.seen, met.failed, met.guard
    call, generated = _call(seen, context), _caller_of_generated(seen, context)
    trigger = context.caller(call) if call else None
    text = failed.text if failed else ""
    origin = context.origin(generated.path if generated else seen.frame.path)
    is_users = origin is Origin.USER and (trigger is None or trigger.origin is Origin.USER)
    version, before = versions.get(seen.compile_id or ""), run.started.get(met.version)
    demands = [line.text for line in version.guards] if version else []
    sizes = [one for one in (guard, *met.also) if one.kind is ChangeKind.SIZE and one.dimension is not None]
    rule = None
    if text and not guard.of_signature:
        rule = explaining_rule(context.rules, gb=None, text=text, change=guard.kind, holder=guard.holder, times=times)
    asked = _asked(seen, failed)
    stored = _stored(guard, asked.path if asked else seen.frame.path, context)
    switch, is_memo = stored or (_switch(met, broken, run, context), False)
    if guard.holder is Holder.ARGUMENT and _closes_over(seen.frame, guard.subject, context):
        guard = replace(guard, holder=Holder.CLOSURE, function=context.function_of(seen.frame))
    return Recompile(
        rule=rule,
        function=context.function_of(seen.frame),
        site=_site(seen, asked, call if is_module_wrapper(seen.frame.path) else generated, guard, context),
        origin=origin,
        trigger=trigger,
        guard=guard,
        subject=guard.subject,
        old=guard.old,
        new=guard.new,
        compile_id=seen.compile_id or "",
        users_line=None if is_users else users_line(context.callers(seen.stack)),
        asked_at=context.caller(asked) if asked else None,
        switched_at=context.caller(switch) if switch else None,
        also=met.also,
        objects=(run.objects.get(met.version, ()), tuple(seen.objects.items())),
        cause=causes.number(
            seen.frame,
            guard,
            # A stack that is cut before the entry into compiled code lacks the call.
            trigger if not seen.cut or any(is_compiler_entry(frame.path) for frame in seen.stack) else None,
            begins_call=_begins_call(seen, context),
        ),
        how=how,
        opened=_opened(guard, sizes, demands),
        passed=_passed(seen, call, sizes, context),
        is_memo=is_memo,
        unrolled=_unrolled(seen, (guard, *met.also), context),
        container=_container(seen, call, context),
        made_by=_break_above(seen, fates, context) if origin is not Origin.USER else None,
        is_elsewhere=before is not None and _line_above(seen, context) != _line_above(before, context),
        runs=seen.runs,
        selected=context.sources.selected(asked.path, asked.line, guard.subject) if asked else None,
        in_thread=before is not None and before.in_thread,
    )


def _opened(guard: ParsedGuard, sizes: Sequence[ParsedGuard], demands: Sequence[str]) -> bool:
    """Return whether a version whose guards have these demands leaves open what changed."""
    if guard.kind is ChangeKind.NUMBER:
        return any(f"{guard.subject} is {kind}" in demands for kind in ("an int", "a float"))
    return bool(sizes) and all(leaves_open(demands, one.owner, one.dimension or 0) for one in sizes)


def _line_above(seen: RecompileSeen | CompileStarted, context: ExplainContext) -> tuple[str, int] | None:
    """The line that calls the function that is compiled; the rest of one after a break is called by itself."""
    code = seen.frame if isinstance(seen, RecompileSeen) else seen.code
    callers = context.not_torchs(seen.stack)[: -1 if code and resumed_at(code.name) else None]
    return (callers[-1].path, callers[-1].line) if callers else None


def _closes_over(frame: Code, subject: str, context: ExplainContext) -> bool:
    """Return whether a variable of a function that starts there is no parameter."""
    root = _ROOT.match(subject)
    is_head = resumed_at(frame.name) is None and context.sources.line(frame.path, frame.line) is not None
    return is_head and root is not None and context.sources.parameter(frame.path, frame.line, root[0]) is None


def _asked(seen: RecompileSeen, failed: FailedGuard | None) -> StackFrame | None:
    """The line that a guard is for: of sizes, torch's text has the end of its path."""
    if failed is None:
        return None
    if failed.stack:
        return failed.stack[-1]
    line = line_of(failed.text)
    return StackFrame(seen.frame.path, *line[1:]) if line and seen.frame.path.endswith(line[0]) else None


_NO_GRAD = ("no_grad", "inference_mode", "set_grad_enabled(False)")
_STATES = ("autocast", "set_default_dtype", "set_num_threads", "use_deterministic_algorithms")
_SWITCHES: Mapping[tuple[ChangeKind, str | None], tuple[Sequence[str], Sequence[str]]] = {
    (ChangeKind.GRAD_MODE, "False"): (_NO_GRAD, ()),
    (ChangeKind.GRAD_MODE, "True"): (("enable_grad", "set_grad_enabled(True)"), _NO_GRAD),
    (ChangeKind.INFERENCE, "True"): (("inference_mode",), ()),
    (ChangeKind.INFERENCE, "False"): ((), ("inference_mode",)),
    (ChangeKind.GLOBAL_STATE, None): (_STATES, _STATES),
}
"""The calls that switch a state around the new call, and around that for which the version was compiled."""


def _switch(met: _Met, broken: _Broken, run: _Process, context: ExplainContext) -> StackFrame | None:
    """The line that changed what the guard is about: the break that a value crosses, or the switch of a state."""
    if met.guard.holder is Holder.RESULT:
        return broken.get((met.seen.frame.path, met.seen.frame.line))
    before = run.started.get(met.version)
    stacks = met.seen.stack, before.stack if before else ()
    value = None if met.guard.kind is ChangeKind.GLOBAL_STATE else met.guard.new
    for names, stack in zip(_SWITCHES.get((met.guard.kind, value), ((), ())), stacks, strict=True):
        for frame in reversed(context.not_torchs(stack)) if names else ():
            if line := context.sources.switch(frame.path, frame.line, names):
                return replace(frame, line=line, column=None, end_column=None)
    if met.guard.kind in (ChangeKind.GLOBAL_STATE, ChangeKind.REQUIRES_GRAD):
        setters = [name for name in (*_STATES, "requires_grad_") if met.guard.subject.rpartition(".")[2] in name]
        for frame in reversed(context.not_torchs(met.seen.stack)):
            if line := context.sources.only_call(frame.path, setters):
                return StackFrame(frame.path, line, "")
    return None


def _stored(guard: ParsedGuard, path: str, context: ExplainContext) -> tuple[StackFrame, bool] | None:
    """The line that sets the attribute that a guard is about, if it is in the same file; and whether it is a memo."""
    tensor = guard.owner if guard.dimension is not None or guard.kind is ChangeKind.RANK else guard.subject
    name = _ATTRIBUTE.search(tensor) if guard.holder in (Holder.ATTRIBUTE, Holder.MODULE) else None
    stored = context.sources.stored(path, name[1]) if name else None
    return (StackFrame(path, stored[0], ""), stored[1]) if stored else None


_ATTRIBUTE = re.compile(r"\.(\w+)(?:\[\d+\])?$")


def _unrolled(seen: RecompileSeen, guards: Sequence[ParsedGuard], context: ExplainContext) -> Caller | None:
    names = {one.subject for one in guards if one.kind is ChangeKind.NUMBER}
    line = context.sources.loop_over(seen.frame.path, seen.frame.line, names) if names else None
    return context.caller(StackFrame(seen.frame.path, line, seen.frame.name)) if line else None


def _container(seen: RecompileSeen, call: StackFrame | None, context: ExplainContext) -> str | None:
    between = seen.stack[seen.stack.index(call) + 1 :] if call in seen.stack else ()
    is_sequential = any(PurePath(frame.path).parts[-4:] == _SEQUENTIAL for frame in between)
    return context.sources.called(call.path, call.line) if call and is_sequential else None


_SEQUENTIAL = ("torch", "nn", "modules", "container.py")


def _caller_of_generated(seen: RecompileSeen, context: ExplainContext) -> StackFrame | None:
    """The caller of a function that was made as text and has no file, as the methods of dataclasses are."""
    if seen.frame.path != "<string>" or context.sources.line(seen.frame.path, seen.frame.line) is not None:
        return None
    return next(reversed(context.not_torchs(seen.stack)), None)


def _begins_call(seen: RecompileSeen, context: ExplainContext) -> bool:
    """Return whether the program itself called the function, rather than compiled code."""
    if seen.cut and (resumed_at(seen.frame.name) or (seen.stack and calls_user_code(seen.stack[-1]))):
        # One of the frames that are missing is the program's.
        return False
    entry = next((i for i, frame in enumerate(seen.stack) if is_compiler_entry(frame.path)), None)
    if entry is None:
        return seen.cut
    return all(context.origin(frame.path) is Origin.FRAMEWORK for frame in seen.stack[entry:])


def _call(seen: RecompileSeen, context: ExplainContext) -> StackFrame | None:
    """The call of compiled code that met the guard: the line above torch's first frame, as a rule the user's."""
    entry = next((i for i, frame in enumerate(seen.stack) if is_compiler_entry(frame.path)), len(seen.stack))
    calls = context.not_torchs(seen.stack[:entry])
    while len(calls) > 1 and context.sources.passes_on(calls[-1].path, calls[-1].line):
        # Of a wrapper, whoever calls it decides what is passed.
        calls.pop()
    return calls[-1] if calls else None


def _break_above(
    seen: RecompileSeen, fates: Sequence[UncompiledFrame], context: ExplainContext
) -> tuple[Site, str] | None:
    """The break because of which a library's function is compiled alone, and the caller that runs eager of it."""
    for frame in reversed(context.not_torchs(seen.stack)):
        name, at = context.caller(frame).function, resumed_at(frame.name) or 0
        for fate in (one for one in fates if one.function == name):
            if fate.break_site and (not fate.rest_only or fate.site.line <= at <= fate.site.end_line):
                return fate.break_site, fate.function
    return None


def _passed(
    seen: RecompileSeen, call: StackFrame | None, sizes: Iterable[ParsedGuard], context: ExplainContext
) -> dict[str, str]:
    """The expressions that the program's own call of the function passes for the arguments that guards are about."""
    own, frame = call if _begins_call(seen, context) else None, seen.frame
    given = {one.owner: context.sources.passed(own, frame.path, frame.line, one.owner) for one in sizes if own}
    return {name: expression for name, expression in given.items() if expression is not None}


def _site(
    seen: RecompileSeen, asked: StackFrame | None, call: StackFrame | None, guard: ParsedGuard, context: ExplainContext
) -> Site:
    """The site that relies on the guard, as torch says; else the parameter that it is about, else the function.  Of a
    module of torch's and of a generated function it is the ``call``, where there is no code of the user's."""
    frame = seen.frame
    if call and not (asked and context.owners.is_programs(asked.path)):
        return context.sources.site(call.path, call.line, call.column, call.end_column)
    if asked:
        return context.sources.site(asked.path, asked.line, asked.column, asked.end_column)
    parameter = context.sources.parameter(frame.path, frame.line, re.split(r"[.[]", guard.subject)[0])
    return parameter or context.site_of(frame)
