"""Tables for a terminal: what ``--show`` lists of what was compiled, where compile time goes, how ranks differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from breakscan.explanation.breaks import part_words
from breakscan.explanation.compilations import CompiledFrame, GuardLine, restarts_in_words
from breakscan.explanation.compile_time import CompileTime, compile_time, parts_in_words
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.graphs import Generated, Graph, Kernel, saved_bytes_in_words, saved_memory
from breakscan.explanation.rank_report import RankReport
from breakscan.model.findings import Site
from breakscan.model.words import counted, duration, place, seconds_in_words, short_path
from breakscan.report.console import INDENT
from breakscan.report.markdown import clipped

Row = tuple[str, ...]


def table_heading(title: str) -> Text:
    return Text(f"\n{title}", "bold underline")


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
    return Group(table_heading(title), table)


MOST_FUNCTIONS = 5
"""Of the table that a report shows without being asked."""


def function_table(time: CompileTime, most: int | None = None) -> RenderableType | None:
    """Each function, or the first so many."""
    rows = [
        (one.function, place(one.site), f"{one.compiles}×", seconds_in_words(one.seconds), parts_in_words(one.parts))
        for one in time.functions[:most]
    ]
    if rest := time.functions[len(rows) :]:
        rows.append((f"{len(rest)} more", "", "", seconds_in_words(sum(one.seconds for one in rest)), ""))
    return titled_table("Where compile time went", ("function", "at", ">compiled", ">in all", "spent on"), rows)


_MOST_RANKS = 8
"""The limit of columns in a table; JSON reports the values of all ranks."""


def difference_table(report: RankReport) -> Table:
    """The ranks side by side, where they differ."""
    ranks = sorted({rank for difference in report.differences for rank in difference.by_rank})
    shown = ranks[:_MOST_RANKS]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(Text("what"), overflow="fold")
    for rank in shown:
        table.add_column(Text(f"rank {rank}"), overflow="fold")
    for difference in report.differences:
        cells = (difference.by_rank.get(rank, "") for rank in shown)
        table.add_row(difference.what, *cells)
    if len(ranks) > len(shown):
        table.caption = f"and {counted(len(ranks) - len(shown), 'more rank')}: --format json has all"
    return table


MOST_LINES = 20
"""Of a compiled function, the lines that ask for guards."""
MOST_GUARDS = 5
"""Of such a line."""
LONGEST_NOTE = 120
"""Characters of why a compilation failed: another part of the report shows all of it."""


def graph_table(explanation: Explanation) -> RenderableType | None:
    """Each graph."""
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
            head = Text(f"\n{compile_.compile_id}  {part_words(compile_)}", "bold")
            parts.append(head.append(f"  {place(compile_.site)}", "not bold"))
            for line in compile_.made:
                text = Text(line.text, overflow="fold")
                parts.append(_indented(text.append(f"  # {line.note}", "dim") if line.note else text, 1))
    return Group(table_heading("Python that Dynamo made of functions"), *parts) if parts else None


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


def kernel_table(explanation: Explanation) -> RenderableType | None:
    """Each kernel, with its graph, its operators and lines."""
    rows = [
        (
            graph.compile_id,
            generated.phase,
            kernel.name,
            kernel.kind.value,
            str(kernel.calls),
            ", ".join(kernel.operators),
            _places(kernel.lines),
        )
        for graph, generated, kernel in kernels_of(explanation.graphs)
    ]
    return titled_table("Kernels", ("graph", "phase", "kernel", "kind", ">calls", "operators", "lines"), rows)


def saved_table(explanation: Explanation) -> RenderableType | None:
    """The lines whose values are kept for the backward, by what that takes."""
    rows = [
        (place(line.line) if line.line else "no line", str(line.values), saved_bytes_in_words(line.bytes, line.unknown))
        for line in saved_memory(explanation.graphs).lines
    ]
    return titled_table("Kept for the backward, by line", ("line", ">values", ">bytes"), rows)


def guard_list(explanation: Explanation) -> RenderableType | None:
    """The guards of each compiled function by the line that asks for them, the lines with most guards first; of a
    function that was compiled again, those that the version before has not.  Guards of no line, such as
    that of the grad mode, are listed once."""
    parts: list[RenderableType] = []
    of_no_line: set[str] = set()
    before: dict[tuple[Site, bool], tuple[str, set[str]]] = {}
    is_cut = False
    for compile_ in explanation.compiles:
        guards = {guard.text: guard for guard in compile_.guards if guard.text}
        if not guards:
            continue
        which = (compile_.site, compile_.rest_only)
        id_, known = before.get(which, ("", set()))
        before[which] = (compile_.compile_id, set(guards))
        groups = _by_line(guard for text, guard in guards.items() if text not in known | of_no_line)
        of_no_line |= {text for text, guard in guards.items() if guard.site is None}
        is_cut = is_cut or len(groups) > MOST_LINES or any(len(group) > MOST_GUARDS for group in groups)
        parts.append(_guards_of(compile_, groups, id_))
    if not parts:
        return None
    if is_cut:
        parts.append(Text("\n--format html and --format json list all guards.", "dim"))
    return Group(table_heading("Guards"), *parts)


def _checking(compile_: CompiledFrame) -> str:
    return "" if compile_.guard_seconds is None else f", {duration(compile_.guard_seconds)} to check"


def _guards_of(compile_: CompiledFrame, groups: Sequence[Sequence[GuardLine]], before: str) -> RenderableType:
    checked = counted(compile_.guard_count or len(compile_.guards), "guard")
    head = Text(f"\n{compile_.compile_id}  {part_words(compile_)}", "bold")
    head.append(f"  {checked}{_checking(compile_)}", "not bold")
    if before:
        new = sum(map(len, groups))
        head.append(f"; {counted(new, 'guard') if new else 'none'} that {before} has not", "not bold")
    lines: list[RenderableType] = [head]
    for group in groups[:MOST_LINES]:
        site = group[0].site
        lines.append(_indented(place(site) if site else "asked for by no line", 1))
        lines += [_indented(guard.text, 2, "dim") for guard in group[:MOST_GUARDS]]
        if rest := len(group) - MOST_GUARDS:
            lines += [_indented(f"and {rest} more", 2, "dim")] if rest > 0 else []
    if rest := sum(map(len, groups[MOST_LINES:])):
        lines.append(_indented(f"and {rest} more at {counted(len(groups) - MOST_LINES, 'other line')}", 1))
    return Group(*lines)


def _by_line(guards: Iterable[GuardLine]) -> list[list[GuardLine]]:
    groups: dict[tuple[str, int] | None, list[GuardLine]] = {}
    for guard in guards:
        groups.setdefault((guard.site.path, guard.site.line) if guard.site else None, []).append(guard)
    return sorted(groups.values(), key=lambda group: (group[0].site is None, -len(group)))


def _indented(text: str | Text, depth: int, style: str = "") -> Padding:
    shown = Text(text, style, overflow="fold") if isinstance(text, str) else text
    return Padding(shown, (0, 0, 0, depth * len(INDENT)), expand=False)


def compile_table(explanation: Explanation) -> RenderableType | None:
    """Each compilation, with what it spent its time on, caches and restarts."""
    rows = []
    for compile_ in explanation.compiles:
        # Line ends are blanks by now, and indented lines follow the first.
        notes = [f"failed: {clipped(compile_.failed.partition('  ')[0], LONGEST_NOTE)}"] if compile_.failed else []
        notes += [f"started over: {reason}" for reason in restarts_in_words(compile_)]
        notes += dict.fromkeys(
            f"{use.cache} {use.outcome}: {use.reason.partition('  ')[0]}" for use in compile_.caches if use.reason
        )
        rows.append(
            (
                compile_.compile_id,
                part_words(compile_),
                seconds_in_words(compile_.at),
                duration(compile_.seconds),
                duration(compile_.backward_seconds) if compile_.backward_seconds else "",
                parts_in_words(compile_.parts),
                ", ".join(f"{use.cache} {use.outcome}" for use in compile_.caches),
                "; ".join(notes),
            )
        )
    columns = ("compile", "function", ">at", ">took", ">backward", "spent on", "caches", "notes")
    return titled_table("Compilations", columns, rows)


@dataclass(frozen=True, slots=True)
class Listing:
    """A word of ``--show``: ``is_there`` if a run has any of it, and the tables to print then."""

    is_there: Callable[[Explanation], bool]
    makers: Sequence[Callable[[Explanation], RenderableType | None]]


FINDINGS = "findings"
"""The word that asks for all findings, where a report shows the first of each section."""
LISTINGS: dict[str, Listing] = {
    "graphs": Listing(lambda e: bool(e.graphs), (graph_table,)),
    "stages": Listing(
        lambda e: any(graph.stages for graph in e.graphs) or any(compile_.made for compile_ in e.compiles),
        (made_list, stage_tables),
    ),
    "kernels": Listing(lambda e: any(graph.generated for graph in e.graphs), (kernel_table, saved_table)),
    "guards": Listing(lambda e: any(compile_.guards for compile_ in e.compiles), (guard_list,)),
    "compiles": Listing(lambda e: bool(e.compiles), (lambda e: function_table(compile_time(e)), compile_table)),
}
"""By the word that asks for them."""


def kernels_of(graphs: Iterable[Graph]) -> Iterator[tuple[Graph, Generated, Kernel]]:
    """Every kernel with what it is of."""
    for graph in graphs:
        for generated in graph.generated:
            for kernel in generated.kernels:
                yield graph, generated, kernel


def _places(sites: Iterable[Site]) -> str:
    """``model.py:41, 44; layers.py:7``."""
    lines: dict[str, dict[int, None]] = {}
    for site in sites:
        lines.setdefault(short_path(site.path), {})[site.line] = None
    return "; ".join(f"{path}:{', '.join(map(str, found))}" for path, found in lines.items())
