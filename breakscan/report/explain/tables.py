"""Tables for a terminal: what ``--show`` lists of what was compiled, where compile time goes, how ranks differ."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from breakscan.explanation.breaks import FunctionPart
from breakscan.explanation.compilations import CompileTime, compile_time, parts_in_words
from breakscan.explanation.explanation import Explanation, RankReport
from breakscan.model.words import counted, duration, place, seconds_in_words
from breakscan.report.console import INDENT, heading

Row = tuple[str, ...]


def titled_table(title: str, columns: Sequence[str], rows: Sequence[Row]) -> RenderableType | None:
    """None without rows.  A column that begins with ``>`` holds numbers; one that no row fills is left out."""
    if not rows:
        return None
    filled = [n for n in range(len(columns)) if any(row[n] for row in rows)]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for column in (columns[n] for n in filled):
        name = column.removeprefix(">")
        table.add_column(Text(name), justify="right" if name != column else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[n]) for n in filled))
    return Group(heading(title), table)


MOST_FUNCTIONS = 5  # of the table that a report shows without being asked


def function_table(time: CompileTime, most: int | None = None) -> RenderableType | None:
    """Each function, or the first so many."""
    rows = [
        (one.function, place(one.site), f"{one.compiles}×", seconds_in_words(one.seconds), parts_in_words(one.parts))
        for one in time.functions[:most]
    ]
    if rest := time.functions[len(rows) :]:
        rows.append((f"{len(rest)} more", "", "", seconds_in_words(sum(one.seconds for one in rest)), ""))
    return titled_table("Where compile time went", ("function", "at", ">compiled", ">in all", "spent on"), rows)


_MOST_RANKS = 8  # the limit of columns in a table; JSON reports the values of all ranks


def difference_table(report: RankReport) -> RenderableType | None:
    """The ranks side by side, where they differ."""
    ranks = sorted({rank for difference in report.differences for rank in difference.by_rank})
    shown, rest = ranks[:_MOST_RANKS], ranks[_MOST_RANKS:]
    more = f" (and {counted(len(rest), 'more rank')}: --format json has all)" if rest else ""
    rows = [(one.what, *(one.by_rank.get(rank, "") for rank in shown)) for one in report.differences]
    return titled_table(f"Where ranks differ{more}", ("what", *(f"rank {rank}" for rank in shown)), rows)


def graph_table(explanation: Explanation) -> RenderableType | None:
    columns = ("graph", "function", ">ops", ">runs", ">a run", ">compiled in", "ended by a break at")
    rows = [
        (
            one.compile_id,
            one.function or "",
            str(one.ops),
            "" if one.runs is None else str(one.runs),
            duration(one.seconds / one.runs) if one.runs and one.seconds is not None else "",
            "" if one.compile_seconds is None else duration(one.compile_seconds),
            place(one.ended_by) if one.ended_by else "",
        )
        for one in explanation.graphs
    ]
    return titled_table("Graphs", columns, rows)


def made_list(explanation: Explanation) -> RenderableType | None:
    """The Python that Dynamo made of each function, around its graph."""
    parts: list[RenderableType] = []
    for compile_ in explanation.compiles:
        if compile_.made:
            function = FunctionPart(compile_.function, compile_.rest_only).words
            head = Text(f"\n{compile_.compile_id}  {function}", "bold")
            parts.append(head.append(f"  {place(compile_.site)}", "not bold"))
            for line in compile_.made:
                text = Text(line.text, overflow="fold").append(f"  # {line.note}" if line.note else "", "dim")
                parts.append(Padding(text, (0, 0, 0, len(INDENT)), expand=False))
    return Group(heading("Python that Dynamo made of functions"), *parts) if parts else None


def stage_tables(explanation: Explanation) -> RenderableType | None:
    """The lines of each graph: traced, after AOTAutograd and decompositions, as kernels."""
    columns = ("line", "traced", "after AOTAutograd", "backward", "kernels")
    tables = []
    for graph in explanation.graphs:
        forward, backward = (Counter[str](), Counter[str]())
        for one in graph.stages:
            forward.update(one.operators)
            backward.update(one.backward)
        prims = sum(number for name, number in (forward + backward).items() if name.startswith("prims."))
        kernels = {kernel.name for made in graph.generated for kernel in made.kernels}
        title = (
            f"Stages of {graph.function or 'a function'} ({graph.compile_id}): {counted(graph.ops, 'operation')}; "
            f"after AOTAutograd and decompositions {counted(forward.total(), 'operator')}, {backward.total()} in the "
            f"backward, of which {prims} of PrimTorch; {counted(len(kernels), 'kernel')}"
        )
        rows = [
            (
                place(one.line) if one.line else "no line",
                *(_counts(part) for part in (one.operations, one.operators, one.backward)),
                ", ".join(one.kernels),
            )
            for one in graph.stages
        ]
        tables.append(titled_table(title, columns, rows))
    shown = [table for table in tables if table is not None]
    return Group(*shown) if shown else None


def _counts(names: Mapping[str, int]) -> str:
    """``aten.addmm, aten.mul 2×``."""
    return ", ".join(name if number == 1 else f"{name} {number}×" for name, number in names.items())


def guard_table(explanation: Explanation) -> RenderableType | None:
    """The guards of each compiled function, with the lines that ask for them."""
    rows = [
        (
            one.compile_id,
            f"{'the rest of ' if one.rest_only else ''}{one.function}",
            place(guard.site) if guard.site else "",
            guard.text,
        )
        for one in explanation.compiles
        for guard in one.guards
        if guard.text
    ]
    return titled_table("Guards", ("compile", "function", "line", "guard"), rows)


_Makers = tuple[Callable[[Explanation], RenderableType | None], ...]
FINDINGS = "findings"  # the word that asks for all findings, where a report shows the first of each section
LISTINGS: dict[str, tuple[Callable[[Explanation], bool], _Makers]] = {
    "graphs": (lambda e: bool(e.graphs), (graph_table,)),
    "stages": (
        lambda e: any(graph.stages for graph in e.graphs) or any(compile_.made for compile_ in e.compiles),
        (made_list, stage_tables),
    ),
    "guards": (lambda e: any(compile_.guards for compile_ in e.compiles), (guard_table,)),
    "compiles": (lambda e: bool(e.compiles), (lambda e: function_table(compile_time(e.compiles)),)),
}
"""By the word of ``--show`` that asks for them: if a run has any, and the tables to print then."""
