"""A compiled loss: momentum, a schedule, clipped gradients, and a step that is skipped if they are not finite."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)


def loss_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = net(x)
    if out.abs().amax() > 1:
        out = out / 2
    return nn.functional.cross_entropy(out, y)


compiled = torch.compile(loss_of)
for _ in range(12):
    loss = compiled(torch.randn(32, 64), torch.randint(4, (32,)))
    loss.backward()
    if nn.utils.clip_grad_norm_(net.parameters(), 1.0).isfinite():
        optimizer.step()
    optimizer.zero_grad()
    schedule.step()
