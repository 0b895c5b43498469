"""A module keeps a table until a longer input comes, and counts up to a number.

expect: {p["site"]["line"]: p["remedies"][0]["name"] for p in problems} == {line("longer"): "no-memo", line("counts"): "counter-attribute"}
"""

import torch


class Rotary(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.length, self.steps = 0, 0

    def forward(self, x):
        if x.shape[0] > self.length:  # longer
            self.length = x.shape[0]
            self.table = torch.arange(x.shape[0]).cos()
        return x * self.table[: x.shape[0], None]

    def step(self, x):
        if self.steps < 9:  # counts
            self.steps = self.steps + 1
        return x * self.steps


net = Rotary()
for length in (4, 5, 6):
    torch.compile(net, backend="eager", dynamic=True)(torch.ones(length, 3))
step = torch.compile(net.step, backend="eager")
for _ in range(4):
    step(torch.ones(3))
