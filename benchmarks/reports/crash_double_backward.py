"""torchmd/torchmd-net#307 (2024-03; NVIDIA/cuEquivariance#268): training on forces, the compiled energy is differentiated twice.

Say: only compiled code raises: AOTAutograd has no second derivative; the forces with create_graph=True (this line) need it.
Solve: backend="eager" for the energy, or forces inside the compiled step with torch.func.grad, so that AOTAutograd sees one backward.
"""

import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Energy(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, dim), nn.Tanh(), nn.Linear(dim, 1))

    def forward(self, positions):
        return self.net(positions).sum()


torch.manual_seed(0)
model = Energy()
energy = torch.compile(model, backend="aot_eager")
forces = torch.compile(torch.func.grad(model), backend="aot_eager")
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    positions, target = torch.randn(10, 3, requires_grad=True), torch.randn(10, 3)
    if FIXED:
        force = -forces(positions)
    else:
        force = -torch.autograd.grad(energy(positions), positions, create_graph=True)[0]
    loss = (force - target).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(loss.item())
