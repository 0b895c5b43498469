"""Reports of ``bench``: for terminals, JSON and Markdown.  ``schemas/bench.schema.json`` describes the JSON."""

from dataclasses import asdict, replace
from typing import Any, TextIO

from breakscan.explanation.compilations import STAGES
from breakscan.model.words import counted, duration, megabytes, sentence
from breakscan.prove.bench import OWN, Bench, BenchRow, MeasurementStatus
from breakscan.prove.faster import LEAST, PROCESSES
from breakscan.prove.protocol import Stage
from breakscan.report import measurements as measured
from breakscan.report.measured_page import MeasuredPage, PageRow
from breakscan.report.printable import picked, printable, visible, write_json_report

ENTERING = 'backend="eager"'  # the way that compiles to what eager does: what it takes longer is entering compiled code
_WORTH_SAYING = 0.1  # the part of a step, or of the time spent compiling, below which nothing is said of it


def count_words(count: int) -> str:
    """``2,300 steps``: two digits, as a further run of the same program counts up to a quarter more or less."""
    rounded = round(count, 2 - len(str(count)))
    return f"{rounded:,} {'step' if rounded == 1 else 'steps'}"


TITLES = ("way", "breaks", "kernels", "memory", "compile", "step", "× eager", "pays after", "")


def table(bench: Bench) -> list[PageRow]:
    """The rows, eager first.  Memory is that of a GPU: that of a process is mostly torch's own."""
    if bench.eager is None:
        return []
    noisy = bench.same is not None and bench.same.disturbed

    def memory(count: int | None) -> str:
        return "" if count is None or bench.environment["device"] == "cpu" else megabytes(count)

    def seconds(value: float | None) -> str:
        return "" if value is None else duration(value)

    step = "" if noisy else duration(bench.eager.step_seconds)
    eager = PageRow("eager", ("", "", memory(bench.eager.memory_bytes), "", step, "", ""), is_code=False)
    rows = [
        PageRow(
            row.label,
            (
                "" if row.breaks is None else str(row.breaks),
                str(sum(row.kernels.values())) if row.kernels else "",
                memory(row.memory_bytes),
                seconds(_compiling(row)),
                "" if row.ratio is None or row.ratio.disturbed else measured.steps(row.eager_seconds, row.step_seconds),
                "" if row.ratio is None else measured.ratio_words(row.ratio),
                "" if row.pays_after_calls is None else count_words(row.pays_after_calls),
            ),
            outcome_words(row),
            STYLES.get(row.status, ""),
            row.label == bench.best,
        )
        for row in bench.rows
    ]
    return [eager, *rows]


def outcome_words(row: BenchRow) -> str:
    """The note next to the figures of a way: ``same as mode="default"``, ``failed in Inductor: …``."""
    if row.same_as is not None:
        return f"same as {row.same_as}"
    if row.problem is None:
        return ""
    where = "at run time" if row.stage in (None, Stage.RUN_TIME) else f"in {row.stage.value}"
    how = {
        MeasurementStatus.SKIPPED: "not run",
        MeasurementStatus.FAILED: f"failed {where}",
        MeasurementStatus.DIFFERS: "differs from eager",
    }
    return f"{how.get(row.status, 'unsteady')}: {measured.observation_words(row.problem)}"


def headline(bench: Bench) -> str:
    row = bench.row(bench.best)
    if bench.eager is None:
        said = "Nothing was measured"
    elif row is not None and row.ratio is not None:
        said = f"Fastest: {row.label}, {measured.times_words(row.ratio)} eager {measured.interval(row.ratio)}"
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
    return [*said, *_left(row or bench.row(OWN))]


def basis_words(bench: Bench) -> list[str]:
    """On what the figures rest."""
    calls = measured.captured_words(bench)
    said = []
    if calls:
        device = bench.environment["device"]
        said.append(
            f"Measured: {calls} on {device}, torch {bench.environment['torch']}; every process has the same "
            "weights, inputs and random numbers, and compiling is timed as in a first run, from empty caches and with "
            f"the import of the compiler."
        )
    if bench.same is not None:
        apart = f"Two eager processes differ by {measured.ratio_words(bench.same)}"
        said.append(f"{apart}: what lies within that, or below {LEAST}, counts as no faster.")
    said += measured.step_words(bench.step)
    if repeated := [row.label for row in bench.rows if row.processes == PROCESSES]:
        rest = "; any other interval is of one process" if any(row.processes == 1 for row in bench.rows) else ""
        each = "the interval of each holds how these differ"
        said.append(f"{PROCESSES} processes were run of {' and '.join(repeated)}, and {each}{rest}.")
    if any(row.ratio is not None and row.ratio.is_noisy for row in bench.rows):
        said.append("Too noisy: other programs had the cores that the steps needed, or the times were far apart.")
    return said


def _compiling(row: BenchRow) -> float | None:
    """The seconds of compiling in a first run; those recorded, if it was not timed."""
    recorded = row.compile_seconds.get("total")
    return row.startup_seconds + recorded if row.ratio is None and recorded is not None else row.spent_on_compiling


def _choice(bench: Bench, row: BenchRow) -> list[str]:
    rows = {one.ratio.median: one for one in map(bench.row, bench.as_fast) if one and one.ratio}
    fastest = rows[max(rows)] if rows else row
    if len(bench.as_fast) < 2:
        return []
    others = ", ".join(label for label in bench.as_fast if label != row.label)
    is_chosen = fastest.label != row.label and None not in (row.compiling_seconds, fastest.compiling_seconds)
    why = "is what the program does already" if row.label == OWN else "takes least time to compile"
    return [f"As fast within noise: {others}{f'; of these, {row.label} {why}' if is_chosen else ''}."]


def _cost(row: BenchRow) -> str:
    """``Compiling takes 17.1 s (Inductor 13.2 s, loading the compiler 3.9 s)``, and when it pays."""
    total = _compiling(row) or 0.0
    seconds = [(row.compile_seconds[key], name) for key, name in STAGES.items() if key in row.compile_seconds]
    seconds = sorted([*seconds, (row.startup_seconds, "loading the compiler")], reverse=True)
    stages = ", ".join(f"{name} {duration(spent)}" for spent, name in seconds if spent > _WORTH_SAYING * total)
    said = f"Compiling takes {duration(total)}{f' ({stages})' if stages else ''}"
    if row.pays_after_calls is not None:
        said += f" and pays after {count_words(row.pays_after_calls)}"
    return sentence(said)


def _why_not(bench: Bench) -> list[str]:
    """Reasons that the figures show for nothing being faster."""
    done = [row for row in bench.rows if row.status is MeasurementStatus.MEASURED]
    timed = [row for row in done if row.ratio is not None and not row.ratio.disturbed]
    if not timed or bench.eager is None:
        return []
    nearest = max(timed, key=lambda row: row.ratio.median if row.ratio else 0.0)
    assert nearest.ratio is not None
    ratio = f"{measured.number(nearest.ratio.median)}× eager {measured.interval(nearest.ratio)}"
    said = [f"The nearest is {nearest.label}, {ratio}."]
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


def _left(row: BenchRow | None) -> list[str]:
    if row is None or not row.breaks:
        return []
    breaks = counted(row.breaks, "graph break")
    what = (
        f"{breaks} {'is' if row.breaks == 1 else 'are'} left in it" if row.label != OWN else f"The program has {breaks}"
    )
    return [f"{what}: 'breakscan explain' shows where and why, 'breakscan fix' rewrites what it can."]


STYLES = {
    MeasurementStatus.FAILED: "bold red",
    MeasurementStatus.DIFFERS: "bold red",
    MeasurementStatus.UNSTEADY: "yellow",
    MeasurementStatus.SKIPPED: "dim",
}
_MAY_GO = ("kernels", "pays after", "breaks", "memory")


def bench_page(bench: Bench) -> MeasuredPage:
    code = list(map(visible, (bench.write or "").splitlines()))
    bench = printable(bench)
    already = "Your program compiles so already." if bench.best is not None else ""
    notes = [("Note: ", sentence(measured.observation_words(note))) for note in bench.notes]
    return MeasuredPage(
        "bench",
        headline(bench),
        TITLES,
        table(bench),
        paragraphs=[*(("", words) for words in verdict(bench)), *notes],
        basis=[("", words) for words in basis_words(bench)],
        ending="Write:" if code else already,
        code=code,
        droppable=_MAY_GO,
    )


SCHEMA = 1


def write_bench_json(bench: Bench, stream: TextIO) -> None:
    fields = {
        **measured.run_fields(bench),
        **picked(bench, "eager best as_fast write"),
        "ways": list(map(_variant, bench.rows)),
    }
    write_json_report(SCHEMA, fields, stream)


def _variant(row: BenchRow) -> dict[str, Any]:
    fields = asdict(replace(row, problem=None))
    del fields["variant"], fields["status"], fields["busy"], fields["stage"]
    if row.problem is not None and row.stage is not None:
        fields["problem"] = {"stage": row.stage.value, "error": measured.observation_words(row.problem)}
    return {"way": row.label, "options": row.variant.options or {}, "standing": row.status, **fields}
