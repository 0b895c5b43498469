"""Stochastic differential equations: solvers, adjoints, Brownian motion."""

from collections.abc import Callable
from typing import Any

import torch
import torchsde

DISTRIBUTION = FOLDER = "torchsde"

START = torch.full((4, 3), 0.5)
TIMES = torch.linspace(0, 0.3, 3)


class Drift(torch.nn.Module):
    def __init__(self, noise_type, sde_type):
        super().__init__()
        self.noise_type, self.sde_type = noise_type, sde_type
        self.layer = torch.nn.Linear(3, 3)
        self.spread = torch.nn.Parameter(torch.rand(3, 2))

    def f(self, t, y):
        return torch.tanh(self.layer(y)) * torch.exp(-t)

    def h(self, t, y):
        return -y

    def g(self, t, y):
        if self.noise_type == "diagonal":
            return torch.sigmoid(y)
        if self.noise_type == "scalar":
            return torch.sigmoid(y).unsqueeze(-1)
        if self.noise_type == "additive":
            return self.spread.expand(y.shape[0], 3, 2)
        return torch.sigmoid(y).unsqueeze(-1) * self.spread


def solve(solver, noise, sde, method, **options):
    def build():
        model = Drift(noise, sde)

        def run(y0, ts):
            return solver(model, y0, ts, method=method, dt=0.1, **options)

        return run, (START, TIMES)

    return build


def train(solver, noise, sde, method, **options):
    def build():
        model = Drift(noise, sde)

        def run(y0, ts):
            loss = solver(model, y0, ts, method=method, dt=0.1, **options)[-1].sum()
            loss.backward()
            return loss

        return run, (START.clone().requires_grad_(), TIMES)

    return build


def brownian(kind, **options):
    def build():
        path = getattr(torchsde, kind)(**options)

        def run():
            return path(0.1, 0.2)

        return run, ()

    return build


CALLS: dict[str, Callable[..., Any]] = {}
for sde, methods in {
    "ito": ("euler", "milstein", "srk"),
    "stratonovich": ("midpoint", "heun", "euler_heun", "reversible_heun", "log_ode", "milstein"),
}.items():
    for noise in ("diagonal", "scalar", "additive", "general"):
        for method in methods:
            CALLS[f"{sde} {noise} {method}"] = solve(torchsde.sdeint, noise, sde, method)
for sde, method in (("ito", "euler"), ("stratonovich", "midpoint"), ("stratonovich", "reversible_heun")):
    CALLS[f"{sde} {method} adaptive"] = solve(torchsde.sdeint, "diagonal", sde, method, adaptive=True)
    CALLS[f"{sde} {method} train"] = train(torchsde.sdeint, "diagonal", sde, method)
    CALLS[f"{sde} {method} logqp"] = solve(torchsde.sdeint, "diagonal", sde, method, logqp=True)
    for noise in ("diagonal", "general", "additive", "scalar"):
        CALLS[f"{sde} {noise} {method} adjoint"] = train(torchsde.sdeint_adjoint, noise, sde, method)
CALLS["adjoint reversible"] = train(
    torchsde.sdeint_adjoint, "diagonal", "stratonovich", "reversible_heun", adjoint_method="adjoint_reversible_heun"
)
CALLS["milstein grad free"] = solve(torchsde.sdeint, "diagonal", "ito", "milstein", options={"grad_free": True})
CALLS["interval"] = brownian("BrownianInterval", t0=0.0, t1=1.0, size=(4, 3))
CALLS["interval space-time"] = brownian(
    "BrownianInterval", t0=0.0, t1=1.0, size=(4, 3), levy_area_approximation="space-time"
)
CALLS["interval davie"] = brownian("BrownianInterval", t0=0.0, t1=1.0, size=(4, 3), levy_area_approximation="davie")
CALLS["interval foster"] = brownian("BrownianInterval", t0=0.0, t1=1.0, size=(4, 3), levy_area_approximation="foster")
CALLS["path"] = brownian("BrownianPath", t0=0.0, w0=torch.zeros(4, 3))
CALLS["tree"] = brownian("BrownianTree", t0=0.0, w0=torch.zeros(4, 3), t1=1.0)
CALLS["reverse"] = lambda: (
    torchsde.ReverseBrownian(torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 3))),
    (-0.2, -0.1),
)
CALLS["interval made"] = lambda: (
    lambda: torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 3))(0.1, 0.4),
    (),
)
