"""A recommender: embedding bags, interactions and a top network."""

import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(50, 16, mode=mode) for mode in ("sum", "mean")])
        self.dense, self.top = nn.Linear(13, 16), nn.Sequential(nn.Linear(19, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, dense, indices, offsets):
        parts = [torch.relu(self.dense(dense)), *(bag(indices, offsets) for bag in self.bags)]
        stacked = torch.stack(parts, dim=1)
        products = torch.bmm(stacked, stacked.mT)
        rows, columns = torch.triu_indices(3, 3, offset=1)
        return self.top(torch.cat([parts[0], products[:, rows, columns]], dim=1)).squeeze(1)


torch.manual_seed(0)
model = Recommender()
compiled = torch.compile(model)
for _ in range(4):
    score = compiled(torch.randn(8, 13), torch.randint(50, (24,)), torch.arange(0, 24, 3))
    nn.functional.binary_cross_entropy_with_logits(score, torch.randint(2, (8,)).float()).backward()
