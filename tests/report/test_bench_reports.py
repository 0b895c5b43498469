"""The reports of ``bench``: what follows in words, and nothing of the program's that steers what shows them."""

import json
import os
from dataclasses import replace
from typing import Any

import pytest
from report_results import text_of

from breakscan.prove.bench import OWN, Bench, BenchRow, Eager, MeasurementStatus
from breakscan.prove.faster import Ratio
from breakscan.prove.observation import Observation, ObservationKind
from breakscan.prove.protocol import Stage
from breakscan.prove.worker import Candidate
from breakscan.report.bench import bench_page, headline, verdict
from breakscan.report.formats import BENCH
from tests.conftest import Valid

HOSTILE = "\x1b[31m<script>alert(1)</script>\u202e::error::"
DEFAULT = 'mode="default"'
REDUCE = 'mode="reduce-overhead"'


def row(label: str, ratio: Ratio | None, cold: float = 14.0, **more: object) -> BenchRow:
    """Of a program whose eager step takes 10 ms."""
    step = None if ratio is None else 10e-3 / ratio.median
    figures = {
        "breaks": 0,
        "recompiles": 0,
        "graphs": 1,
        "eager_frames": 0,
        "kernels": {"triton": 3, "extern": 1},
        "compile_seconds": {"total": cold, "dynamo": 1.0, "aot_autograd": 1.0, "inductor": cold - 2.0},
        "first_call_seconds": cold,
        "compiling_seconds": cold,
        "step_seconds": step,
        "ratio": ratio,
        "processes": 1,
        "memory_bytes": 10_000_000,
    }
    told = {**(figures if ratio else {}), **more}
    return replace(BenchRow(Candidate(label, {}), MeasurementStatus.MEASURED), **told)  # type: ignore[arg-type]


OWN_ROW = row(
    OWN, Ratio(2.0, 1.95, 2.05), breaks=2, graphs=3, pays_after_calls=2797, processes=4, variant=Candidate(OWN)
)
FASTEST = row(REDUCE, Ratio(3.1, 3.0, 3.2), pays_after_calls=2064)
DYNAMIC = row("dynamic=True", Ratio(2.5, 2.4, 2.6))


def ended(
    label: str, status: MeasurementStatus, stage: Stage, said: str, ratio: Ratio | None = None, **more: Any
) -> BenchRow:
    """One whose figures do not count."""
    return row(label, ratio, status=status, stage=stage, problem=Observation(ObservationKind.ERROR, said), **more)


SAME = ended(DEFAULT, MeasurementStatus.SKIPPED, Stage.NOT_RUN, "it is the same", same_as=OWN)
NO_GPU = ended('backend="cudagraphs"', MeasurementStatus.SKIPPED, Stage.NOT_RUN, "there is no GPU")
FAILED = ended('backend="tvm"', MeasurementStatus.FAILED, Stage.INDUCTOR, HOSTILE)
DIFFERS = ended(HOSTILE, MeasurementStatus.DIFFERS, Stage.RESULTS, "output differs", ratio=Ratio(4.0, 3.9, 4.1))
UNSTEADY = ended("dynamic=False", MeasurementStatus.UNSTEADY, Stage.RECOMPILING, "L['n'] changes")


def bench(*rows: BenchRow, best: str | None = None, write: str | None = None) -> Bench:
    return Bench(
        ("train.py", "--steps", "3"),
        {"torch": "2.13.0", "device": "1 × NVIDIA H200"},
        {"Net": 3},
        frozenset({"Net"}),
        rows,
        Eager(0.02, 10e-3, 9_000_000),
        Ratio(1.0, 0.99, 1.01),
        notes=(Observation(ObservationKind.NOT_CALLED, names=("g",)),),
        best=best,
        as_fast=(best,) if best else (),
        write=write,
    )


WHOLE = bench(
    OWN_ROW,
    DYNAMIC,
    SAME,
    NO_GPU,
    FASTEST,
    FAILED,
    DIFFERS,
    UNSTEADY,
    best=REDUCE,
    write='torch.compile(model, mode="reduce-overhead")',
)


SLOWER = row(OWN, Ratio(0.9, 0.88, 0.92))

ON_CPU = replace(WHOLE, environment={**WHOLE.environment, "device": "cpu"})


def written(format_: str, told: Bench = WHOLE) -> str:
    return text_of(BENCH, format_, told)


def test_the_fastest_is_named_with_its_cost_and_the_code() -> None:
    assert headline(WHOLE) == 'Fastest: mode="reduce-overhead", 3.10× eager [3.00, 3.20]'
    assert "Compiling takes 14.0 s (Inductor 12.0 s) and pays after 2,100 steps." in verdict(WHOLE)
    assert bench_page(WHOLE).code == ['torch.compile(model, mode="reduce-overhead")']
    assert bench_page(replace(WHOLE, write=None)).ending


def test_breaks_are_counted() -> None:
    (left,) = verdict(bench(replace(OWN_ROW, ratio=None)))
    assert left.startswith("The program has 2 graph breaks: 'breakscan explain' shows where")
    assert "2 graph breaks are left in it" in verdict(bench(replace(FASTEST, breaks=2), best=REDUCE))[-1]


def test_of_equals_it_is_said_why_one_is_chosen() -> None:
    cheap = row(DEFAULT, Ratio(3.0, 2.9, 3.15), cold=3.0)
    told = replace(bench(cheap, FASTEST, best=DEFAULT), as_fast=(DEFAULT, REDUCE))
    assert verdict(told)[0] == (
        'As fast within noise: mode="reduce-overhead"; of these, mode="default" takes least time to compile.'
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([SLOWER], "The nearest is program's own, 0.90× eager [0.88, 0.92]."),
        ([replace(SLOWER, kernels={"cpp": 1})], "A step is a single kernel: there is nothing to fuse."),
        ([replace(SLOWER, kernels={"extern": 3})], "All 3 kernels of a step are library calls"),
        (
            [SLOWER, row('backend="eager"', Ratio(0.5, 0.48, 0.52))],
            "A step takes 10.0 ms eager; entering compiled code alone takes 10.0 ms more",
        ),
    ],
)
def test_why_nothing_is_faster_is_read_off_the_figures(rows: list[Any], said: str) -> None:
    told = bench(*rows)
    assert headline(told) == "Nothing is faster than eager here"
    assert not bench_page(told).ending
    assert said in " ".join(verdict(told))


def test_an_interrupt_is_said_first() -> None:
    assert headline(replace(WHOLE, interrupted=True)).startswith("Interrupted. Fastest: ")
    nothing = replace(bench(), eager=None, same=None, interrupted=True)
    assert headline(nothing) == "Interrupted. Nothing was measured"
    for format_ in BENCH.names:
        assert written(format_, nothing)


def test_the_terminal_report_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    both = row('mode="max-autotune-no-cudagraphs", capture_scalar_outputs=True', Ratio(12.25, 11.2, 13.3))
    result = bench(OWN_ROW, DYNAMIC, row('mode="max-autotune-no-cudagraphs"', None), FASTEST, both)
    for told in (written("terminal", result), written("terminal", replace(result, environment=ON_CPU.environment))):
        assert max(map(len, told.splitlines())) <= 80
    assert " compile " in told
    assert "kernels" not in told


def test_the_terminal_report_has_a_line_a_way() -> None:
    assert "COLUMNS" not in os.environ
    lines = written("terminal", ON_CPU).splitlines()
    assert lines[1].split() == ["way", "breaks", "kernels", "compile", "step", "×", "eager", "pays", "after"]
    assert lines[2].split() == ["eager", "10.0", "ms"]
    (line,) = [line for line in lines if line.startswith(' mode="reduce-overhead"')]
    assert line.split(None, 1)[1].strip() == "0        4   14.0 s  10 → 3.23 ms  3.10 [3.00, 3.20]  2,100 steps"
    (line,) = [line for line in lines if line.startswith(' mode="default"')]
    assert line.endswith("same as program's own")


@pytest.mark.parametrize("format_", ["terminal", "markdown"])
def test_peak_memory_is_in_the_table_where_a_gpu_is_used(format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    lines = [line for line in written(format_).splitlines() if " memory " in line or " MB" in line]
    measured = [row for row in WHOLE.rows if row.memory_bytes is not None]
    assert len(lines) == 2 + len(measured)
    assert " 9 MB " in lines[1]
    assert all(" 10 MB " in line for line in lines[2:])
    assert "memory" not in written(format_, ON_CPU)


def test_what_went_wrong_is_said_in_words() -> None:
    told = written("terminal")
    assert "failed in Inductor: " in told
    assert "differs from eager: output differs" in told
    assert "unsteady: L['n'] changes" in told
    assert "not run: there is no GPU" in told
    broke = ended("it", MeasurementStatus.FAILED, Stage.RUN_TIME, "it ended by signal 11")
    assert "failed at run time: it ended by signal 11" in written("terminal", bench(broke))


def test_the_json_is_what_its_schema_says(valid: Valid) -> None:
    for result in (WHOLE, bench(), replace(bench(), eager=None, same=None)):
        valid(written("json", result), "bench")
    told = json.loads(written("json"))
    assert {variant["standing"] for variant in told["ways"]} == {status.value for status in MeasurementStatus}
    written("json").encode("ascii")


@pytest.mark.parametrize("format_", BENCH.names)
def test_foreign_text_steers_nothing(format_: str) -> None:
    told = written(format_)
    assert "\x1b" not in told
    assert "\u202e" not in told


def test_a_machine_that_is_too_noisy_is_named() -> None:
    noisy = replace(FASTEST, ratio=Ratio(3.0, 2.0, 4.0))
    told = " ".join(written("terminal", bench(SLOWER, noisy, best=noisy.label)).split())
    assert told.startswith(f"Fastest: {noisy.label}, at least 2.00× eager [2.00, 4.00].")
    assert " too noisy [2.00, 4.00] " in told
    disturbed = replace(FASTEST, ratio=Ratio(3.0, 2.9, 3.1, disturbed=True))
    told = written("terminal", bench(disturbed))
    assert told.startswith("The machine is too noisy to say if anything is faster than eager.")
    assert "3.00" not in told


def test_it_is_said_which_calls_have_a_backward_pass() -> None:
    assert "Measured: 3 calls of Net with their backward pass on 1 ×" in " ".join(written("terminal").split())
    forward = " ".join(written("terminal", replace(WHOLE, backward=frozenset())).split())
    assert "Measured: 3 calls of Net on 1 ×" in forward


def test_it_is_said_which_intervals_hold_how_processes_differ() -> None:
    told = " ".join(written("terminal").split())
    assert (
        "4 processes were run of program's own, and the interval of each holds how these differ; any other interval is "
        "of one process." in told
    )
    told = " ".join(written("terminal", bench(OWN_ROW, replace(FASTEST, processes=4))).split())
    assert (
        '4 processes were run of program\'s own and mode="reduce-overhead", and the interval of each holds how these '
        "differ." in told
    )
    assert "4 processes" not in " ".join(written("terminal", bench(FASTEST)).split())
