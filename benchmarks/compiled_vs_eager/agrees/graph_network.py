"""A graph network: messages over edges, added up with scatter and index_add."""

import torch
from torch import nn


class Messages(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message, self.update = nn.Linear(2 * width, width), nn.GRUCell(width, width)

    def forward(self, nodes, edges):
        source, target = edges
        sent = torch.relu(self.message(torch.cat([nodes[source], nodes[target]], dim=-1)))
        total = torch.zeros_like(nodes).index_add(0, target, sent)
        degree = torch.zeros(len(nodes)).scatter_add(0, target, torch.ones(len(target))).clamp(min=1)
        most = nodes.scatter_reduce(0, target[:, None].expand_as(sent), sent, "amax")
        return self.update(total / degree[:, None] + most, nodes)


torch.manual_seed(0)
model = nn.ModuleList([Messages(16), Messages(16)])


@torch.compile
def step(nodes, edges):
    for layer in model:
        nodes = layer(nodes, edges)
    return nodes.mean(0)


for _ in range(4):
    step(torch.randn(30, 16), torch.randint(30, (2, 90))).sum().backward()
