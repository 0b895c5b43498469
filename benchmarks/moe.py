"""Times mixture-of-experts layers: a loop as it is written, rewritten by ``breakscan fix``, and two forms by hand.

    python benchmarks/moe.py --output FOLDER [--cpu] [--sizes N]

The forms by hand have the weights of all experts in one tensor: ``dense`` computes every expert for all rows by a
batched matrix product, ``grouped`` sorts the rows by expert and uses ``torch.nn.functional.grouped_mm``.  A step is a
forward and a backward pass in bfloat16.  Each form and mode is a process of its own: they are compiled at the same
time, and timed one after another while nothing else runs.  ``--sizes`` takes only the first sizes.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import statistics
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from turns import Turn, timed_blocks

HERE = Path(__file__).parent
LOOP = HERE / "moe_programs" / "loop.py"
FORMS = ("loop", "fix", "dense", "grouped")
MODES = ("eager", "default", "reduce-overhead")
SIZES = ((4, 2, 8, 256), (8, 2, 2, 256), (16, 2, 8, 512))
"""Experts, experts of a row, batch, length."""
LAYERS, WIDTH = 4, 1024
LONGEST_BLOCK = 0.1


def rewritten() -> tuple[str, list[str]]:
    """The text of the loop as ``breakscan fix --unsafe`` leaves it, and the rewrites that were applied."""
    from breakscan.fix.planner import WantedRewrites
    from breakscan.fix.repair import repair_paths
    from breakscan.rulebook.config import load_settings

    settings = load_settings(HERE, no_cache=True)
    (file,) = repair_paths((LOOP,), settings, WantedRewrites(unsafe=True), jobs=1).files
    return file.after, sorted({one.rewrite for one in file.applied})


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("moe_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["moe_program"] = module
    spec.loader.exec_module(module)
    return module


def by_hand(form: str) -> Any:
    """A class with the weights of all experts in one tensor."""
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn

    class Experts(nn.Module):
        def __init__(self, width: int, count: int, chosen: int) -> None:
            super().__init__()
            self.count, self.chosen = count, chosen
            self.gate = nn.Linear(width, count, bias=False)
            self.up = nn.Parameter(torch.empty(count, 4 * width, width))
            self.down = nn.Parameter(torch.empty(count, width, 4 * width))

        def take(self, other: Any) -> None:
            with torch.no_grad():
                self.gate.weight.copy_(other.gate.weight)
                self.up.copy_(torch.stack([one.up.weight for one in other.experts]))
                self.down.copy_(torch.stack([one.down.weight for one in other.experts]))

        def forward(self, x: Tensor) -> Tensor:
            h = x.reshape(-1, x.shape[-1])
            weights, index = torch.topk(self.gate(h).softmax(dim=-1), self.chosen, dim=-1)
            run = self.dense if form == "dense" else self.grouped
            return run(h, weights, index).reshape(x.shape)

        def dense(self, h: Tensor, weights: Tensor, index: Tensor) -> Tensor:
            share = torch.zeros(h.shape[0], self.count, dtype=h.dtype, device=h.device).scatter(1, index, weights)
            inner = F.silu(torch.einsum("nd,efd->enf", h, self.up))
            return torch.einsum("enf,edf,ne->nd", inner, self.down, share)

        def grouped(self, h: Tensor, weights: Tensor, index: Tensor) -> Tensor:
            expert, order = index.flatten().sort()
            ends = torch.searchsorted(expert, torch.arange(self.count, device=h.device), right=True).int()
            rows = order // self.chosen
            inner = F.silu(F.grouped_mm(h[rows], self.up.transpose(1, 2), offs=ends))
            out = F.grouped_mm(inner, self.down.transpose(1, 2), offs=ends)
            return torch.zeros_like(h).index_add(0, rows, out * weights.flatten()[order, None])

    return Experts


def time_one(form: str, mode: str, sizes: tuple[int, int, int, int], cpu: bool, folder: Path) -> dict[str, Any]:
    """The process of one form and mode."""
    import torch

    device, dtype = ("cpu", torch.float32) if cpu else ("cuda", torch.bfloat16)
    experts, chosen, batch, length = (4, 2, 2, 8) if cpu else sizes
    shape = (2, 32) if cpu else (LAYERS, WIDTH)
    torch.manual_seed(0)
    original = loaded(LOOP)
    reference = original.Model(*shape, experts, chosen).to(device, dtype)
    model = reference
    if form == "fix":
        model = loaded(folder / "fixed.py").Model(*shape, experts, chosen).to(device, dtype)
        model.load_state_dict(reference.state_dict())
    elif form != "loop":
        model = copy.deepcopy(reference)
        for block in model.blocks:
            its, block.experts = block.experts, by_hand(form)(shape[1], experts, chosen).to(device, dtype)
            block.experts.take(its)
    x = torch.randn(batch, length, shape[1], device=device, dtype=dtype)
    with torch.no_grad():
        expected, got = reference(x).float(), model(x).float()
    differs = float((expected - got).abs().max() / expected.abs().max())
    compiled = model if mode == "eager" else torch.compile(model, mode=mode)

    def step() -> None:
        torch.compiler.cudagraph_mark_step_begin()
        compiled(x).sum().backward()
        for parameter in model.parameters():
            parameter.grad = None

    def wait() -> float:
        if not cpu:
            torch.cuda.synchronize()
        return time.perf_counter()

    for _ in range(3):
        step()
    wait()
    seconds = timed_blocks(step, wait, LONGEST_BLOCK)
    if not cpu:
        torch.cuda.reset_peak_memory_stats()
        step()
    memory = 0 if cpu else torch.cuda.max_memory_allocated()
    breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
    return {"step": statistics.median(seconds), "differs": differs, "memory": memory, "breaks": breaks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--sizes", type=int, default=len(SIZES), metavar="N")
    parser.add_argument("--one", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        form, mode, *sizes = given.one
        experts, chosen, batch, length = map(int, sizes)
        print(json.dumps(time_one(form, mode, (experts, chosen, batch, length), given.cpu, given.output)))
        return
    import torch

    given.output.mkdir(parents=True, exist_ok=True)
    text, rewrites = rewritten()
    (given.output / "fixed.py").write_text(text)
    device = "CPU" if given.cpu else torch.cuda.get_device_name()
    lines = [f"{device}, torch {torch.__version__}; rewrites applied: {', '.join(rewrites)}.", ""]
    lines += ["| experts, of a row, batch | form | mode | step | memory | breaks | largest difference |"]
    lines += ["|" + " --- |" * 7]
    for sizes in SIZES[:1] if given.cpu else SIZES[: given.sizes]:
        pairs = [(form, mode) for form in FORMS for mode in MODES]
        more = ["--cpu"] if given.cpu else []
        processes = [
            Turn([__file__, "--output", str(given.output), "--one", form, mode, *map(str, sizes), *more])
            for form, mode in pairs
        ]
        for process in processes:
            process.wait()
        size = f"{sizes[0]}, {sizes[1]}, {sizes[2]} × {sizes[3]}"
        for process, (form, mode) in zip(processes, pairs, strict=True):
            one = process.result()
            if "error" in one:
                lines.append(f"| {size} | {form} | {mode} | failed: {one['error']} | | | |")
            else:
                cells = f"{one['step'] * 1e3:.2f} ms | {one['memory'] / 2**20:.0f} MiB"
                lines.append(f"| {size} | {form} | {mode} | {cells} | {one['breaks']} | {one['differs']:.1e} |")
            print(lines[-1], file=sys.stderr, flush=True)
            (given.output / "moe.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
