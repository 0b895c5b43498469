"""The forms that a report of ``bench`` takes, each loaded when it is asked for."""

from __future__ import annotations

import pkgutil
from typing import TextIO

from breakscan.bench.result import Bench

_WRITERS = {
    "terminal": "breakscan.reports.bench.terminal:write_bench_terminal",
    "json": "breakscan.reports.bench.json:write_bench_json",
    "markdown": "breakscan.reports.bench.markdown:write_bench_markdown",
}
FORMATS = tuple(_WRITERS)


def write_bench(format_: str, bench: Bench, stream: TextIO) -> None:
    """Writes a report in one of :data:`FORMATS`."""
    pkgutil.resolve_name(_WRITERS[format_])(bench, stream)
