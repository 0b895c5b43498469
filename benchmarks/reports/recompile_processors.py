"""pytorch/pytorch#163329 (2025-09): regional compilation of a diffusion transformer; each block has a processor object of its own.

Say: blocks share the compiled forward, but the class of the processor (or its object) differs by block: one version for each block
that differs, the ninth and later run eager.
Solve: one kind of processor for all blocks, numbers on the module's tensors; or recompile_limit of at least the number of blocks.
"""

import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Processor:
    def __init__(self, name):
        self.name = name

    def __call__(self, block, x):
        q, k, v = block.qkv(x).chunk(3, -1)
        return v if self.name == "cross" else (q @ k.transpose(-1, -2)).softmax(-1) @ v


class Block(nn.Module):
    def __init__(self, processor, dim=16):
        super().__init__()
        self.qkv, self.processor = nn.Linear(dim, 3 * dim), processor

    def forward(self, x):
        return x + self.processor(self, x)


torch.manual_seed(0)
shared = Processor("self")
blocks = nn.ModuleList([Block(shared if FIXED else Processor(f"self_{i}")) for i in range(10)])
for block in blocks:
    block.compile(backend="aot_eager")
with torch.no_grad():
    for x in torch.randn(3, 2, 8, 16):
        for block in blocks:
            x = block(x)
