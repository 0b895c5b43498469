"""vllm-project/vllm-omni#1102 (2026-01): a batch that is marked dynamic, and a table of positions whose slice fixes it.

Say: ConstraintViolationError is torch's word that the code fixes the size: the line self.positions[:batch] + ids, where the
buffer has 8 rows (and no more), or the line that compares; not a graph break.
Solve: compute positions of the size that came (torch.arange(...).expand) in place of the table of fixed size.
"""

import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class CodePredictor(nn.Module):
    def __init__(self, batch=8, length=4, dim=16):
        super().__init__()
        self.embed, self.lin = nn.Embedding(length, dim), nn.Linear(dim, dim)
        self.register_buffer("positions", torch.arange(length).repeat(batch, 1))

    def forward(self, hidden):
        if FIXED:
            positions = torch.arange(hidden.shape[1]).expand(hidden.shape[0], -1)
        else:
            positions = self.positions
        return self.lin(hidden + self.embed(positions))


torch.manual_seed(0)
model = torch.compile(CodePredictor().eval(), backend="aot_eager")
with torch.no_grad():
    for batch in (8, 6, 3) if FIXED else (8, 8):
        hidden = torch.randn(batch, 4, 16)
        torch._dynamo.mark_dynamic(hidden, 0)
        out = model(hidden)
print(out.shape)
