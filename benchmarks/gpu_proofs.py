"""Measures what ``breakscan fix`` gains on a GPU: small programs that break the graph, rewritten, verified and timed.

    python benchmarks/gpu_proofs.py --output FOLDER [--cpu] [--only NAME ...] [--modes MODE ...] [--seconds N]

Each program of ``gpu_programs/`` is rewritten in memory as ``breakscan fix --unsafe`` rewrites it, and ``verify``
verifies all its rewrites together, as ``breakscan verify --patch`` does.  Another process times the program eager.
FOLDER gets ``proofs.json`` and ``proofs.md``, updated after each program.

All programs are compiled at the same time; then they are timed one after another, while nothing else runs.  Programs
that are not timed after N seconds are left out.  ``--cpu`` uses tiny sizes and no GPU, to test the benchmark itself.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import select
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = HERE / "gpu_programs"
MODES = ("default", "reduce-overhead")
EAGER_BLOCKS = 9
BLOCK = 0.04
"""Seconds of a block of eager steps."""


@dataclass(frozen=True)
class CapturedCall:
    """``sizes`` are the program's arguments: batch, width, and depth if it has one."""

    name: str
    program: str
    sizes: tuple[int, ...]

    def arguments(self, mode: str, cpu: bool) -> list[str]:
        sizes = (8, 16, 2)[: len(self.sizes)] if cpu else self.sizes
        return [str(PROGRAMS / f"{self.program}.py"), mode, "cpu" if cpu else "cuda", *map(str, sizes)]


CASES = (
    CapturedCall("residual, batch 16", "residual_blocks", (16, 256, 6)),
    CapturedCall("residual, batch 4096", "residual_blocks", (4096, 256, 6)),
    CapturedCall("norm branch", "norm_branch", (256, 256, 6)),
    CapturedCall("masked mean", "masked_mean", (512, 1024)),
    CapturedCall("logging", "logging_blocks", (1024, 256, 6)),
    CapturedCall("indexed loss", "indexed_loss", (512, 1024)),
    CapturedCall("training step", "training_step", (256, 256, 4)),
)


# -- one case, in a separate process -------------------------------------------------------------------------------


def prove(case: CapturedCall, mode: str, cpu: bool) -> dict[str, Any]:
    """Compiles, waits for its turn, and times."""
    from breakscan.fix.planner import WantedRewrites
    from breakscan.fix.repair import repair_paths
    from breakscan.prove.verify.candidates import Candidate
    from breakscan.prove.verify.label import Label
    from breakscan.prove.verify.proof import Metrics
    from breakscan.prove.verify.verify import Question, verify
    from breakscan.prove.worker.progress import MeasuringStep
    from breakscan.prove.worker.worker import ProgramChange, UserProgram, Worker
    from breakscan.report.verify.words import progress_words, verdict_words
    from breakscan.rulebook.config import load_settings

    argv = case.arguments(mode, cpu)
    settings, wanted = load_settings(Path.cwd(), no_cache=True), WantedRewrites(unsafe=True)
    (file,) = repair_paths((Path(argv[0]).absolute(),), settings, wanted, jobs=1).files
    path = str(file.path)
    candidate = Candidate("breakscan fix", {path: (file.before, file.after)}, lines={path: file.lines})
    program = UserProgram(tuple(argv))
    turn = Turn()

    def say(step: MeasuringStep, label: Label | None) -> None:
        print(f"{time.monotonic():.1f} {progress_words(step, label)}", file=sys.stderr, flush=True)
        if step is MeasuringStep.TIME:
            turn.take()

    with contextlib.ExitStack() as stack:
        eager = None
        if mode == MODES[0]:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="breakscan-eager-")))
            eager = stack.enter_context(Worker(program, ProgramChange(), folder / "arm"))
        verification = verify(program, Question(settings, wanted, candidate), say)
        turn.take()
        eager_step = None if eager is None else time_eager(eager)
    (proof,) = verification.proofs

    def told(metrics: Metrics | None) -> dict[str, Any] | None:
        if metrics is None:
            return None
        return {
            "breaks": metrics.breaks,
            "recompiles": metrics.recompiles,
            "graphs": metrics.graphs,
            "kernels": dict(metrics.kernels),
            "launches": metrics.launches and dict(metrics.launches),
            "step_seconds": metrics.step_seconds,
            "first_call_seconds": metrics.first_call_seconds,
            "compile_seconds": metrics.compile_seconds,
            "memory_bytes": metrics.memory_bytes,
        }

    return {
        "environment": dict(verification.environment),
        "rewrites": [one.rewrite for one in file.applied],
        "verdict": proof.verdict.value,
        "says": verdict_words(proof),
        "reasons": list(proof.reasons),
        "slower": proof.slower,
        "outputs_equal": proof.outputs_equal,
        "ratio": proof.ratio and [proof.ratio.median, proof.ratio.low, proof.ratio.high],
        "same": verification.same and [verification.same.median, verification.same.low, verification.same.high],
        "before": told(proof.before),
        "after": told(proof.after),
        "eager": eager_step,
        "notes": list(verification.notes),
        "diff": proof.diff,
    }


class Turn:
    """Work that must run while no other case works begins after :meth:`take`."""

    def __init__(self) -> None:
        self.taken = False

    def take(self) -> None:
        if not self.taken:
            self.taken = True
            print("ready", flush=True)
            sys.stdin.readline()


def time_eager(worker: Any) -> dict[str, Any]:
    """The median of a step of the unchanged program, without the compiler."""
    from breakscan.prove.worker.protocol import CountLaunches, Prepare, StepKind

    worker.ready()
    seconds = worker.ask(Prepare(StepKind.EAGER))
    calls = max(1, round(BLOCK / seconds))
    blocks = [worker.block(calls, StepKind.EAGER).seconds for _ in range(EAGER_BLOCKS)]
    return {"step_seconds": statistics.median(blocks), "launches": worker.ask(CountLaunches(StepKind.EAGER))}


# -- all of them --------------------------------------------------------------------------------------------------


class Worker:
    """The process of one case."""

    def __init__(self, case: CapturedCall, mode: str, cpu: bool, folder: Path) -> None:
        self.case, self.mode = case, mode
        stem = f"{case.name} {mode}".replace(",", "").replace(" ", "-")
        self.log = folder / f"{stem}.log"
        self.result = folder / f"{stem}.json"
        # A separate process group, so that the process is ended with all its children.
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, __file__, "--case", case.name, "--modes", mode, "--output", str(self.result)]
                + (["--cpu"] if cpu else []),
                env={**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def is_ready(self, until: float) -> bool:
        """Waits until it wants its turn or has ended."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))
        return bool(ready)

    def go(self, until: float) -> dict[str, Any] | None:
        """Gives it its turn, and returns its result."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(b"go\n")
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.1, until - time.monotonic()))
        return json.loads(self.result.read_text()) if self.result.exists() else None

    def end(self) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, 15)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, 9)
                self.process.wait()


def run(cases: list[CapturedCall], modes: list[str], cpu: bool, output: Path, seconds: float, at_once: int) -> None:
    output.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    until = began + seconds
    rows: list[dict[str, Any]] = []
    pairs = [(case, mode) for mode in modes for case in cases]
    with tempfile.TemporaryDirectory(prefix="gpu-proofs-") as scratch:
        for first in range(0, len(pairs), at_once):
            workers = [Worker(case, mode, cpu, Path(scratch)) for case, mode in pairs[first : first + at_once]]
            try:
                for worker in workers:
                    worker.is_ready(until)
                say(f"{time.monotonic() - began:.0f} s: {len(workers)} are compiled")
                for worker in workers:
                    found = worker.go(until) if worker.is_ready(until) else None
                    # No worker's end, nor that of its arms, runs beside the next one's times.
                    worker.end()
                    log = worker.log.read_text(errors="replace")
                    if found is None:
                        say(log[-3000:])
                        found = {"says": "not measured: " + (log.strip().splitlines() or ["no time"])[-1]}
                    rows.append({"case": worker.case.name, "mode": worker.mode, "sizes": worker.case.sizes, **found})
                    write(rows, output)
                    say(f"{time.monotonic() - began:.0f} s: {worker.case.name}, {worker.mode}: {found['says']}")
            finally:
                for worker in workers:
                    worker.end()
    print((output / "proofs.md").read_text())


def write(rows: list[dict[str, Any]], output: Path) -> None:
    told = {"machine": machine(), "rows": rows}
    (output / "proofs.json").write_text(json.dumps(told, indent=1) + "\n")
    (output / "proofs.md").write_text(table(told))


def machine() -> dict[str, str]:
    import torch

    cuda = torch.cuda.is_available()
    return {
        "date": datetime.date.today().isoformat(),
        "device": torch.cuda.get_device_name() if cuda else "CPU",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cpus": str(os.cpu_count()),
    }


def table(told: dict[str, Any]) -> str:
    about = told["machine"]
    versions = f"torch {about['torch']}, Python {about['python']}"
    head = f"{about['device']}, {versions}, {about['cpus']} CPU cores, {about['date']}."
    columns = ["program", "mode", "breaks", "Triton kernels", "launches (+ CUDA graphs)", "eager", "before", "after"]
    columns += ["verdict", "A/A"]
    lines = [head, "", f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    eager = {row["case"]: row["eager"]["step_seconds"] for row in told["rows"] if row.get("eager")}
    for row in told["rows"]:
        before, after = row.get("before"), row.get("after")
        if not before or not after:
            lines.append(f"| {row['case']} | {row['mode']} | | | | | | | {row['says']} | |")
            continue
        cells = [
            row["case"],
            row["mode"],
            f"{before['breaks']} → {after['breaks']}",
            f"{before['kernels'].get('triton', 0)} → {after['kernels'].get('triton', 0)}",
            f"{launched(before)} → {launched(after)}",
            micro(eager.get(row["case"])),
            micro(before["step_seconds"]),
            micro(after["step_seconds"]),
            row["says"],
            "{:.2f} [{:.2f}, {:.2f}]".format(*row["same"]) if row["same"] else "–",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def launched(metrics: dict[str, Any]) -> str:
    launches = metrics["launches"]
    if launches is None:
        return "–"
    graphs = launches["cuda_graphs"]
    return f"{launches['kernels']}" + (f" + {graphs}" if graphs else "")


def micro(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1e6:,.0f} µs"


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="cases whose names begin so")
    parser.add_argument("--modes", nargs="*", default=list(MODES))
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--at-once", type=int, default=len(CASES) * len(MODES), help="cases compiled at the same time")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        case = next(case for case in CASES if case.name == given.case)
        try:
            found = prove(case, given.modes[0], given.cpu)
        except Exception as error:
            traceback.print_exc()
            found = {"says": f"not measured: {type(error).__name__}: {error}"[:300]}
        partial = given.output.with_suffix(".part")
        partial.write_text(json.dumps(found))
        partial.replace(given.output)
        return
    cases = [case for case in CASES if not given.only or any(case.name.startswith(name) for name in given.only)]
    run(cases, given.modes, given.cpu, given.output, given.seconds, given.at_once)


if __name__ == "__main__":
    main()
