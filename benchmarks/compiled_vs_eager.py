"""Runs ``breakscan verify`` on programs whose compiled results differ from eager ones, and on ordinary models.

    python benchmarks/compiled_vs_eager.py [NAME ...]

``compiled_vs_eager/differs/`` holds programs whose compiled results differ on torch 2.13 on a CPU, most of them from
public issues; ``DIFFERS`` says at which stage, operation and line, and which setting helps.  ``agrees/`` holds ordinary
models.  Prints a row for each program; the exit status is 1 if a report is not the expected one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "compiled_vs_eager"
DIFFERS: Mapping[str, tuple[str, str, int, str | None]] = {
    "arange_product": ("Inductor", "operator.mul", 8, "cpp.simdlen"),
    "as_strided": ("Inductor", "torch.as_strided", 9, None),
    "constant_folding": ("Inductor", "operator.mul", 8, "joint_graph_constant_folding"),
    "copysign_strides": ("Inductor", "torch.copysign", 8, None),
    "half_cast": ("Inductor", "Tensor.to", 8, "emulate_precision_casts"),
    "max_pool_nan": ("Inductor", "torch.nn.functional.max_pool2d", 9, None),
    "normal_dtype": ("decompositions", "Tensor.expand", 8, "fallback_random"),
    "remainder_infinity": ("Inductor", "torch.remainder", 8, "cpp.simdlen"),
    "sinh_overflow": ("Inductor", "torch.sinh", 8, "cpp.simdlen"),
    "uint8_abs": ("Inductor", "Tensor.sum", 9, None),
    "unfold_gap": ("AOTAutograd", "Tensor.add_", 9, None),
}


def main() -> int:
    wanted = sys.argv[1:]
    paths = [path for path in sorted(PROGRAMS.glob("*/*.py")) if not wanted or path.stem in wanted]
    wrong = 0
    for path in paths:
        began = time.monotonic()
        command = [sys.executable, "-m", "breakscan", "verify", "--format", "json", path.name]
        done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True)
        compiled = json.loads(done.stdout)["compiled"] if done.stdout else None
        right = compiled is not None and found(compiled) == DIFFERS.get(path.stem)
        wrong += not right
        says = compiled["says"] if compiled is not None else done.stderr.strip()
        print(f"{path.stem}: {'right' if right else 'WRONG'}, {time.monotonic() - began:.0f} s: {says}", flush=True)
    print(f"{len(paths) - wrong} of {len(paths)} right")
    return 1 if wrong else 0


def found(compiled: dict) -> tuple[str, str, int, str | None] | None:
    """The report in the form of ``DIFFERS``; None for a program that agrees."""
    if compiled["agrees"]:
        return None
    operation, setting = compiled["operation"] or {}, compiled["setting"] or {}
    name = setting.get("name", "").removeprefix("torch._inductor.config.") or None
    return compiled["stage"], operation.get("name"), operation.get("line"), name


if __name__ == "__main__":
    sys.exit(main())
