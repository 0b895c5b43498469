"""Adds up the spans of torch's structured trace: when the compiler began something, and when it ended it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from breakscan.record.records.compile_time import SpansTimed
from breakscan.record.traced import TracedSpan

LEAST_SECONDS = 5e-5
LEAST_PART = 0.002
"""Of the whole tree: what took less is part of what is around it."""


@dataclass(slots=True)
class _Span:
    """What was done under one name in one place.  ``began`` is in microseconds; ``kernel`` is what it is about now."""

    name: str
    began: float = 0.0
    kernel: str | None = None
    seconds: float = 0.0
    count: int = 0
    inner: dict[str, _Span] = field(default_factory=dict)

    def child(self, name: str) -> _Span:
        return self.inner.setdefault(name, _Span(name))

    def add(self, seconds: float) -> None:
        self.seconds += seconds
        self.count += 1
        if self.kernel is not None:
            self.child(self.kernel).add(seconds)


class SpanTrees:
    """The spans that have not ended, of each thread and compilation."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], list[_Span]] = {}

    def take(self, said: TracedSpan) -> Iterator[SpansTimed]:
        """The tree that ends here, if one does."""
        key = (threading.get_ident(), said.compile_id)
        stack = self._open.setdefault(key, [])
        if said.begins:
            span = stack[-1].child(said.name) if stack else _Span(said.name)
            span.began, span.kernel = said.at, said.kernel
            stack.append(span)
            return
        if all(span.name != said.name for span in stack):
            return
        while stack:
            span = stack.pop()
            span.add(max(0.0, said.at - span.began) / 1e6)
            if span.name == said.name:
                break
        if not stack:
            del self._open[key]
            yield _record(said.compile_id, span)


def _record(compile_id: str, root: _Span) -> SpansTimed:
    least = max(LEAST_SECONDS, LEAST_PART * root.seconds)
    kept = list(_in_order(root, 0, least))
    return SpansTimed(
        compile_id=compile_id,
        names=tuple(span.name for _, span in kept),
        depths=tuple(depth for depth, _ in kept),
        seconds=tuple(span.seconds for _, span in kept),
        counts=tuple(span.count for _, span in kept),
    )


def _in_order(span: _Span, depth: int, least: float) -> Iterator[tuple[int, _Span]]:
    yield depth, span
    for inner in span.inner.values():
        if inner.seconds >= least:
            yield from _in_order(inner, depth + 1, least)
