"""Where compile time goes, as tables for a terminal: by function, by traced line, by kernel."""

from __future__ import annotations

from rich.console import RenderableType

from breakscan.explain.compile_time import CompileTime
from breakscan.model.words import duration, place, seconds_in_words
from breakscan.report.explain.compile_time_words import parts_in_words
from breakscan.report.explain.titled_table import titled_table

MOST_FUNCTIONS = 5
"""Of the table that a report shows without being asked."""
MOST_LINES = 50
"""Of a table that was asked for: JSON and HTML have all."""


def function_table(time: CompileTime, most: int | None = None) -> RenderableType | None:
    """Each function, or the first so many, with what its compilations spent their time on."""
    shown = time.functions[:most]
    rows = [
        (
            function.function,
            place(function.site),
            f"{function.compiles}\u00d7",
            seconds_in_words(function.seconds),
            parts_in_words(function.parts),
        )
        for function in shown
    ]
    if rest := len(time.functions) - len(shown):
        seconds = sum(function.seconds for function in time.functions[len(shown) :])
        rows.append((f"{rest} more", "", "", seconds_in_words(seconds), ""))
    return titled_table("Where compile time went", ("function", "at", ">compiled", ">in all", "spent on"), rows)


def line_table(time: CompileTime) -> RenderableType | None:
    """The lines that took longest to trace."""
    rows = [(place(line.site), line.function, duration(line.seconds)) for line in time.lines[:MOST_LINES]]
    return titled_table("Lines, by what tracing them took", ("line", "function", ">took"), rows)


def kernel_time_table(time: CompileTime) -> RenderableType | None:
    """The Triton kernels that took longest to compile and to autotune."""
    rows = [
        (
            kernel.name,
            duration(kernel.seconds) if kernel.seconds else "",
            duration(kernel.autotuning_seconds) if kernel.autotuning_seconds else "",
            ", ".join(map(place, kernel.lines)),
        )
        for kernel in time.kernels[:MOST_LINES]
    ]
    columns = ("kernel", ">compiled in", ">autotuned in", "lines")
    return titled_table("Kernels, by what compiling them took", columns, rows)
