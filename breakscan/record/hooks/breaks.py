"""Graph breaks as Dynamo logs them, with the columns and the stack that its log leaves out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from breakscan.record.hooks.fullgraph import FullgraphHook
from breakscan.record.hooks.hook import Hook
from breakscan.record.hooks.object_facts import code_of, current_compile_id, stack_of
from breakscan.record.hooks.values import ValueHook
from breakscan.record.records import BreakSeen, Code, StackFrame


class BreakHook(Hook):
    """Records each break that is logged."""

    name = "breaks"
    without = "breaks are read from its structured trace: without columns, and without those that the trace leaves out"
    wraps = ("torch._dynamo.symbolic_convert:InstructionTranslatorBase.log_graph_break",)

    def before(self, translator: Any, code_options: Any, reason: str, exc: Any, *_: Any, **__: Any) -> None:
        if getattr(exc, "logged", False):
            return
        record = replace(_break_record(translator, reason, exc), set_aside=self.hooks.of(FullgraphHook).would_raise())
        self.hooks.merged.saw_break(record)
        self.hooks.write(record)
        if record.stack:
            self.hooks.of(ValueHook).record_break(translator, record.stack[-1])


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
    return replace(record, text=reason, stack=stack)


def raised_break_record(frame: Code, error: Exception, *, raised: bool) -> BreakSeen:
    """A break that was never logged, as under ``fullgraph=True``, from its exception alone."""
    return BreakSeen(
        compile_id=current_compile_id() or _compile_id_of(error),
        frame=frame,
        text=str(error),
        stack=stack_of(getattr(error, "real_stack", None)),
        skipped=bool(getattr(error, "skip_frame", False)),
        raised=raised,
    )


def _compile_id_of(error: Exception) -> str | None:
    compile_id = getattr(error, "compile_id", None)
    return None if compile_id is None else str(compile_id)
