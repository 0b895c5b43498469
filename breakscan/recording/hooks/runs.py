"""Hooks into runs: counts and times of graphs, of the gaps between them, and of calls.  The outermost call is seen
through ``enter_exit_hooks`` of the context that ``torch.compile`` makes: functions that the context calls before and
after the compiled code, while nothing is traced.  A graph is seen through the callable that the backend returned, which
Dynamo calls with tracing switched off.  The backward of a graph is called by autograd, and is not seen."""

import os
import sys
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import perf_counter
from types import CodeType, FrameType, FunctionType
from typing import Any

from breakscan.recording.hooks.hook import Hook, Hooks, calling_stack, value_in_words
from breakscan.recording.hooks.run_tallies import KEPT, CallTally, DeviceTime, GraphTally, Threads, ThreadState
from breakscan.recording.parsers.guards import readable
from breakscan.recording.records import DEFAULT_STANCE, DISPATCH_MODE, GraphRaised

Run = Callable[..., Any]
LONGEST_ERROR = 2000  # characters of the text of an exception
_SHORTEST = 0.1  # seconds between two writings, at least
_STALE = 4  # the files on disk are late by a quarter of the elapsed time at most
_WRITING = 200  # writing takes no more than one part in so many of the time
_counting: "weakref.WeakSet[RunHook]" = weakref.WeakSet()


class RunHook(Hook):
    """Counts and times what runs, and records it: at a call's end now and then, and when the recording ends, or the
    process.  Nothing is counted unless it is installed.  ``due`` is the time from which on the end of a call calls
    ``write_again``; ``profile`` is called where a call begins, if steps are to be profiled.  Counts are not locked:
    where threads run one graph at once, a run may be lost."""

    name = "runs"
    without = "what calls of compiled code cost is missing"
    needs = ("torch._dynamo.eval_frame:_TorchDynamoContext.__init__",)
    reads = ("torch._dynamo.eval_frame:DisableContext.__call__", "torch._functorch.aot_autograd:_boxed_call")
    during_exports = True

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks)
        self._is_on = False
        self.key_of = self.guarded(self._key_of)
        self.graph_raised = self.guarded(self._graph_raised)
        self.write_again = self.guarded(self._write_again)
        self._write = self.guarded(hooks.write)
        self._states: list[weakref.ref[ThreadState]] = []
        self.threads = Threads(self._states)
        self.device = DeviceTime(self.threads)
        self.watched: dict[CodeType, str] = {}
        """Functions past the limit of recompiles, each with the expression for which it has too many versions."""
        self.due = 0.0
        self.compilations = 0
        self._begun: dict[int, tuple[weakref.ref[Any], list[int]]] = {}
        """The calls that have begun, by the module or code: a program may compile it anew at each call."""
        self._step = 0
        self.profile: Callable[[CallTally], object] | None = None
        self._since = 0.0
        self._graphs: list[GraphTally] = []
        self._calls: list[CallTally] = []
        self._failed: set[object] = set()
        _counting.add(self)

    @contextmanager
    def installed(self) -> Iterator[bool]:
        from torch._dynamo import eval_frame

        constructor = getattr(getattr(eval_frame, "_TorchDynamoContext", None), "__init__", None)
        self._is_on = True
        with super().installed():
            yield isinstance(constructor, FunctionType) and "enter_exit_hooks" in constructor.__code__.co_names

    def graph(self, compiled: Run, number: int, broke: bool, device: Any = None, compile_id: str | None = None) -> Run:
        """Does what ``compiled`` does, and times it; also on ``device``, where it is a CUDA device."""
        if not self._is_on:
            return compiled
        tally = GraphTally(number, broke, compile_id)
        self._graphs.append(tally)
        run = _disguised(_timed(compiled, tally, self), compiled)
        return run if device is None else _disguised(self.device.timed(run, tally, device), compiled)

    def _key_of(self, context: Any, subject: Any) -> int | None:
        """Times the calls of what ``context``, one of ``torch.compile``, compiles, and counts them as those of
        ``subject``.  Returns the key of the context."""
        if not self._is_on:
            return None
        for hook in context.enter_exit_hooks:
            if getattr(hook, "of", None) is self:
                return hook.key  # type: ignore[no-any-return]
        about = getattr(subject, "__code__", subject)
        held, counted = self._begun.get(id(about), (None, [0]))
        if held is None or held() is not about:
            counted = [0]
            # A WeakKeyDictionary would ask for a hash, and have a callback that Dynamo may compile.
            with suppress(TypeError):
                self._begun[id(about)] = weakref.ref(about), counted
        tally = CallTally(len(self._calls), counted)
        self._calls.append(tally)
        enter: Any = _entered(tally, self)
        enter.of, enter.key = self, tally.key
        context.enter_exit_hooks.append(enter)
        return tally.key

    @property
    def runs(self) -> int | None:
        """The number of runs of graphs until now; None if they are not counted."""
        return sum(tally.runs for tally in self._graphs) if self._is_on else None

    @property
    def step(self) -> int | None:
        """The calls that have begun of what is called most; None if they are not counted."""
        is_whole = self.hooks.works(self.name) and self.name not in self.hooks.failed
        return self._step if is_whole else None

    def begins(self, tally: CallTally) -> None:
        """An outermost call begins."""
        tally.begun[0] += 1
        self._step = max(self._step, tally.begun[0])

    def runs_of(self, compile_ids: Collection[str | None]) -> int:
        return sum(tally.runs for tally in self._graphs if tally.compile_id in compile_ids)

    def compiled(self) -> None:
        """Something was compiled: the calls and gaps that it fell into are not steady."""
        self.compilations += 1
        for state in [reference() for reference in self._states]:
            if state is not None:
                state.steady = False
                state.last = state.device_gap = state.device_call = None

    def _graph_raised(self, number: int | None, error: BaseException) -> None:
        """A graph raised, or a backward, other than by what ends a program: each is recorded once."""
        stack = calling_stack(sys._getframe(1))
        key = stack if number is None else number
        if isinstance(error, Exception) and key not in self._failed:
            self._failed.add(key)
            text = str(error)[:LONGEST_ERROR]
            self._write(GraphRaised(number, type(error).__name__, text, stack, _is_compilers(error)))

    def _write_again(self, now: float) -> None:
        """Writes less and less often, so that what is on disk is nearly what happened, and writing costs nothing."""
        began = perf_counter()
        self._since = self._since or now
        # Set first: a disk that is full is not asked again at each call.
        self.due = now + max(_SHORTEST, (now - self._since) / _STALE)
        self.ended()
        self.due = max(self.due, now + _WRITING * (perf_counter() - began))

    def ended(self) -> None:
        self.device.read()
        for tally in self._tallies():
            for record in tally.records():
                self._write(record)

    def forked(self) -> None:
        """A forked process counts for itself, from zero."""
        self.device.forked()
        self.threads.state.clear()
        self.profile = None
        self.due = self._since = 0.0
        self._step = 0
        for tally in self._tallies():
            tally.clear()

    def _tallies(self) -> list[GraphTally | CallTally]:
        return [*self._graphs, *self._calls]


class BackwardHook(Hook):
    """Records where the backward of compiled code raises: autograd calls it, and not what Dynamo made."""

    name = "backward"
    without = "compiled code that raises in its backward is missing"
    wraps = ("torch.autograd.graph:_engine_run_backward",)
    imported_by = ("torch.autograd",)
    reads = ("torch._functorch._aot_autograd.runtime_wrappers:backward",)

    def raised(self, error: Exception) -> None:
        ran = ((frame.f_code.co_name, _module_of(frame)) for frame in frames_to(error))
        if any(name == _BACKWARD and module.startswith(_COMPILERS) for name, module in ran):
            self.hooks.of(RunHook).graph_raised(None, error)


_BACKWARD = "backward"
_COMPILERS = ("torch._functorch._aot_autograd", "torch._inductor")
"""Modules whose exceptions plain code does not raise; what Inductor generates belongs to one of them."""


def frames_to(error: BaseException) -> Iterator[FrameType]:
    """The frames through which an exception came, innermost last."""
    place = error.__traceback__
    while place is not None:
        yield place.tb_frame
        place = place.tb_next


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _is_compilers(error: BaseException) -> bool:
    """Return whether the compiler's own code raised an exception.  ``torch._check`` raises for its caller, and a
    backward that lacks what was saved for it fails in plain code, too."""
    *_, raised_in = (frame for frame in frames_to(error) if _module_of(frame) != "torch")
    return raised_in.f_code.co_name != _BACKWARD and _module_of(raised_in).startswith(_COMPILERS)


class StanceHook(Hook):
    """Records the stance of ``torch.compiler.set_stance`` under which calls ran eager: :class:`RunHook` reads it."""

    name = "stance"
    without = "calls that ran eager under torch.compiler.set_stance are missing"
    needs = ("torch._dynamo.eval_frame:_stance.stance",)
    reads = ("torch.utils._python_dispatch:_get_current_dispatch_mode",)


def current_stance() -> str:
    """The stance as ``set_stance`` names it, or the dispatch mode under which nothing is compiled; else the default."""
    from torch._dynamo import eval_frame
    from torch.utils import _python_dispatch

    mode = getattr(_python_dispatch, "_get_current_dispatch_mode", lambda: None)()
    if mode is not None and not getattr(mode, "is_infra_mode", bool)():
        return f"{DISPATCH_MODE}:{type(mode).__name__}"
    return getattr(getattr(eval_frame, "_stance", None), "stance", DEFAULT_STANCE)


def _timed(compiled: Run, tally: GraphTally, hook: RunHook) -> Run:
    # Runs as often as the graph does: everything is a local or one attribute away.
    threads = hook.threads
    clock = perf_counter
    newest = KEPT - 1

    def run(*args: Any, **kwargs: Any) -> Any:
        state = threads.state
        last = state.last
        # What runs within a graph is part of it.
        before = state.graph_seconds
        state.last = None
        began = clock()
        if last is not None:
            gap = began - state.ended
            last.gaps[last.passes & newest] = gap
            last.passes += 1
            if last.broke:
                state.gap_seconds += gap
        try:
            result = compiled(*args, **kwargs)
        except BaseException as error:
            hook.graph_raised(tally.number, error)
            # The traceback of the user's program does not show this frame.
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
        ended = clock()
        seconds = ended - began
        tally.runs += 1
        tally.seconds += seconds
        if state.depth:
            state.graph_seconds = before + seconds
            state.ended = ended
            state.last = tally
        return result

    return run


def _entered(tally: CallTally, hook: RunHook) -> Callable[[], Callable[[], None]]:
    threads = hook.threads
    clock = perf_counter
    exc_info = sys.exc_info
    newest = KEPT - 1

    def leave() -> None:
        ended = clock()
        state = threads.state
        if state.depth != 1:
            # A process that was forked within the call has none open.
            state.depth = max(0, state.depth - 1)
            return
        state.depth = 0
        last, state.last = state.last, None
        error = exc_info()[1]
        # An exception that a caller handles right now is not on its way out of this call.
        if error is None or error.__traceback__ is None or error.__traceback__.tb_frame is not sys._getframe(1):
            if last is not None:
                gap = ended - state.ended
                last.gaps[last.passes & newest] = gap
                last.passes += 1
                if last.broke:
                    state.gap_seconds += gap
            if state.steady:
                place = tally.calls & newest
                tally.calls += 1
                tally.seconds += ended - state.began
                tally.last_seconds[place] = ended - state.began
                tally.last_graphs[place] = state.graph_seconds
                tally.last_gaps[place] = state.gap_seconds
                if last is None:
                    _ran_eager(tally, state.past_limit)
        if state.device_gap is not None:
            hook.device.close_gap(state, last)
        if state.device_call is not None:
            hook.device.end_call(state, tally)
        if ended >= hook.due:
            hook.write_again(ended)

    def enter() -> Callable[[], None]:
        state = threads.state
        state.depth += 1
        if state.depth == 1 or not _is_nested(sys._getframe(1)):
            state.depth = 1
            state.last = state.device_gap = state.device_call = None
            state.graph_seconds = state.gap_seconds = 0.0
            state.steady = True
            hook.begins(tally)
            state.past_limit = _value_past_limit(sys._getframe(1), hook.watched) if hook.watched else None
            if hook.profile is not None:
                hook.profile(tally)
            if tally.to_time:
                hook.device.begin_call(state, tally)
            state.began = clock()
        return leave

    return enter


def _ran_eager(tally: CallTally, value: tuple[str, str] | None) -> None:
    """Counts a call in which no graph ran; ``value`` is the one for which it would need another version."""
    stance = current_stance()
    if value is not None and stance == DEFAULT_STANCE:
        tally.eager_about, met = value
        if met in tally.eager_values or len(tally.eager_values) < KEPT:
            tally.eager_values[met] = tally.eager_values.get(met, 0) + 1
    known = tally.eager.get(stance, 0)
    if not known and stance not in tally.first_eager:
        tally.first_eager[stance] = calling_stack(sys._getframe(2))
    tally.eager[stance] = known + 1


def _value_past_limit(frame: FrameType, watched: Mapping[CodeType, str]) -> tuple[str, str] | None:
    """The expression over which a function is past the limit, and its value before a call, which may change it."""
    # Up to Python 3.11, a comprehension that enters contexts is a function.
    call = frame.f_locals if "fn" in frame.f_locals or frame.f_back is None else frame.f_back.f_locals
    function = call.get("fn")
    owner = getattr(function, "__self__", None)
    code: Any = getattr(function, "__code__", None)
    if code not in watched:
        code = getattr(getattr(type(owner), "forward", None), "__code__", None)
    if not watched.get(code):
        return None
    given = (*(() if owner is None else (owner,)), *call.get("args", ()))
    names = dict(zip(code.co_varnames, given, strict=False)) | call.get("kwargs", {})
    try:
        return readable(watched[code]), value_in_words(eval(watched[code], {"L": names}))
    except Exception:
        return None


def _is_nested(frame: FrameType | None) -> bool:
    """Return whether a call stands around the one that starts in ``frame``.  Where ``fullgraph=True`` is what
    raises, torch does not say that a call is over."""
    found = None
    while frame is not None:
        if frame.f_code.co_name == "compile_wrapper":
            if frame.f_code is found:
                return True
            found = frame.f_code
        frame = frame.f_back
    return found is None


def _disguised(run: Any, compiled: Any) -> Run:
    """Looks like the function of torch that calls it: to a profiler, and to anything that prints the stack."""
    from torch._dynamo import eval_frame

    context = vars(getattr(eval_frame, "DisableContext", object)).get("__call__")
    parts = getattr(getattr(context, "__code__", None), "co_consts", ())
    caller = next((part for part in parts if isinstance(part, CodeType) and part.co_name == "_fn"), None)
    first_line = caller.co_firstlineno if caller else 1
    run.__code__ = run.__code__.replace(co_filename=eval_frame.__file__, co_firstlineno=first_line, co_name="_fn")
    for name in ("__name__", "__qualname__", "_boxed_call"):
        if hasattr(compiled, name):
            setattr(run, name, getattr(compiled, name))
    return run  # type: ignore[no-any-return]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: [*map(RunHook.forked, list(_counting))])
