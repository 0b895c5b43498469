"""The exports that torch's trace tells of: from where, and where they ended.

The trace has no record of an export.  It has the tensors that one is given, the graph as far as it was traced where it
failed, and with ``strict=True`` what Dynamo did, each with the stack.  Torch 2.15 leaves out the stack of the first
two, and ``draft_export`` that of all: nothing tells of these exports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from breakscan.record.parsers.tracebacks import frames_of
from breakscan.record.records.exports import ExportEnded
from breakscan.record.records.source import StackFrame

_EXPORTS = re.compile(r".*[/\\]torch[/\\]export[/\\]__init__\.py")
_SUBJECT = re.compile(r"\bexport\(\s*(?P<subject>[\w.]+(?:\(\w*\))?)\s*[,)]")
_TRACED_LINE = re.compile(r"^ +# .*?\bFile: (?P<path>.+?):(?P<line>\d+) in (?P<name>[^,]+), code: ", re.M)
_OF_DYNAMO = "_strict_export"
_PARTIAL_GRAPH = "make_fx_fail_partial"


@dataclass(frozen=True, slots=True)
class _Begun:
    """An export that has not ended yet; ``describer`` tells it from another one of the same line, and is None where
    Dynamo traced it."""

    describer: int | None
    subject: str
    stack: tuple[StackFrame, ...]
    strict: bool
    at: float


class ExportsTraced:
    """Makes records of exports from those of a process, in order."""

    def __init__(self) -> None:
        self._begun: _Begun | None = None

    def take(
        self, metadata: Mapping[str, Any], payload: str | None, at: float, file_name: Callable[[int | str], str]
    ) -> Iterator[ExportEnded]:
        """What a record ends: the export before, or the one that it is about."""
        tensor, metrics = metadata.get("describe_tensor"), metadata.get("compilation_metrics")
        is_failure = (metadata.get("artifact") or {}).get("name") == _PARTIAL_GRAPH
        if not (tensor or metrics or is_failure) or not metadata.get("stack"):
            return
        begun = _begun(metadata["stack"], at, file_name)
        if begun is None:
            return
        if metrics is not None:
            yield from self._compiled(begun, metrics)
        elif tensor is not None:
            begun = replace(begun, describer=tensor.get("describer_id"))
            if not self._goes_on(begun):
                yield from self.rest()
                self._begun = begun
        else:
            known, self._begun = self._begun, None
            yield _ended(known if known and known.stack == begun.stack else begun, "", "", _traced_to(payload))

    def rest(self) -> Iterator[ExportEnded]:
        """The export that nothing says of that it failed."""
        if self._begun is not None:
            yield _ended(self._begun, None, "", ())
            self._begun = None

    def _compiled(self, begun: _Begun, metrics: Mapping[str, Any]) -> Iterator[ExportEnded]:
        """What Dynamo did for an export."""
        yield from self.rest()
        if (error := metrics.get("fail_type")) is None:
            self._begun = begun
            return
        text = str(metrics.get("fail_reason") or "")
        yield _ended(begun, str(error), text, tuple(frames_of(text)))

    def _goes_on(self, begun: _Begun) -> bool:
        """Whether a tensor is given to the export that has begun: after Dynamo, the export goes on without it."""
        known = self._begun
        return known is not None and known.stack == begun.stack and known.describer in (None, begun.describer)


def _begun(stack: list[dict[str, Any]], at: float, file_name: Callable[[int | str], str]) -> _Begun | None:
    """The export that a stack leads to."""
    frames = tuple(StackFrame(file_name(one["filename"]), int(one["line"]), str(one["name"])) for one in stack)
    first = next((number for number, frame in enumerate(frames) if _EXPORTS.fullmatch(frame.path)), None)
    if not first:
        return None
    subject = _SUBJECT.search(str(stack[first - 1].get("loc") or ""))
    is_strict = any(frame.name == _OF_DYNAMO for frame in frames)
    return _Begun(None, subject["subject"] if subject else "a module", frames[:first], is_strict, at)


def _traced_to(payload: str | None) -> tuple[StackFrame, ...]:
    """The line of the last operation of a graph."""
    lines = list(_TRACED_LINE.finditer(payload or ""))
    return tuple(StackFrame(found["path"], int(found["line"]), found["name"]) for found in lines[-1:])


def _ended(begun: _Begun, error: str | None, text: str, failed_at: tuple[StackFrame, ...]) -> ExportEnded:
    """The record.  How long it took is not known."""
    return ExportEnded(
        way="export",
        target=begun.subject,
        code=None,
        stack=begun.stack,
        strict=begun.strict,
        at=begun.at,
        seconds=0.0,
        ops=None,
        error=error,
        text=text,
        failed_at=failed_at,
        issues=(),
    )
