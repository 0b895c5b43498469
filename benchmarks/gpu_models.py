"""What ``breakscan fix`` gains in models of packages: eager, broken and rewritten, with and without CUDA graphs.

    python benchmarks/gpu_models.py --output FOLDER [--only NAME ...] [--path FOLDER] [--cpu]

The models are in ``model_programs/``, with random weights.  First, ``breakscan verify`` rewrites the files of the
packages that break the graph of a tiny one on the CPU, and proves that all rewrites together are equal there.  Then
each form of the model is compiled and timed on the GPU in a process of its own: all are compiled at the same time, and
timed one after another while nothing else runs.  Their results are compared with the eager ones.  ``--path`` is put
before the path of Python's modules, for another version of a package.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import sys
import time
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from turns import Turn, timed_blocks

HERE = Path(__file__).parent
PROGRAMS = HERE / "model_programs"
FORMS = ("eager", "broken", "rewritten", "broken-graphs", "rewritten-graphs")
MODES = {"broken": "default", "rewritten": "default", "broken-graphs": "reduce-overhead"}
AT_ONCE = 20
"""Processes of models that are on the device at the same time."""
LONGEST_BLOCK = 0.08


def prove(name: str, told: Path) -> None:
    """Writes the texts of the rewritten files of a model, and the verdict on all of them together."""
    from breakscan.fix.planner import WantedRewrites
    from breakscan.prove.verify.proof import ProofVerdict
    from breakscan.prove.verify.rewrite_proofs import RewriteProofs
    from breakscan.prove.verify.verifier import Verifier
    from breakscan.prove.verify.verify import Question, verify
    from breakscan.prove.worker.timing import Ratio
    from breakscan.prove.worker.worker import UserProgram
    from breakscan.report.verify.words import verdict_words
    from breakscan.rulebook.config import load_settings

    found: dict[str, Any] = {"texts": {}}

    def not_timed(_: Verifier, trial: Any, __: object) -> None:
        """Tiny models on a CPU say nothing of the time."""
        trial.proof = replace(trial.proof, verdict=ProofVerdict.NO_FASTER, ratio=Ratio(1.0, 1.0, 1.0))

    def prove_all(self: RewriteProofs, planned: Any, _: bool) -> None:
        rewrites = (*planned.alone, *planned.dependent)
        whole = self._rewrites.together(rewrites, "all")  # type: ignore[arg-type]
        if whole is None:
            return
        found["texts"] = {path: after for path, (_, after) in whole.texts.items()}
        found["rewrites"] = [one.rewrite for one in rewrites]
        self.prove(whole)

    Verifier._time = not_timed  # type: ignore[method-assign,assignment]
    RewriteProofs.prove_together = prove_all  # type: ignore[method-assign,assignment]
    question = Question(load_settings(Path.cwd(), no_cache=True), WantedRewrites(unsafe=True))
    program = UserProgram((str(PROGRAMS / "run.py"), name, "default", "cpu"))
    verification = verify(program, question, lambda *_: None)
    for proof in verification.proofs:
        found["verdict"] = "equal" if proof.verdict is ProofVerdict.NO_FASTER else verdict_words(proof)
        found["breaks"] = [proof.before.breaks, proof.after and proof.after.breaks]
    told.write_text(json.dumps(found))


def time_form(name: str, form: str, told: Path, cpu: bool) -> dict[str, Any]:
    """The process of one form of a model."""
    from breakscan.prove.worker.overlay import Overlay, plain_code

    if form.startswith("rewritten"):
        Overlay(json.loads(told.read_text())["texts"], plain_code).install()
    import torch

    sys.path.insert(0, str(PROGRAMS))
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    model, inputs, trained = importlib.import_module(name).build("cpu" if cpu else "cuda", cpu)
    mode = MODES.get(form, "reduce-overhead")
    options: dict[str, Any] = {"backend": "aot_eager"} if cpu else {"mode": mode}
    compiled = model if form == "eager" else torch.compile(model, **options)

    def step() -> Any:
        torch.compiler.cudagraph_mark_step_begin()
        result = compiled(*inputs)
        if trained:
            result.backward()
            for parameter in model.parameters():
                parameter.grad = None
        return result

    def wait() -> float:
        if not cpu:
            torch.cuda.synchronize()
        return time.perf_counter()

    with torch.set_grad_enabled(trained):
        torch.manual_seed(1)
        first = step()
        saved = first if isinstance(first, torch.Tensor) else first[0]
        torch.save(saved.detach().float().cpu(), told.with_name(f"{name}-{form}.pt"))
        del first, saved
        for _ in range(4):
            step()
        wait()
        seconds = timed_blocks(step, wait, LONGEST_BLOCK)
        memory = 0
        if not cpu:
            torch.cuda.reset_peak_memory_stats()
            step()
            wait()
            memory = torch.cuda.max_memory_allocated()
    breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
    middle = statistics.median(seconds)
    apart = statistics.median(abs(one - middle) for one in seconds)
    return {"step": middle, "apart": apart / middle, "memory": memory, "breaks": breaks}


def process_of(words: list[str], cache: Path) -> Turn:
    """A process of this file with a compiler cache of its own."""
    compiler = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    return Turn([__file__, *words], {**os.environ, **compiler})


def farthest(name: str, form: str, folder: Path) -> float | None:
    """The largest difference of a form's result from the eager one, beside the largest element of that."""
    import torch

    paths = [folder / f"{name}-{one}.pt" for one in ("eager", form)]
    if not all(path.exists() for path in paths):
        return None
    eager, other = (torch.load(path) for path in paths)
    return float((eager - other).abs().max() / eager.abs().max().clamp(min=1e-30))


def table(rows: dict[str, dict[str, Any]]) -> str:
    titles = ["model", "rewrites", "proved on the CPU", "breaks", *FORMS, "memory, MB", "largest difference"]
    lines = [f"| {' | '.join(titles)} |", "|" + " --- |" * len(titles)]
    for name, row in rows.items():
        proof, forms = row["proof"], [row["forms"].get(form, {}) for form in FORMS]
        counts = Counter(proof.get("rewrites", ()))
        cells = [
            name,
            ", ".join(f"{count} {one}" if count > 1 else one for one, count in counts.items()),
            proof.get("verdict") or proof.get("error") or "nothing is offered",
            " → ".join(str(row["forms"].get(form, {}).get("breaks", "–")) for form in ("broken", "rewritten")),
            *(f"{one['step'] * 1e3:.3f} ms" if "step" in one else one.get("error", "–") for one in forms),
            ", ".join(f"{one['memory'] / 1e6:,.0f}" if "memory" in one else "–" for one in forms),
            f"{max((one for one in row['differs'].values() if one is not None), default=0.0):.0e}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def run(names: list[str], cpu: bool, output: Path, path: list[str]) -> None:
    import torch

    more = [*(["--cpu"] if cpu else []), "--output", str(output), *(["--path", *path] if path else [])]
    proofs = {name: process_of(["--prove", name, *more], output / f"{name}.cache") for name in names}
    rows: dict[str, dict[str, Any]] = {}
    for name, process in proofs.items():
        failed = process.result()
        told = output / f"{name}.json"
        proof = json.loads(told.read_text()) if told.exists() else {"texts": {}, **failed}
        rows[name] = {"proof": proof, "forms": {}, "differs": {}}
        say(f"{name}: {proof.get('verdict')} {proof.get('breaks')} {proof.get('error', '')}")
    pairs = [
        (name, form) for name in names for form in FORMS if rows[name]["proof"]["texts"] or "rewritten" not in form
    ]
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    about = f"{device}, torch {torch.__version__}, Python {platform.python_version()}, {os.cpu_count()} CPU cores."
    for first in range(0, len(pairs), AT_ONCE):
        now = pairs[first : first + AT_ONCE]
        processes = [process_of(["--form", *pair, *more], output / f"{'-'.join(pair)}.cache") for pair in now]
        for process in processes:
            process.wait()
        say(f"{len(now)} are compiled")
        for process, (name, form) in zip(processes, now, strict=True):
            rows[name]["forms"][form] = process.result()
            rows[name]["differs"][form] = farthest(name, form, output)
            say(f"{name} {form}: {rows[name]['forms'][form]}, differs {rows[name]['differs'][form]}")
            (output / "models.md").write_text(f"{about}\n\n{table(rows)}")
            (output / "models.json").write_text(json.dumps({"machine": about, "rows": rows}, indent=1) + "\n")


def say(words: str) -> None:
    print(f"{time.monotonic():.0f} {words}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--path", nargs="*", default=[])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--prove", help=argparse.SUPPRESS)
    parser.add_argument("--form", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.output = given.output.absolute()
    sys.path[:0] = given.path
    os.environ["PYTHONPATH"] = os.pathsep.join([*given.path, os.environ.get("PYTHONPATH", "")])
    told = given.output / f"{given.prove or (given.form or [''])[0]}.json"
    if given.prove:
        try:
            prove(given.prove, told)
        except Exception as error:
            traceback.print_exc()
            told.write_text(json.dumps({"texts": {}, "error": f"{type(error).__name__}: {error}"[:300]}))
    elif given.form:
        print(json.dumps(time_form(given.form[0], given.form[1], told, given.cpu)))
    else:
        given.output.mkdir(parents=True, exist_ok=True)
        known = sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem != "run")
        run(given.only or known, given.cpu, given.output, given.path)


if __name__ == "__main__":
    main()
