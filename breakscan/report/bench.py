"""Reports of ``bench``: for terminals, JSON and Markdown.

``schemas/bench.schema.json`` describes the JSON.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from breakscan.model.words import counted, duration, megabytes, sentence
from breakscan.prove.bench_result import (
    OWN,
    Bench,
    BenchRow,
    MeasurementStatus,
)
from breakscan.prove.faster import LEAST, PROCESSES
from breakscan.prove.protocol import Stage
from breakscan.report import markdown
from breakscan.report.console import paragraph, report_console
from breakscan.report.json_report import write_json_report
from breakscan.report.measurements import (
    captured_words,
    interval,
    number,
    observation_words,
    ratio_words,
    step_fields,
    step_words,
    steps,
    times_words,
)
from breakscan.report.printable import visible

STAGES = {"dynamo": "Dynamo", "aot_autograd": "AOTAutograd", "inductor": "Inductor"}
ENTERING = 'backend="eager"'
"""The way that compiles to what eager does: what it takes longer is entering compiled code."""
_WORTH_SAYING = 0.1
"""The part of a step, or of the time spent compiling, below which nothing is said of it."""


def count_words(count: int) -> str:
    """``2,300 steps``: two digits, as a further run of the same program counts up to a quarter more or less."""
    rounded = round(count, 2 - len(str(count)))
    return f"{rounded:,} {'step' if rounded == 1 else 'steps'}"


TITLES = ("way", "breaks", "kernels", "memory", "compile", "step", "× eager", "pays after")


def table_lines(bench: Bench) -> list[tuple[tuple[str, ...], BenchRow | None]]:
    """The cells of the table, each line with its row: eager, which has none, comes first.  What was not measured is
    empty.  Memory is that of a GPU: that of a process is mostly torch's own."""
    assert bench.eager is not None
    noisy = bench.same is not None and bench.same.disturbed

    def memory(count: int | None) -> str:
        return "" if count is None or bench.environment["device"] == "cpu" else megabytes(count)

    def seconds(value: float | None) -> str:
        return "" if value is None else duration(value)

    step = "" if noisy else duration(bench.eager.step_seconds)
    eager = ("eager", "", "", memory(bench.eager.memory_bytes), "", step, "", "")
    rows = [
        (
            visible(row.label),
            "" if row.breaks is None else str(row.breaks),
            str(sum(row.kernels.values())) if row.kernels else "",
            memory(row.memory_bytes),
            seconds(_compiling(row)),
            "" if row.ratio is None or row.ratio.disturbed else steps(row.eager_seconds, row.step_seconds),
            "" if row.ratio is None else ratio_words(row.ratio),
            "" if row.pays_after_calls is None else count_words(row.pays_after_calls),
        )
        for row in bench.rows
    ]
    return [(eager, None), *zip(rows, bench.rows, strict=True)]


def outcome_words(row: BenchRow) -> str:
    """The note next to the figures of a way: ``same as mode="default"``, ``failed in Inductor: …``."""
    if row.same_as is not None:
        return f"same as {visible(row.same_as)}"
    if row.problem is None:
        return ""
    stage = row.problem.stage
    how = {
        MeasurementStatus.SKIPPED: "not run",
        MeasurementStatus.FAILED: "failed at run time" if stage is Stage.RUN_TIME else f"failed in {stage.value}",
        MeasurementStatus.DIFFERS: "differs from eager",
    }
    return f"{how.get(row.status, 'unsteady')}: {visible(observation_words(row.problem.observation))}"


def headline(bench: Bench) -> str:
    """The first line."""
    row = bench.row(bench.best)
    if bench.eager is None:
        said = "Nothing was measured"
    elif row is not None and row.ratio is not None:
        said = f"Fastest: {visible(row.label)}, {times_words(row.ratio)} eager {interval(row.ratio)}"
    elif any(row.ratio is not None and row.ratio.is_noisy for row in bench.rows):
        said = "The machine is too noisy to say if anything is faster than eager"
    elif any(row.ratio is not None for row in bench.rows):
        said = "Nothing is faster than eager here"
    else:
        said = "No compiled way was measured"
    return f"Interrupted. {said}" if bench.interrupted else said


def verdict(bench: Bench) -> list[str]:
    """Conclusions from the figures, as sentences."""
    row = bench.row(bench.best)
    said = [*_why_not(bench)] if row is None else [*_choice(bench, row), _cost(row)]
    return [*said, *_flags(bench), *_left(row or bench.row(OWN))]


def write_words(bench: Bench) -> list[str]:
    """Code to write for the best way, as lines."""
    if bench.best is None:
        return []
    first, *more = map(visible, (bench.write or "").splitlines() or [""])
    if not first:
        return ["Your program compiles so already."]
    return [f"Write: {first}"] if not more else ["Write:", *(f"    {line}" for line in (first, *more))]


def basis_words(bench: Bench) -> list[str]:
    """On what the figures rest."""
    calls = captured_words(bench.callables, bench.backward)
    said = []
    if calls:
        device = visible(bench.environment["device"])
        said.append(
            f"Measured: {calls} on {device}, torch {visible(bench.environment['torch'])}; every process has the same "
            "weights, inputs and random numbers, and compiling is timed as in a first run, from empty caches and with "
            f"the import of the compiler."
        )
    if bench.same is not None:
        said.append(
            f"Two eager processes differ by {ratio_words(bench.same)}: what lies within that, or below {LEAST}, counts "
            "as no faster."
        )
    said += step_words(bench.step)
    said += _repeated(bench)
    if any(row.ratio is not None and row.ratio.is_noisy for row in bench.rows):
        said.append("Too noisy: other programs had the cores that the steps needed, or the times were far apart.")
    return said


def _repeated(bench: Bench) -> list[str]:
    """The intervals that are of more than one process."""
    labels = [visible(row.label) for row in bench.rows if row.processes == PROCESSES]
    if not labels:
        return []
    *others, last = labels
    who = f"each were run of {', '.join(others)} and {last}" if others else f"were run of {last}"
    what = "their intervals hold" if others else "its interval holds"
    rest = "; any other interval is of one process" if any(row.processes == 1 for row in bench.rows) else ""
    return [f"{PROCESSES} processes {who}, and {what} how these differ{rest}."]


def stage_words(row: BenchRow) -> str:
    """``Inductor 13.2 s, loading the compiler 3.9 s``: the stages in which most of the time went."""
    seconds = [(row.compile_seconds[key], name) for key, name in STAGES.items() if key in row.compile_seconds]
    stages = sorted([*seconds, (row.startup_seconds, "loading the compiler")], reverse=True)
    total = _compiling(row) or 0.0
    return ", ".join(f"{name} {duration(spent)}" for spent, name in stages if spent > _WORTH_SAYING * total)


def _compiling(row: BenchRow) -> float | None:
    """The seconds of compiling in a first run; those recorded, if it was not timed."""
    recorded = row.compile_seconds.get("total")
    return row.startup_seconds + recorded if row.ratio is None and recorded is not None else row.spent_on_compiling


def _choice(bench: Bench, row: BenchRow) -> list[str]:
    fastest = max((one for one in map(bench.row, bench.as_fast) if one and one.ratio), key=_median, default=row)
    if len(bench.as_fast) < 2:
        return []
    others = ", ".join(visible(label) for label in bench.as_fast if label != row.label)
    if fastest.label == row.label or row.compiling_seconds is None or fastest.compiling_seconds is None:
        return [f"Within noise, as fast are {others}."]
    return [
        f"Within noise, as fast are {others}; of these, {visible(row.label)} "
        + ("is what the program does already." if row.label == OWN else "takes least time to compile.")
    ]


def _cost(row: BenchRow) -> str:
    stages = stage_words(row)
    said = f"Compiling takes {duration(_compiling(row) or 0.0)}{f' ({stages})' if stages else ''}"
    if row.pays_after_calls is not None:
        said += f" and pays after {count_words(row.pays_after_calls)}"
    return sentence(said)


def _why_not(bench: Bench) -> list[str]:
    """Reasons that the figures show for nothing being faster."""
    measured = [row for row in bench.rows if row.status is MeasurementStatus.MEASURED]
    timed = [row for row in measured if row.ratio is not None and not row.ratio.disturbed]
    if not timed or bench.eager is None:
        return []
    nearest = max(timed, key=_median)
    assert nearest.ratio is not None
    said = [
        f"The nearest is {visible(nearest.label)}, {number(nearest.ratio.median)}× eager {interval(nearest.ratio)}."
    ]
    step = bench.eager.step_seconds
    entering = next((row for row in timed if row.label == ENTERING), None)
    if entering is not None and entering.ratio is not None and entering.ratio.high < 1:
        more = step * (1 / entering.ratio.median - 1)
        if more >= _WORTH_SAYING * step:
            said.append(
                f"A step takes {duration(step)} eager; entering compiled code alone takes {duration(more)} more "
                f"({ENTERING} runs the same operations)."
            )
    if nearest.kernels:
        total = sum(nearest.kernels.values())
        library = nearest.kernels.get("extern", 0) + nearest.kernels.get("fallback", 0)
        if total == 1:
            said.append("A step is a single kernel: there is nothing to fuse.")
        elif library == total:
            said.append(f"All {total} kernels of a step are library calls, which compiling leaves as they are.")
    return said


def _flags(bench: Bench) -> list[str]:
    """The breaks of the program that settings remove."""
    own = bench.row(OWN)
    if own is None or own.breaks is None:
        return []
    return [
        f"{visible(row.label)} removes {own.breaks - row.breaks} of {counted(own.breaks, 'graph break')}."
        for row in bench.rows
        if row.variant.settings and row.variant.options is None and row.breaks is not None and row.breaks < own.breaks
    ]


def _left(row: BenchRow | None) -> list[str]:
    if row is None or not row.breaks:
        return []
    breaks = counted(row.breaks, "graph break")
    what = (
        f"{breaks} {'is' if row.breaks == 1 else 'are'} left in it" if row.label != OWN else f"The program has {breaks}"
    )
    return [f"{what}: 'breakscan explain' shows where and why, 'breakscan fix' rewrites what it can."]


def _median(row: BenchRow) -> float:
    assert row.ratio is not None
    return row.ratio.median


STYLES = {
    MeasurementStatus.FAILED: "bold red",
    MeasurementStatus.DIFFERS: "bold red",
    MeasurementStatus.UNSTEADY: "yellow",
    MeasurementStatus.SKIPPED: "dim",
}
LONGEST_LABEL = 34
"""Characters of what stands in the first column: longer labels have a line of their own."""
_MAY_GO = ("kernels", "pays after", "breaks", "memory")
"""Columns that are left out, the first first, where the lines are longer than the console is wide."""


def write_bench_terminal(bench: Bench, stream: TextIO) -> None:
    """Writes the report."""
    console = report_console(stream)
    console.print(Text(sentence(headline(bench)), "bold"))
    if bench.eager is not None:
        _print_table(bench, console)
    for words in verdict(bench):
        console.print(paragraph("", words, console.width))
    for note in bench.notes:
        console.print(paragraph("Note: ", sentence(visible(observation_words(note))), console.width))
    for words in basis_words(bench):
        console.print(paragraph("", words, console.width))
    for line in write_words(bench):
        console.print(Text(line, "bold"))


def _print_table(bench: Bench, console: Console) -> None:
    lines = table_lines(bench)
    widths = _widths([TITLES, *(line for line, _ in lines)], console.width)
    console.print(Text(_line(TITLES, widths), "dim"))
    for line, row in lines:
        style = "bold green" if row is not None and row.label == bench.best else ""
        words = outcome_words(row) if row is not None else ""
        if len(line[0]) > widths[0]:
            console.print(Text(f" {line[0]}", style))
            line = ("", *line[1:])
        if any(line[at] for at in widths if at):
            console.print(Text(_line(line, widths), style))
        elif words and 3 + widths[0] + len(words) <= console.width:
            console.print(Text(f" {line[0].ljust(widths[0])}  ").append(words, _style(row)))
            continue
        elif line[0]:
            console.print(Text(f" {line[0]}", style))
        if words:
            console.print(paragraph("    ", words, console.width, style=_style(row)))


def _style(row: BenchRow | None) -> str:
    return "" if row is None else STYLES.get(row.status, "")


def _widths(lines: list[tuple[str, ...]], room: int) -> dict[int, int]:
    """The columns that something is in, with their widths: as many as there is room for."""
    widths = {
        at: max(len(line[at]) for line in lines if at or len(line[at]) <= LONGEST_LABEL)
        for at in range(len(TITLES))
        if any(line[at] for line in lines[1:])
    }
    for name in _MAY_GO:
        if sum(widths.values()) + 2 * len(widths) - 1 > room:
            widths.pop(TITLES.index(name), None)
    return widths


def _line(line: tuple[str, ...], widths: dict[int, int]) -> str:
    """The first cell to the left, numbers to the right."""
    fields = [line[at].rjust(width) if at else line[at].ljust(width) for at, width in widths.items()]
    return f" {'  '.join(fields)}".rstrip()


SCHEMA = 1


def write_bench_json(bench: Bench, stream: TextIO) -> None:
    """Writes all ways as one JSON object, ASCII only, and a line end."""
    fields = {
        "program": list(bench.argv),
        "environment": dict(bench.environment),
        "calls": [
            {"callable": name, "captured": count, "backward": name in bench.backward}
            for name, count in bench.callables.items()
        ],
        "step": step_fields(bench.step),
        "notes": [observation_words(note) for note in bench.notes],
        "interrupted": bench.interrupted,
        "eager": asdict(bench.eager) if bench.eager else None,
        "same": asdict(bench.same) if bench.same else None,
        "ways": [_variant(row) for row in bench.rows],
        "best": bench.best,
        "as_fast": list(bench.as_fast),
        "write": bench.write,
    }
    write_json_report(SCHEMA, fields, stream)


def _variant(row: BenchRow) -> dict[str, Any]:
    fields = asdict(replace(row, problem=None))
    del fields["variant"], fields["status"], fields["busy"]
    if row.problem is not None:
        fields["problem"] = {"stage": row.problem.stage.value, "error": observation_words(row.problem.observation)}
    return {
        "way": row.label,
        "options": dict(row.variant.options or {}),
        "settings": dict(row.variant.settings),
        "standing": row.status.value,
        **fields,
    }


def write_bench_markdown(bench: Bench, stream: TextIO) -> None:
    """Writes GitHub-flavoured Markdown."""
    parts = [markdown.heading("bench", headline(bench))]
    if bench.eager is not None:
        parts.append(_markdown_table(bench))
    said = [*verdict(bench), *(sentence(visible(observation_words(note))) for note in bench.notes), *basis_words(bench)]
    parts += [markdown.paragraph(words) + "\n" for words in said]
    if write := write_words(bench):
        parts.append("".join(f"{_markdown_line(line)}  \n" for line in write))
    stream.write("\n".join(parts))


def _markdown_line(line: str) -> str:
    """A line of what to write: the code in it as code."""
    intro, separator, rest = line.partition(": ")
    if line.startswith(" "):
        return markdown.code(line.strip())
    return f"{markdown.paragraph(intro)} {markdown.code(rest)}" if separator and rest else markdown.paragraph(line)


def _markdown_table(bench: Bench) -> str:
    lines = []
    for (way, *measured), row in table_lines(bench):
        label = way if row is None else markdown.code(way)
        outcome = "" if row is None else outcome_words(row)
        bold = "**" if row is not None and row.label == bench.best else ""
        lines.append((f"{bold}{label}{bold}", *map(markdown.prose, (*measured, outcome))))
    titles = (*TITLES, "")
    # Peak memory is reported for a GPU alone.
    shown = [at for at, title in enumerate(titles) if title != "memory" or any(line[at] for line in lines)]
    head = markdown.table_head(*(titles[at] for at in shown))
    return head + "".join(markdown.row(*(line[at] for at in shown)) for line in lines)
