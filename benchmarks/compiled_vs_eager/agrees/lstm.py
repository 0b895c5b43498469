"""An LSTM cell in a loop over time, with gradient clipping."""

import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        h, c = x.new_zeros(x.shape[0], 32), x.new_zeros(x.shape[0], 32)
        for step in range(x.shape[1]):
            h, c = self.cell(x[:, step], (h, c))
        return self.head(h), c


torch.manual_seed(0)
model = Recurrent()
compiled = torch.compile(model)
for _ in range(4):
    out, state = compiled(torch.randn(8, 12, 16))
    (out.square().mean() + state.abs().mean()).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
