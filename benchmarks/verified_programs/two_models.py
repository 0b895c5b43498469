"""Two compiled models that train against each other, each with its own optimizer."""

import torch
from torch import nn


class Painter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        x = self.net(z)
        if x.abs().max() > 1:
            x = x / x.abs().max()
        return x


class Critic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Dropout(0.1), nn.Linear(32, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        score = self.net(x)
        if score.mean() > 0:
            score = score - 0.1
        return score


torch.manual_seed(0)
painter, critic = Painter(), Critic()
paint, judge = torch.compile(painter), torch.compile(critic)
of_painter, of_critic = torch.optim.Adam(painter.parameters(), 1e-3), torch.optim.Adam(critic.parameters(), 1e-3)
for _ in range(12):
    painted = paint(torch.randn(32, 8))
    loss = torch.relu(1 - judge(torch.randn(32, 16))).mean() + torch.relu(1 + judge(painted.detach())).mean()
    of_critic.zero_grad()
    loss.backward()
    of_critic.step()
    loss = -judge(painted).mean()
    of_painter.zero_grad()
    loss.backward()
    of_painter.step()
