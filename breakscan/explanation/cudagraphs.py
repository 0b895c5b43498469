"""CUDA graphs: why graphs did not run as such."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from breakscan.explanation.context import ExplainContext
from breakscan.model.findings import Origin, Site
from breakscan.recording.parsers.frames import frames_of
from breakscan.recording.records import CudaGraphSkipped, Record, StackFrame


@dataclass(frozen=True, slots=True)
class CudaGraphSkip:
    """A reason for which graphs did not run as CUDA graphs, with the line that torch blames, and a count."""

    reason: str
    site: Site | None
    compile_ids: tuple[str, ...]
    count: int


_SAID_ALREADY = re.compile(r"^(?:skipping cudagraphs? (?:due to|because) )+", re.I)
_FOUND_FROM = re.compile(r"\.?\s*Found from\s*:.*", re.S)


def cudagraph_skips(records: Iterable[Record], context: ExplainContext) -> list[CudaGraphSkip]:
    """Each reason at each line once, in the order in which they came."""
    groups: dict[tuple[str, Site | None], list[CudaGraphSkipped]] = {}
    for record in records:
        if isinstance(record, CudaGraphSkipped):
            groups.setdefault((_reason(record.reason), _site(record.reason, context)), []).append(record)
    return [
        CudaGraphSkip(
            reason=reason,
            site=site,
            compile_ids=tuple(dict.fromkeys(skip.compile_id for skip in skips if skip.compile_id)),
            count=len(skips),
        )
        for (reason, site), skips in groups.items()
    ]


def _reason(text: str) -> str:
    return _SAID_ALREADY.sub("", _FOUND_FROM.sub("", text)).strip()


def _site(text: str, context: ExplainContext) -> Site | None:
    frames = frames_of(text)
    own = [frame for frame in frames if context.origin(frame.path) is not Origin.FRAMEWORK]
    where: StackFrame | None = next(reversed(own or frames), None)
    return context.sources.site(where.path, where.line) if where else None
