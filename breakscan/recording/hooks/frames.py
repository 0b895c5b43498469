"""Graph breaks as Dynamo logs them, with the columns and the stack that its log leaves out, and what became of each
frame that it was asked to compile and did not."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import accumulate, repeat, takewhile
from types import CodeType
from typing import Any

from breakscan.recording.hooks.graphs import GraphHook, root_cause
from breakscan.recording.hooks.hook import Hook, code_of, current_compile_id, leave_no_trace, stack_of
from breakscan.recording.hooks.runs import RunHook, frames_to
from breakscan.recording.hooks.targets import FullgraphHook, SkipHook
from breakscan.recording.parsers.bytecode import goes_on_at, python_lines
from breakscan.recording.parsers.frames import exceeds_limit, is_dynamos_file
from breakscan.recording.parsers.guards import watched_source
from breakscan.recording.records import BreakSeen, Code, FrameEnded, PythonMade, StackFrame


class BreakHook(Hook):
    name = "breaks"
    without = "breaks are read from its structured trace: without columns, and without those that the trace leaves out"
    wraps = ("torch._dynamo.symbolic_convert:InstructionTranslatorBase.log_graph_break",)
    reads = ("torch._dynamo.config:nested_graph_breaks",)

    def before(self, translator: Any, code_options: Any, reason: str, exc: Any, *_: Any, **__: Any) -> None:
        if getattr(exc, "logged", False):
            return
        from torch._dynamo import config

        record = replace(
            _break_record(translator, reason, exc),
            set_aside=self.hooks.of(FullgraphHook).would_raise(),
            nested=bool(getattr(config, "nested_graph_breaks", False)),
        )
        if failed_at := self.hooks.of(GraphHook).failed_at(exc):
            record = replace(record, stack=failed_at)
        self.hooks.merged.saw_break(record)
        self.hooks.write(record)


def _break_record(translator: Any, reason: str, error: Exception) -> BreakSeen:
    root = translator.output.root_tx or translator
    record = raised_break_record(code_of(root.f_code), error, raised=False)
    stack = record.stack
    positions = getattr(translator.current_instruction, "positions", None)
    if len(stack) == 1 and stack[0].column is None and positions and positions.lineno == stack[0].line:
        # torch 2.11 gives columns for the frame that is compiled only, not for what it inlines.
        stack = (replace(stack[0], column=positions.col_offset, end_column=positions.end_col_offset),)
    if not stack:
        stack = (
            StackFrame(root.f_code.co_filename, translator.lineno or root.f_code.co_firstlineno, root.f_code.co_name),
        )
    # The reason says more than the exception: that the frame is skipped, and what was being done.
    causes = takewhile(bool, accumulate(repeat(error), lambda one, _: one.__cause__ or one.__context__))
    if operator := next((one._hop_name for one in causes if hasattr(one, "_hop_name")), None):
        # As torch's log has it.
        reason = reason.replace("\n  Explanation:", f"\n  Higher Order Operator: {operator}\n  Explanation:", 1)
    return replace(record, text=reason, stack=stack)


def raised_break_record(frame: Code, error: Exception, *, raised: bool) -> BreakSeen:
    """A break that was never logged, as under ``fullgraph=True``, from its exception alone."""
    return BreakSeen(
        compile_id=current_compile_id() or (str(getattr(error, "compile_id", None) or "") or None),
        frame=frame,
        text=str(error),
        stack=stack_of(getattr(error, "real_stack", None)),
        skipped=bool(getattr(error, "skip_frame", False)),
        raised=raised,
    )


class BytecodeHook(Hook):
    name = "bytecode"
    without = "the Python that runs in place of compiled functions is missing"
    wraps = ("torch._dynamo.convert_frame:compile_frame",)

    def after(self, made: Any, code: CodeType, names: Mapping[str, Any], *_: Any, **__: Any) -> None:
        self.hooks.write(PythonMade(current_compile_id(), goes_on_at(code), python_lines(made.bytecode, names)))


class FrameHook(Hook):
    """Records frames that end uncompiled: the only place that sees generators, the recompile limit and a failing
    backend, which leave no line in logs or trace."""

    name = "frames"
    without = "functions that run eager are read from its structured trace: those that it skips silently are missing"
    wraps = ("torch._dynamo.convert_frame:ConvertFrameAssert.__call__",)
    needs = ("torch._dynamo.exc:Unsupported", "torch._dynamo.config:suppress_errors")
    reads = ("torch._dynamo.convert_frame:_one_graph", "torch._dynamo.convert_frame:_box")

    def wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        return watched_conversion(original, self.guarded(self._record))

    def _record(self, code: CodeType, error: Exception | str, converter: Any) -> None:
        self.hooks.of(RunHook).compiled()
        if self.name in self.hooks.failed:
            # From the first failure on, the trace reports frames.
            return
        if isinstance(error, str):
            self.hooks.of(SkipHook).record(code, error)
            return
        frame, raised = code_of(code), _reaches_the_user(error, converter)
        limit = exceeds_limit(str(error)) or exceeds_limit(str(error.__cause__))
        if raised and _is_break(error) and not limit:
            self.hooks.write(raised_break_record(frame, error, raised=True))
        self.hooks.write(
            FrameEnded(
                frame=frame,
                error=type(error).__name__,
                text=str(error),
                stack=self.hooks.of(GraphHook).failed_at(error) or stack_of(getattr(error, "real_stack", None)),
                raised=raised,
                limit=limit,
                set_aside=self.hooks.of(FullgraphHook).would_raise(),
                compilers=_is_compilers(error),
            )
        )
        if limit and (forbidden := self.hooks.merged.past_limit(frame)):
            self.hooks.write(forbidden)
            newest = forbidden.guards[0].text if forbidden.guards else ""
            self.hooks.of(RunHook).watched[code] = watched_source(newest) or ""


def _reaches_the_user(error: Exception, converter: Any) -> bool:
    """Return whether an exception reaches the user, as ``ConvertFrame.__call__`` and ``fullgraph=True`` decide it."""
    from torch._dynamo import config

    box = getattr(converter, "_box", None)
    if getattr(converter, "_one_graph", False) or getattr(box, "error_on_graph_break", False):
        return True
    return not (_is_break(error) or config.suppress_errors)


def watched_conversion(
    original: Callable[..., Any], sink: Callable[[CodeType, Exception | str, Any], object]
) -> Callable[..., Any]:
    """The function that converts frames; ``sink`` gets the code of those that end uncompiled, with the exception or the
    reason of a silent skip, and what converts them."""

    def call(self: Any, frame: Any, *args: Any, skip: int = 0, **kwargs: Any) -> Any:
        try:
            # There is now one more Python frame between Dynamo and the user's.
            result = original(self, frame, *args, skip=skip + 1, **kwargs)
        except Exception as error:
            sink(frame.f_code, error, self)
            leave_no_trace(error)
            raise
        if getattr(result, "guarded_code", None) is None:
            sink(frame.f_code, getattr(result, "skip_reason", None) or "", self)
        return result

    return call


def _is_compilers(error: Exception) -> bool:
    """Return whether the exception began as one of the compiler's own, such as an assertion of Dynamo's about itself.
    One that says what an operation raised, when Dynamo ran it without data, can be either."""
    cause = root_cause(error)
    if isinstance(cause, AssertionError):
        return is_dynamos_file([*frames_to(cause)][-1].f_code.co_filename)
    kind = type(cause)
    is_compilers = kind.__module__.startswith(("torch._", "torch.fx")) and not kind.__module__.startswith("torch._C")
    return is_compilers and kind.__name__ != "TorchRuntimeError"


def _is_break(error: Exception) -> bool:
    """Return whether the exception is a graph break: what Dynamo cannot trace, rather than what fails."""
    from torch._dynamo.exc import Unsupported

    return isinstance(error, Unsupported)
