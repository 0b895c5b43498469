"""The functions that a run loaded compiled."""

from __future__ import annotations

from collections.abc import Iterable

from breakscan.explain.compiled import Precompiled
from breakscan.explain.context import ExplainContext
from breakscan.model.findings import Origin
from breakscan.record.parsers.frames import is_resumed
from breakscan.record.records import PackageInstalled, Record


def precompiled(records: Iterable[Record], context: ExplainContext) -> list[Precompiled]:
    """Each function once, in order, with the line that asked for it."""
    found: dict[Precompiled, None] = {}
    for record in records:
        if isinstance(record, PackageInstalled):
            caller = next(iter(reversed(context.callers(record.stack))), None)
            for code in record.codes:
                if context.origin(code.path) is not Origin.FRAMEWORK and not is_resumed(code.name):
                    found[Precompiled(context.function_of(code), context.site_of(code), caller)] = None
    return list(found)
