"""isayevlab/aimnetcentral#109 (2026-07): a model of molecules that compiles into more graphs than it has layers.

Say: torch.bincount needs the values (its length depends on them); the break leaves the sums of the molecules outside the graph.
Solve: a length known beforehand: zeros(n).scatter_add(0, index, ones), or torch.bincount outside of compiled code.
"""

import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Energy(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(10, width)
        self.net = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, species, molecule, molecules):
        energy = self.net(self.embed(species)).squeeze(-1)
        if FIXED:
            atoms = torch.zeros(molecules, dtype=torch.long).scatter_add(0, molecule, torch.ones_like(molecule))
        else:
            atoms = torch.bincount(molecule)
        total = torch.zeros(molecules).index_add(0, molecule, energy)
        return total / atoms.sqrt()


torch.manual_seed(0)
model = torch.compile(Energy().eval())
molecule = torch.arange(6).repeat_interleave(torch.tensor([3, 5, 2, 7, 4, 3]))
with torch.no_grad():
    for _ in range(4):
        out = model(torch.randint(0, 10, molecule.shape), molecule, 6)
print(out.sum().item())
