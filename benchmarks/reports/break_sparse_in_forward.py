"""pytorch/pytorch#171865 (2026-01): a sparse CSR matrix is made in forward, and multiplied.

Say: torch.compile has no sparse tensors; made and used in forward, both are left to eager.
Solve: dense or index_add in place of the matrix; or the sparse product in a custom operator. Torch's hint (make it outside) helps
only if the product is outside, too.
"""

import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class GraphConv(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.lin = nn.Linear(dim, dim)

    def forward(self, x, rowptr, col, value):
        x = torch.relu(self.lin(x))
        if FIXED:
            row = torch.repeat_interleave(torch.arange(x.shape[0]), rowptr.diff(), output_size=col.shape[0])
            return torch.zeros_like(x).index_add(0, row, value[:, None] * x[col])
        adjacency = torch.sparse_csr_tensor(rowptr, col, value, (x.shape[0], x.shape[0]))
        return adjacency @ x


torch.manual_seed(0)
conv = torch.compile(GraphConv())
rowptr = torch.arange(0, 41, 4)
for _ in range(4):
    col, value = torch.randint(0, 10, (40,)), torch.rand(40)
    out = conv(torch.randn(10, 32), rowptr, col, value)
print(out.shape)
