"""Problems that the compiler does not report: calls that use no compiled code, names of compiled models in state dicts,
code that is compiled anew, caches that do not store, loops that are unrolled, compiled code that raises."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from breakscan.explanation.compilations import CompiledFrame
from breakscan.explanation.context import ExplainContext, is_torchs_own
from breakscan.explanation.frames import FrameStatus, UncompiledFrame
from breakscan.explanation.run_totals import Inherited
from breakscan.model.findings import Origin, Severity, Site, Verdict
from breakscan.model.problem import Caller, Problem, ProblemKind
from breakscan.model.remedy import Remedy
from breakscan.model.words import counted, grouped, seconds_in_words
from breakscan.recording.parsers.frames import is_resumed, lacking_backward, user_name
from breakscan.recording.parsers.graphs import AUTOGRAD_FUNCTION, cannot_be_stored
from breakscan.recording.records import (
    DEFAULT_STANCE,
    DISPATCH_MODE,
    EAGER_FIRST_STANCE,
    CallsRan,
    Code,
    CodeGenerated,
    CompileCalled,
    CompileStarted,
    EagerCallsRan,
    FrameEnded,
    GraphCompiled,
    GraphRaised,
    LateHookSeen,
    PlainCallsRan,
    ProcessForked,
    RecompileSeen,
    StackFrame,
    StateKeysSeen,
    ValuesSeen,
)
from breakscan.recording.traced import is_of
from breakscan.rulebook.remedies import remedy

_UNKNOWN = Caller("<unknown>", 1, None, Origin.USER)


def around_the_compiler(
    frames: Iterable[UncompiledFrame], compiles: Sequence[CompiledFrame], context: ExplainContext
) -> list[Problem]:
    """The problems of all kinds, for which nothing that Dynamo reports is needed."""
    return [
        *_failed_runs(context),
        *_eager_calls(frames, context),
        *_plain_calls(context),
        *_half_precision(context),
        *_late_hooks(context),
        *_state_keys(context),
        *_compiled_anew(compiles, context),
        *_compile_calls(context),
        *_bypassed_caches(compiles, context),
        *_unrolled_loops(compiles, context),
    ]


def _problem(
    kind: ProblemKind, where: StackFrame | Site, context: ExplainContext, remedies: Iterable[Remedy | None], **own: Any
) -> Problem:
    """A problem at a line of a recorded file, or at a site that reports show."""
    if isinstance(where, StackFrame):
        own |= {"origin": context.origin(where.path), "code": context.sources.line(where.path, where.line)}
        where = context.sources.site(where.path, where.line)
    usual: dict[str, Any] = {"rule": None, "verdict": None, "severity": Severity.WARNING, "functions": (), "count": 1}
    kept = tuple(remedy for remedy in remedies if remedy is not None)
    return Problem(kind, kind.value, kind.words, site=where, remedies=kept, **(usual | {"origin": Origin.USER} | own))


def _line(stack: Sequence[StackFrame], context: ExplainContext) -> StackFrame:
    """The program's innermost line of a stack."""
    return next(iter(reversed(context.not_torchs(stack))), StackFrame(_UNKNOWN.path, 1, ""))


_FROM_THEN_ON = ": after one call of what it returned there, later ones run eager until torch._dynamo.reset()"
_WHY: Mapping[str, tuple[str, str | None]] = {
    "force_eager": ("{stance} was in force, under which nothing compiled runs", "outside-stance"),
    "eager_on_recompile": ("no version fitted, and {stance} was in force, which makes none", "warm-up-before-stance"),
    "eager_then_compile": ("{stance} was in force, under which the first call runs eager", None),
    DISPATCH_MODE: ("{mode} was active, a dispatch mode, under which each operation runs on its own", "outside-mode"),
}
"""Why calls ran eager, and the name of the remedy, by the stance."""


def _eager_calls(frames: Iterable[UncompiledFrame], context: ExplainContext) -> Iterator[Problem]:
    """The eager calls of what is compiled, by function and stance, the most frequent first.  Under the default stance,
    only functions count that are known not to be compiled: others may have been compiled before."""
    called = Inherited(context.processes, CompileCalled, attrgetter("key"))
    met_limit = past_limit(context)
    all_calls: Counter[Code | str] = Counter()
    for process, ran in context.last(CallsRan, "key"):
        if (call := called.get(process, ran.key)) is not None:
            all_calls[call.code or call.target] += ran.calls
    eager = grouped(((call.code or call.target, ran.stance), (call, ran)) for call, ran in eager_calls_of(context))
    lost = (FrameStatus.EAGER, FrameStatus.RAISED)
    whole = (frame for frame in frames if frame.status in lost and not frame.rest_only)
    given_up = {(frame.function, frame.site): frame for frame in whole}
    for about, stance in [key for key in eager if key[1].startswith(DISPATCH_MODE)]:
        eager[about, stance] += eager.pop((about, DEFAULT_STANCE), [])
    for (about, stance), parts in sorted(eager.items(), key=lambda item: -sum(ran.calls for _, ran in item[1])):
        first, ran_first = parts[0]
        name, site, origin = compiled_function(first, context)
        frame = given_up.get((name, site))
        if stance == DEFAULT_STANCE and frame is None:
            continue
        is_explained = frame is not None and stance == DEFAULT_STANCE
        known, _, mode = stance.partition(":")
        why, helps = _WHY.get(known, ("{stance} was in force", None))
        why = why.format(stance=f'torch.compiler.set_stance("{stance}")', mode=mode)
        # The call that met the limit compiled nothing, and is none of those that were timed.
        met = met_limit[first.code] if is_explained else 0
        calls = sum(ran.calls for _, ran in parts) + met
        later = sum(ran.calls for _, ran in parts if ran.stance != stance)
        why += f"; {later} of them came later, outside of it" if later else ""
        yield _problem(
            ProblemKind.EAGER_CALLS,
            site,
            context,
            origin=origin,
            verdict=None if stance == EAGER_FIRST_STANCE else Verdict.EAGER,
            functions=(name,),
            what="ran eager",
            why=f"{calls} of {counted(all_calls[about] + met, 'call')} used no compiled code: "
            f"{frame.reason if frame is not None and is_explained else why}",
            remedies=(remedy(helps, later=_FROM_THEN_ON if later else "") if helps else None,),
            count=calls,
            reason=stance,
            called_from=context.callers(ran_first.stack)[-1:],
            cause=ProblemKind.FUNCTION if is_explained else None,
        )


def eager_calls_of(context: ExplainContext) -> Iterator[tuple[CompileCalled, EagerCallsRan]]:
    """The calls that ran eager, by process, by what was called and by stance, with the call of torch.compile."""
    called = Inherited(context.processes, CompileCalled, attrgetter("key"))
    for process, ran in context.last(EagerCallsRan, "key", "stance"):
        if (call := called.get(process, ran.key)) is not None:
            yield call, ran


def past_limit(context: ExplainContext) -> Counter[Code | None]:
    """The number of calls that met the limit of recompiles and ran eager, by function."""
    raised = {ended.frame for ended in context.of(FrameEnded) if ended.raised and ended.limit}
    return Counter(seen.frame for seen in context.of(RecompileSeen) if seen.past_limit and seen.frame not in raised)


def compiled_function(call: CompileCalled, context: ExplainContext) -> tuple[str, Site, Origin]:
    """The function, and its head.  Where that is torch's own, as the ``forward`` of ``nn.Sequential``: what was passed
    to torch.compile, and the line that did."""
    if call.code is not None and context.origin(call.code.path) is not Origin.FRAMEWORK:
        return context.function_of(call.code), context.site_of(call.code), context.origin(call.code.path)
    where = context.nearest(call.stack) or _UNKNOWN
    return call.target, Site(where.path, where.line, 1, where.line, 1), where.origin


def _plain_calls(context: ExplainContext) -> Iterator[Problem]:
    """Calls of modules that are also compiled, by the line of the program; those that a method of the compiled model
    leads to, at the line that takes the method."""
    latest = [ran for _, ran in context.last(PlainCallsRan, "code", "stack", "method")]
    tried = {record.code for record in context.of(CompileStarted)}
    targets = {call.target: call.code for call in context.of(CompileCalled)}
    methods = [ran for ran in latest if ran.method is not None]
    calls = [ran for ran in latest if ran.method is None]
    for method in methods:
        below = [ran for ran in calls if any(is_of(frame, method.code) for frame in ran.stack)]
        calls = [ran for ran in calls if ran not in below]
        if below or targets.get(method.target) not in tried:
            name = context.function_of(method.code)
            why = (
                f"torch.compile compiles what happens when the model is called; {name} is a method of the original, "
                f"and what it calls runs eager{_how_much(below)}"
            )
            yield _problem(
                ProblemKind.PLAIN_CALLS,
                _line(method.stack, context),
                context,
                functions=(name,),
                what="runs the original",
                why=why,
                remedies=(remedy("compile-method", method=method.method),),
                count=max(1, sum(ran.calls for ran in below)),
                cost=sum(ran.seconds for ran in below) or None,
            )
    by_line = grouped(((ran.code, _line(ran.stack, context)), ran) for ran in calls)
    starts = {_line(record.stack, context) for record in context.of(CompileStarted)}
    callers = {(line.path, line.name) for line in starts}
    compiled_at = {_line(call.stack, context) for call in context.of(CompileCalled)}
    where = context.caller(compiled_at.pop()) if len(compiled_at) == 1 else None
    for (code, line), group in by_line.items():
        name = context.function_of(code)
        calls_given = (line.path, line.name) in callers and context.sources.calls_parameter(line.path, line.line)
        if line in starts or calls_given:
            # The line calls both, to compare them.
            continue
        part_of = f"what torch.compile returned ({where.path}:{where.line})" if where else "what is compiled"
        what, why = "calls the plain model", f"compiled, as a part of {part_of}; here it is called as it is"
        helps = ["call-compiled", "compile-in-place", "eager-on-purpose"]
        if any(ran.is_copy for ran in group):
            what, why = (
                "calls a copy that is not compiled",
                "compiled; what is called here is a copy of it as it was before",
            )
            helps[:2] = ["compile-copy"]
        yield _problem(
            ProblemKind.PLAIN_CALLS,
            line,
            context,
            functions=(name,),
            what=what,
            why=f"{name} is {why}, and runs eager{_how_much(group)}",
            remedies=[remedy(one) for one in helps],
            count=max(1, sum(ran.calls for ran in group)),
            cost=sum(ran.seconds for ran in group) or None,
        )


_HALF = {"float16", "bfloat16"}


def _half_precision(context: ExplainContext) -> Iterator[Problem]:
    """Lines that call compiled code of half precision, and something else with the same arguments."""
    tensors = ((seen.code, value.tensor) for seen in context.of(ValuesSeen) for value in seen.names.values())
    halves = {code for code, tensor in tensors if tensor and not _HALF.isdisjoint(tensor.dtypes)}
    started = [record for record in context.of(CompileStarted) if record.code in halves]
    for line, code in {_line(record.stack, context): record.code for record in started}.items():
        if context.of(CodeGenerated) and context.sources.compares(line.path, line.line):
            yield _problem(
                ProblemKind.PLAIN_CALLS,
                line,
                context,
                severity=Severity.INFO,
                functions=(context.function_of(code),),
                what="compares with the plain model",
                why="between operations that it fuses, Inductor leaves out the rounding to half precision: results "
                "differ from those of the plain model and are closer to float32, which is no error",
                remedies=(remedy("emulate_precision_casts"),),
            )


def _how_much(calls: Sequence[PlainCallsRan]) -> str:
    number, seconds = sum(ran.calls for ran in calls), sum(ran.seconds for ran in calls)
    return f": {counted(number, 'call')}" if number else f", for about {seconds_in_words(seconds)}" if seconds else ""


def _late_hooks(context: ExplainContext) -> Iterator[Problem]:
    by_line = grouped(((_line(seen.stack, context), seen.hook), seen) for seen in context.of(LateHookSeen))
    for (line, hook), found in by_line.items():
        classes = ", ".join(dict.fromkeys(seen.target for seen in found))
        yield _problem(
            ProblemKind.LATE_HOOKS,
            line,
            context,
            severity=Severity.ERROR,
            functions=(hook,),
            what="registers a hook that compiled code ignores",
            why=f"{counted(len(found), 'module')} ({classes}) had been compiled as a part of a larger one, and torch "
            f"does not check whether hooks are added later: {counted(found[-1].runs, 'run')} left {hook} out",
            remedies=(remedy("hook-before"), remedy("skip_nnmodule_hook_guards")),
            count=len(found),
        )


def _state_keys(context: ExplainContext) -> Iterator[Problem]:
    for seen in dict.fromkeys(context.of(StateKeysSeen)):
        is_saved = seen.way == "saved"
        holds = "_orig_mod is the name by which a compiled model holds the original"
        keys = counted(seen.keys, "key")
        if is_saved:
            what, why = "saves names of the compiled model", f"{keys} with _orig_mod in it: {holds}"
        else:
            what = "loads some keys" if seen.fits else "loads no key"
            some = "some" if seen.fits else "none"
            why = f"{some} of {keys} are names of this model: {holds}, and only one side has it"
        yield _problem(
            ProblemKind.STATE_KEYS,
            _line(seen.stack, context),
            context,
            severity=Severity.WARNING if is_saved or seen.fits else Severity.ERROR,
            what=what,
            why=why,
            remedies=(remedy("original-state"), remedy("compile-in-place")),
            reason=seen.way,
        )


_DATA_LOADER = "torch/utils/data/_utils/worker.py"


def _compiled_anew(compiles: Sequence[CompiledFrame], context: ExplainContext) -> Iterator[Problem]:
    """Functions that several processes compile, or one process again after a reset."""
    by_process: dict[Code, dict[int, list[CompileStarted]]] = defaultdict(lambda: defaultdict(list))
    for process, records in enumerate(context.processes):
        for record in records:
            if isinstance(record, CompileStarted) and not is_resumed(record.code.name):
                by_process[record.code][process].append(record)
    seconds = {one.compile_id: one.seconds + one.backward_seconds for one in compiles}
    for code, found in by_process.items():
        started = [record for group in found.values() for record in group]
        each = [sum(seconds.get(record.compile_id, 0.0) for record in group) for group in found.values()]
        cost = sum(each)
        # The part of the id before its number is another one after each reset of the compiler.
        resets = max(len({one.compile_id.rpartition(":")[0] for one in group}) for group in found.values())
        origin = context.origin(context.place_of(code)[0])
        if origin is Origin.FRAMEWORK or max(len(found), resets) < 2:
            continue
        name = context.function_of(code)
        if len(found) > 1:
            is_forked = any(isinstance(context.processes[number][0], ProcessForked) for number in found)
            stacks = [group[0].stack for group in found.values()]
            loaders = sum(any(frame.path.endswith(_DATA_LOADER) for frame in stack) for stack in stacks)
            in_loader = 2 * loaders > len(found)
            which = "workers of a DataLoader" if in_loader else "processes"
            why = f"{len(found)} {which} compile it, each for itself: {seconds_in_words(cost)} in all, some at once"
            helps = "persistent-workers" if in_loader else "compile-before-fork" if is_forked else None
        else:
            why = f"it was compiled anew {resets} times, each time after torch._dynamo.reset()"
            helps = "reset-once"
        yield _problem(
            ProblemKind.COMPILED_ANEW,
            context.site_of(code),
            context,
            origin=origin,
            severity=Severity.INFO,
            functions=(name,),
            what="is compiled anew",
            why=why,
            remedies=(remedy(helps) if helps else None,),
            count=len(found) if len(found) > 1 else resets,
            called_from=tuple(dict.fromkeys(one for record in started for one in context.callers(record.stack)[-1:])),
            cost=cost - max(each) if len(each) > 1 else cost * (resets - 1) / resets,
        )


_OFTEN = 5  # the least number of calls of ``torch.compile`` for what it was called for before


def _compile_calls(context: ExplainContext) -> Iterator[Problem]:
    """Lines that call ``torch.compile`` again and again for what is then called once."""
    for records in context.processes:
        calls = {record.key: record.calls for record in records if isinstance(record, CallsRan)}
        asked = (one for one in records if isinstance(one, CompileCalled) and not is_torchs_own(one))
        groups = grouped(((_line(one.stack, context), one.target), one) for one in asked)
        for (line, target), group in groups.items():
            ran = sum(calls.get(one.key, 0) for one in group)
            if sum(one.again for one in group) < _OFTEN or ran >= 2 * len(group):
                continue
            yield _problem(
                ProblemKind.COMPILED_ANEW,
                line,
                context,
                severity=Severity.INFO,
                functions=(target.rpartition(".")[2],),
                what="calls torch.compile in each call",
                why=f"torch.compile was called {len(group)} times, each time for one call of what it returned: "
                "compiled code is kept, but making what leads to it takes longer than many a call",
                remedies=(remedy("compile-once"),),
                count=len(group),
            )


_APPLIED = re.compile(r"([\w.]+)\.apply\(")


def _bypassed_caches(compiles: Sequence[CompiledFrame], context: ExplainContext) -> Iterator[Problem]:
    """Compiled code that a cache does not store: each process that starts compiles it again."""
    graphs = {record.compile_id: record for record in context.of(GraphCompiled)}
    groups: dict[tuple[Site, str, str], list[tuple[CompiledFrame, StackFrame | None]]] = defaultdict(list)
    for compiled in compiles:
        for use in compiled.caches:
            if use.outcome == "bypass" and use.reason:
                name, graph = (cannot_be_stored(use.reason) or "").rpartition(".")[2], graphs.get(compiled.compile_id)
                nodes = graph.nodes if graph and name else ()
                line = next((node.line for node in nodes if node.name.startswith(name)), None)
                site = compiled.site if line is None else context.sources.site(line.path, line.line)
                groups[site, use.cache, use.reason].append((compiled, line))
    for (site, cache, reason), found in groups.items():
        first, line = found[0]
        function, helps = cannot_be_stored(reason), None
        applied = _APPLIED.search(context.sources.line(line.path, line.line) or "") if line else None
        if function == AUTOGRAD_FUNCTION:
            called = applied[1] if applied else "a subclass of torch.autograd.Function"
            because = f"the graph calls {called}, on whose code the key of the cache does not depend"
            helps = "cache-autograd-functions"
        elif function:
            because = f"the graph calls {function}, which torch does not know to be safe to store"
            helps = "autocast-outside" if "autocast" in function else None
        else:
            because = f"torch says: {' '.join(reason.partition('. ')[0].split())}"
        yield _problem(
            ProblemKind.CACHE_BYPASS,
            line or site,
            context,
            origin=first.origin,
            severity=Severity.INFO,
            functions=(first.function,),
            what=f"bypasses the {cache} cache",
            why=f"nothing is stored, so each start of the program compiles it again: {because}",
            remedies=(remedy(helps) if helps else None,),
            count=len(found),
            reason=reason,
        )


_MANY_OPS = 1000
_LONG_COMPILE = 10.0  # seconds of a compilation from which on a loop with fewer operations is worth a word, too
_FEW_OPS = 100
_FEW_ROUNDS = 8


def _unrolled_loops(compiles: Sequence[CompiledFrame], context: ExplainContext) -> Iterator[Problem]:
    """The loop that most operations of a large graph come from."""
    by_id = {one.compile_id: one for one in compiles}
    largest: dict[Site, tuple[int, int, int, GraphCompiled]] = {}
    for graph in context.of(GraphCompiled):
        loops: dict[Site, tuple[int, int]] = {}
        for line in graph.repeated:
            loop = context.sources.loop(line.place.path, line.place.line)
            if loop is not None:
                ops, rounds = loops.get(loop, (0, 0))
                loops[loop] = ops + line.ops, max(rounds, line.rounds)
        if loops:
            site, (ops, rounds) = max(loops.items(), key=lambda item: item[1][0])
            if ops > largest.get(site, (0,))[0]:
                largest[site] = ops, rounds, graph.ops, graph
    for site, (ops, rounds, of, graph) in largest.items():
        compiled = by_id.get(graph.compile_id or "")
        seconds = compiled.seconds + compiled.backward_seconds if compiled else 0.0
        if rounds < _FEW_ROUNDS or ops < (_FEW_OPS if seconds >= _LONG_COMPILE else _MANY_OPS) or 2 * ops < of:
            continue
        yield _problem(
            ProblemKind.UNROLLED_LOOP,
            site,
            context,
            origin=context.origin(graph.frame.path),
            severity=Severity.INFO,
            functions=(context.function_of(graph.frame),),
            what="is unrolled",
            why=f"{ops} of the {of} operations of the graph come from {rounds} rounds of this loop, each of which is "
            f"compiled as if it were other code ({seconds_in_words(seconds)})",
            remedies=(remedy("compile-block"),),
            count=rounds,
        )


ONLY_COMPILED = "Only compiled code raises this: the plain program goes on here."
MAYBE_PLAIN = "TORCH_COMPILE_DISABLE=1 shows whether the plain program raises this, too."


def _failed_runs(context: ExplainContext) -> Iterator[Problem]:
    """Exceptions out of graphs while they ran, at its line; out of backwards, at the line that asked for one."""
    graphs = Inherited(context.processes, GraphCompiled, attrgetter("graph"))
    compiled = {graph.frame for graph in context.of(GraphCompiled)}
    for process, records in enumerate(context.processes):
        for raised in records:
            if not isinstance(raised, GraphRaised):
                continue
            graph = None if raised.graph is None else graphs.get(process, raised.graph)
            frame = graph.frame if graph is not None else compiled.copy().pop() if len(compiled) == 1 else None
            where = _line(raised.stack, context)
            if raised.graph is not None and frame is not None:
                frames = [one for one in raised.stack if user_name(one.name) == user_name(frame.name)]
                where = StackFrame(frame.path, frames[-1].line if frames else frame.line, frame.name)
            text = " ".join(raised.text.split("\n\n")[0].split())
            name = lacking_backward(text)
            yield _problem(
                ProblemKind.FAILED_RUN,
                where,
                context,
                severity=Severity.ERROR,
                verdict=Verdict.RAISES,
                functions=() if frame is None else (context.function_of(frame),),
                what=f"raises while {'its compiled code' if raised.graph is not None else 'a compiled backward'} runs",
                why=f"{raised.error}: {text}",
                remedies=(remedy(name) if name else None,),
                consequences=(ONLY_COMPILED if name or raised.compilers else MAYBE_PLAIN,),
                called_from=context.callers(raised.stack)[-1:] if raised.graph is not None else (),
            )
