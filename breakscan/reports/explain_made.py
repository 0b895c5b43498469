"""What the compiler made of a program, for people: one line a topic, and tables of those that are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from breakscan.findings import Site
from breakscan.reports.explain_words import listed, seconds_in_words
from breakscan.reports.price_words import duration
from breakscan.reports.site_words import short_path
from breakscan.reports.wording import counted
from breakscan.runtime.compiled import CompiledFrame, Generated, Graph, Kernel, KernelKind
from breakscan.runtime.explanation import Explanation

_MOST_NAMED = 3
_LONG = 2.0
"""Seconds of compiling from which on it is worth a word."""
_SLOW_GUARDS = 0.02
"""The part of a call's time from which on checking guards is worth a word."""
_KINDS = {
    KernelKind.TRITON: ("generated", "generated"),
    KernelKind.CPP: ("generated", "generated"),
    KernelKind.OTHER: ("generated", "generated"),
    KernelKind.EXTERN: ("of a library", "of libraries"),
    KernelKind.FALLBACK: ("that Inductor leaves to eager operators", "that Inductor leaves to eager operators"),
}


def made_lines(explanation: Explanation) -> Iterator[tuple[str, str]]:
    """A label and a sentence for each topic that the run has something on."""
    for label, tell in _TOPICS:
        sentence = tell(explanation)
        if sentence:
            yield label, sentence


def _compile_time(explanation: Explanation) -> str | None:
    compiles = [c for c in explanation.compiles if c.seconds >= 0.005]
    if not compiles or explanation.compile_seconds < _LONG:
        return None
    phases = _longest((name, seconds) for compile_ in compiles for name, seconds in compile_.phases.items())
    functions = _longest((_part(c), c.seconds + c.backward_seconds) for c in compiles)
    parts = [counted(len(explanation.compiles), "compilation")]
    parts += [f"phases, which overlap: {phases}"] if phases else []
    parts += [f"longest: {functions}"] if functions else []
    return "; ".join(parts)


def _longest(spent: Iterable[tuple[str, float]]) -> str:
    """The names on which most time was spent, with the seconds."""
    total: dict[str, float] = {}
    for name, seconds in spent:
        total[name] = total.get(name, 0.0) + seconds
    longest = sorted(total.items(), key=lambda pair: -pair[1])[:_MOST_NAMED]
    return ", ".join(f"{name} {seconds_in_words(seconds)}" for name, seconds in longest if seconds >= 0.05)


def _guards(explanation: Explanation) -> str | None:
    """Only where checking them costs a visible part of the calls."""
    heavy = max(explanation.compiles, key=lambda c: c.guard_microseconds or 0.0, default=None)
    calls = [call.seconds / call.calls for call in explanation.calls if call.calls]
    if heavy is None or not heavy.guard_microseconds or not calls:
        return None
    spent = heavy.guard_microseconds / 1e6
    if spent < _SLOW_GUARDS * min(calls):
        return None
    count = heavy.guard_count or len(heavy.guards)
    return (
        f"{heavy.function} checks {counted(count, 'guard')} at each call, {duration(spent)} as torch measured it: "
        f"--show guards lists the lines that ask for them"
    )


def _caches(explanation: Explanation) -> str | None:
    uses = [use for compile_ in explanation.compiles for use in compile_.caches]
    parts = []
    for cache in dict.fromkeys(use.cache for use in uses):
        outcomes = Counter(use.outcome for use in uses if use.cache == cache)
        words = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
        parts.append(f"{cache} {words}")
    reasons = list(dict.fromkeys(use.reason for use in uses if use.outcome == "bypass" and use.reason))
    if reasons:
        parts.append(f"bypassed because {listed(reasons, 'reason', 2)}")
    return "; ".join(parts) or None


def _kernels(explanation: Explanation) -> str | None:
    made = [kernel for _, _, kernel in kernels_of(explanation.graphs)]
    if not made:
        return None
    counts = Counter(_KINDS[kernel.kind] for kernel in made)
    fallbacks = [_with_lines(kernel) for kernel in made if kernel.kind is KernelKind.FALLBACK]
    # What is left to eager operators comes last: their names stand behind it.
    left = _KINDS[KernelKind.FALLBACK]
    words = [f"{n} {kind[n > 1]}" for kind, n in sorted(counts.items(), key=lambda item: item[0] == left)]
    named = f" ({listed(fallbacks, 'kernel')})" if fallbacks else ""
    return f"{', '.join(words)}{named}"


def _cudagraphs(explanation: Explanation) -> str | None:
    said = []
    for skip in explanation.cudagraph_skips:
        where = f" ({place(skip.site)})" if skip.site else ""
        said.append(f"{skip.count}× not used: {skip.reason.strip().rstrip('.')}{where}")
    return "; ".join(said) or None


def _specialisations(explanation: Explanation) -> str | None:
    """A line at a time: all the sizes that it holds fixed are mended by one change.  What was compiled again over such
    a size is told with the recompiles."""
    told = {recompile.subject for recompile in explanation.recompiles}
    at_line: dict[str, list[str]] = {}
    for s in explanation.specialisations:
        if not told.isdisjoint(s.sources):
            continue
        where = f" at {place(s.site)}" if s.site else ""
        at_line.setdefault(where, []).append(f"{', '.join(s.sources) or 'a size'} became constant ({s.value})")
    said = [f"{sizes[0]}{_as_did(len(set(sizes)) - 1)}{where}" for where, sizes in at_line.items()]
    return f"{'; '.join(said[:_MOST_NAMED])}{_and_more(len(said) - _MOST_NAMED)}" if said else None


def _as_did(others: int) -> str:
    return f", and so did {counted(others, 'other size')}" if others else ""


def _and_more(lines: int) -> str:
    return f"; and at {counted(lines, 'more line')}" if lines > 0 else ""


def _ddp(explanation: Explanation) -> str | None:
    split = [graph for graph in explanation.graphs if graph.split_by_ddp]
    said = [
        f"the graph of {graph.function or 'a function'} runs as {len(graph.split_by_ddp)} ({_plus(graph.split_by_ddp)} "
        "operations), so that gradients travel while others are computed"
        for graph in split
    ]
    return "; ".join(said) or None


def _autograd(explanation: Explanation) -> str | None:
    if not explanation.autograd:
        return None
    words = f"{counted(len(explanation.autograd), 'backward pass', 'backward passes')} captured"
    reasons = list(dict.fromkeys(reason for capture in explanation.autograd for reason in capture.reasons))
    return f"{words}; again because {listed(reasons, 'reason', 2)}" if reasons else words


_TOPICS: tuple[tuple[str, Callable[[Explanation], str | None]], ...] = (
    ("Compile time", _compile_time),
    ("Caches", _caches),
    ("Kernels", _kernels),
    ("CUDA graphs", _cudagraphs),
    ("Guards", _guards),
    ("Specialised", _specialisations),
    ("DDP buckets", _ddp),
    ("Compiled autograd", _autograd),
)


# -- tables on demand -----------------------------------------------------------------------------------------


def graph_table(explanation: Explanation) -> Table | None:
    """Each graph: what it is of, how big, how often it ran and how long that took, how it ended."""
    if not explanation.graphs:
        return None
    table = _table("Graphs", "graph", "function", ">ops", ">runs", ">a run", ">compiled in", "ended by")
    for graph in explanation.graphs:
        each = graph.seconds / graph.runs if graph.runs and graph.seconds is not None else None
        table.add_row(
            graph.compile_id,
            graph.function or "",
            str(graph.ops),
            "" if graph.runs is None else str(graph.runs),
            "" if each is None else duration(each),
            "" if graph.compile_seconds is None else duration(graph.compile_seconds),
            f"a break at {place(graph.ended_by)}" if graph.ended_by else "the function's end",
        )
    return table


def kernel_table(explanation: Explanation) -> Table | None:
    """Each kernel, with its graph, its operators and lines; what a forward keeps for its backward."""
    rows = list(kernels_of(explanation.graphs))
    if not rows:
        return None
    table = _table("Kernels", "graph", "phase", "kernel", "kind", ">calls", "operators", "lines")
    for graph, generated, kernel in rows:
        table.add_row(
            graph.compile_id,
            generated.phase,
            kernel.name,
            kernel.kind.value,
            str(kernel.calls),
            ", ".join(kernel.operators),
            ", ".join(dict.fromkeys(place(line) for line in kernel.lines)),
        )
    return table


def autograd_table(explanation: Explanation) -> Table | None:
    """What each forward graph keeps in memory until its backward runs."""
    rows = [(graph, made) for graph in explanation.graphs for made in graph.generated if made.ops is not None]
    if not rows:
        return None
    table = _table("Forward and backward", "graph", "function", "phase", ">ops", ">moves", "saved for backward")
    for graph, made in rows:
        moved = "" if made.bytes_moved is None else _bytes(made.bytes_moved)
        table.add_row(
            graph.compile_id, graph.function or "", made.phase, str(made.ops), moved, ", ".join(made.saved) or ""
        )
    return table


def guard_table(explanation: Explanation) -> Table | None:
    """The guards of each compiled function by the line that asks for them."""
    table = _table("Guards", "compile", "function", ">guards", ">check", "kind", "asked for by", "guard")
    for compile_ in explanation.compiles:
        if not compile_.guards:
            continue
        latency = compile_.guard_microseconds
        head = [
            compile_.compile_id,
            _part(compile_),
            str(compile_.guard_count or len(compile_.guards)),
            "" if latency is None else duration(latency / 1e6),
        ]
        for guard in compile_.guards:
            table.add_row(*head, guard.kind, place(guard.site) if guard.site else "", guard.text)
            head = [""] * 4
    return table if table.row_count else None


def compile_table(explanation: Explanation) -> Table | None:
    """Each compilation, with its phases, caches and restarts."""
    if not explanation.compiles:
        return None
    table = _table("Compilations", "compile", "function", ">at", ">took", ">backward", "phases", "caches", "notes")
    for compile_ in explanation.compiles:
        notes = [f"failed: {compile_.failed.splitlines()[0]}"] if compile_.failed else []
        notes += [f"started over: {reason}" for reason in compile_.restarts]
        table.add_row(
            compile_.compile_id,
            _part(compile_),
            seconds_in_words(compile_.at),
            duration(compile_.seconds),
            duration(compile_.backward_seconds) if compile_.backward_seconds else "",
            ", ".join(f"{name} {duration(s)}" for name, s in sorted(compile_.phases.items(), key=lambda p: -p[1])),
            ", ".join(f"{use.cache} {use.outcome}" for use in compile_.caches),
            "; ".join(notes),
        )
    return table


TABLES: dict[str, Sequence[Callable[[Explanation], Table | None]]] = {
    "graphs": (graph_table,),
    "kernels": (kernel_table, autograd_table),
    "guards": (guard_table,),
    "compiles": (compile_table,),
}
"""By the word that asks for them."""


def kernels_of(graphs: Iterable[Graph]) -> Iterator[tuple[Graph, Generated, Kernel]]:
    """Every kernel with what it is of."""
    for graph in graphs:
        for generated in graph.generated:
            for kernel in generated.kernels:
                yield graph, generated, kernel


def place(site: Site) -> str:
    """``model.py:41``."""
    return f"{short_path(site.path)}:{site.line}"


def _table(title: str, *columns: str) -> Table:
    """A column that begins with ``>`` holds numbers."""
    table = Table(title=Text(f"\n{title}", "bold underline"), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        name = column.removeprefix(">")
        table.add_column(Text(name), justify="right" if name != column else "left", overflow="fold")
    return table


def _part(compile_: CompiledFrame) -> str:
    return f"the rest of {compile_.function}" if compile_.rest_only else compile_.function


def _with_lines(kernel: Kernel) -> str:
    name = ", ".join(kernel.operators) or kernel.name
    return f"{name} at {place(kernel.lines[0])}" if kernel.lines else name


def _plus(parts: Sequence[int]) -> str:
    return " + ".join(map(str, parts))


def _bytes(number: int) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} B"
