"""A bench with a way of every kind, for the tests of its reports."""

from __future__ import annotations

from dataclasses import replace

from breakscan.prove.bench_result import OWN, Bench, BenchRow, Eager, MeasurementStatus, Problem
from breakscan.prove.candidate import Variant
from breakscan.prove.faster import Ratio
from breakscan.prove.observation import Observation, ObservationKind
from breakscan.prove.protocol import Stage

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
        "cold_seconds": cold,
        "cold_steps": 9.0,
        "step_seconds": step,
        "ratio": ratio,
        "processes": 1,
        "memory_bytes": 10_000_000,
    }
    told = {**(figures if ratio else {}), **more}
    return replace(BenchRow(Variant(label, {}), MeasurementStatus.MEASURED), **told)  # type: ignore[arg-type]


OWN_ROW = row(OWN, Ratio(2.0, 1.95, 2.05), breaks=2, graphs=3, pays_after_calls=2797, processes=4, variant=Variant(OWN))
FASTEST = row(REDUCE, Ratio(3.1, 3.0, 3.2), pays_after_calls=2064, launches={"kernels": 0, "cuda_graphs": 1})
FLAG = row(
    "capture_scalar_outputs=True",
    Ratio(2.5, 2.4, 2.6),
    variant=Variant("capture_scalar_outputs=True", None, {"dynamo.capture_scalar_outputs": True}),
)
SAME = row(
    DEFAULT,
    None,
    status=MeasurementStatus.SKIPPED,
    same_as=OWN,
    problem=Problem(Stage.NOT_RUN, Observation(ObservationKind.ERROR, "it is the same")),
)
NO_GPU = row(
    'backend="cudagraphs"',
    None,
    status=MeasurementStatus.SKIPPED,
    problem=Problem(Stage.NOT_RUN, Observation(ObservationKind.ERROR, "there is no GPU")),
)
FAILED = row(
    'backend="tvm"',
    None,
    status=MeasurementStatus.FAILED,
    problem=Problem(Stage.INDUCTOR, Observation(ObservationKind.ERROR, HOSTILE)),
)
DIFFERS = row(
    HOSTILE,
    Ratio(4.0, 3.9, 4.1),
    status=MeasurementStatus.DIFFERS,
    problem=Problem(Stage.RESULTS, Observation(ObservationKind.ERROR, "output differs")),
)
UNSTEADY = row(
    "dynamic=False",
    None,
    status=MeasurementStatus.UNSTEADY,
    problem=Problem(Stage.RECOMPILING, Observation(ObservationKind.ERROR, "L['n'] changes")),
)


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
    FLAG,
    SAME,
    NO_GPU,
    FASTEST,
    FAILED,
    DIFFERS,
    UNSTEADY,
    best=REDUCE,
    write='torch.compile(model, mode="reduce-overhead")',
)
