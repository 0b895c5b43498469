"""Compiles a model of a package and calls it as its users do: random weights, sizes as published, or tiny on a CPU.

    python run.py NAME MODE DEVICE

On a CPU, the backend is ``aot_eager``, to try the program itself.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))

if __name__ == "__main__":
    name, mode, device = sys.argv[1:]
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    model, inputs, trained = importlib.import_module(name).build(device, device == "cpu")
    compiled = torch.compile(model, backend="aot_eager") if device == "cpu" else torch.compile(model, mode=mode)
    with torch.set_grad_enabled(trained):
        for _ in range(4):
            result = compiled(*inputs)
            if trained:
                result.backward()
