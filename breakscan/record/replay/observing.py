"""Compiles and calls an example, and notes what Dynamo does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from breakscan.model.findings import Kind, Mode, Place
from breakscan.record.hooks.frames import FrameOutcome, frame_outcomes
from breakscan.record.hooks.structured_trace import structured_trace
from breakscan.record.parsers.break_text import frame_skipped, parse_causes
from breakscan.record.replay.loading import check_runs, loaded
from breakscan.rulebook.document import Example, Rule


@dataclass(slots=True)
class ExampleRun:
    """What one run of an example showed."""

    graphs: int = 0
    gb: list[str] = field(default_factory=list)
    broke: bool = False
    recompiled: bool = False
    gave_up: bool = False
    error: BaseException | None = None


def observe(rule: Rule, example: Example, mode: Mode, place: Place) -> ExampleRun:
    """Compiles ``f`` with the backend that runs graphs as they are, and calls it."""
    import torch

    with loaded(rule, example, place) as (function, calls):
        check_runs(rule, example, function, calls)
    with loaded(rule, example, place) as (function, calls):
        seen = ExampleRun()
        compiled: Any = torch.compile(function, backend="eager", fullgraph=mode is Mode.FULLGRAPH)
        _watch(seen, function.__code__, lambda: [compiled(*arguments) for arguments in calls])
        return seen


def observe_as_is(rule: Rule, example: Example) -> ExampleRun:
    """Calls ``f``, which compiles by itself.

    A misuse runs with every backend replaced by the eager one.  Other examples name their backend, for it can be
    the cause of what they show.
    """
    import torch

    with loaded(rule, example, Place.PLAIN) as (function, calls):
        seen = ExampleRun()
        stance: Any = torch.compiler.set_stance
        forced = {"force_backend": "eager"} if rule.kind is Kind.MISUSE else {}
        with stance("default", **forced):
            _watch(seen, function.__code__, lambda: [function(*arguments) for arguments in calls])
        return seen


def _watch(seen: ExampleRun, code: CodeType, run: Callable[[], object]) -> None:
    def record(_: float, metadata: Any, payload: str | None) -> None:
        if "dynamo_output_graph" in metadata:
            seen.graphs += 1
        name = metadata.get("artifact", {}).get("name")
        if name == "dynamo_graph_break_reason":
            seen.broke = True
            seen.gave_up |= frame_skipped(payload or "")
            seen.gb += [cause.gb_id for cause in parse_causes(payload or "") if cause.gb_id]
        elif name == "recompile_reasons":
            seen.recompiled = True

    def outcome(frame: FrameOutcome) -> None:
        if frame.error is not None and frame.code.co_filename == code.co_filename and _same_function(frame.code, code):
            seen.gave_up = True
            seen.gb += [cause.gb_id for cause in parse_causes(str(frame.error)) if cause.gb_id]

    with structured_trace(record), frame_outcomes(outcome):
        try:
            run()
        except Exception as error:
            seen.error = error
            seen.gb += [cause.gb_id for cause in parse_causes(str(error)) if cause.gb_id]


def _same_function(frame: CodeType, code: CodeType) -> bool:
    return frame.co_name == code.co_name or frame.co_name.startswith(f"torch_dynamo_resume_in_{code.co_name}_at_")
