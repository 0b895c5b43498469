"""Time series: interpolations of irregular and incomplete series, and controlled differential equations over them."""

from collections.abc import Callable
from typing import Any

import torch
import torchcde

DISTRIBUTION = "torchcde"
FOLDER = "torchcde"

TIMES = torch.linspace(0, 1, 7)
SERIES = torch.cat([TIMES.expand(2, 7).unsqueeze(-1), torch.randn(2, 7, 2)], dim=-1)
HOLES = SERIES.clone()
HOLES[0, 2, 1] = HOLES[1, 0, 2] = HOLES[1, 6, 1] = float("nan")
EMPTY = SERIES.clone()
EMPTY[0, :, 1] = float("nan")

COEFFICIENTS = {
    "linear": torchcde.linear_interpolation_coeffs,
    "natural": torchcde.natural_cubic_coeffs,
    "spline": torchcde.natural_cubic_spline_coeffs,
    "hermite": torchcde.hermite_cubic_coefficients_with_backward_differences,
}


def coefficients(name, series, *times):
    return lambda: (COEFFICIENTS[name], (series, *times))


def rectilinear(series):
    return lambda: (lambda x: torchcde.linear_interpolation_coeffs(x, rectilinear=0), (series,))


def path(name, times=None):
    coefficients = COEFFICIENTS[name](SERIES)
    return (torchcde.LinearInterpolation if name == "linear" else torchcde.CubicSpline)(coefficients, times)


def at(name, what, t, times=None):
    def build():
        control = path(name, times)
        return (lambda t: getattr(control, what)(t)), (t,)

    return build


def bounds(name):
    def build():
        control = path(name)
        return (lambda x: (x * control.interval[0], x * control.grid_points[-1])), (torch.ones(2),)

    return build


class Field(torch.nn.Module):
    """A vector field with a matrix for each state."""

    def __init__(self, with_product=False):
        super().__init__()
        self.linear = torch.nn.Linear(4, 12)
        if with_product:
            self.prod = self.product

    def forward(self, t, z):
        return self.linear(z).tanh().view(*z.shape[:-1], 4, 3)

    def product(self, t, z, dxdt):
        return (self(t, z) @ dxdt.unsqueeze(-1)).squeeze(-1)


class Fields(torch.nn.Module):
    """A vector field of two states."""

    def __init__(self):
        super().__init__()
        self.field = Field()

    def forward(self, t, states):
        return tuple(self.field(t, z) for z in states)


class Model(torch.nn.Module):
    """A neural controlled differential equation."""

    def __init__(self, interpolation="hermite", with_product=False, **options):
        super().__init__()
        self.initial, self.field, self.readout = torch.nn.Linear(3, 4), Field(with_product), torch.nn.Linear(4, 1)
        self.interpolation, self.options = interpolation, options

    def forward(self, coefficients):
        make = torchcde.LinearInterpolation if self.interpolation == "linear" else torchcde.CubicSpline
        control = make(coefficients)
        z0 = self.initial(control.evaluate(control.interval[0]))
        z = torchcde.cdeint(X=control, func=self.field, z0=z0, t=control.interval, **self.options)
        return self.readout(z[:, -1])


def model(interpolation="hermite", **options):
    return lambda: (Model(interpolation, **options), (COEFFICIENTS[interpolation](SERIES),))


def trained(**options):
    def build():
        net = Model(**options)

        def run(coefficients):
            loss = net(coefficients).square().mean()
            loss.backward()
            return loss

        return run, (COEFFICIENTS["hermite"](SERIES),)

    return build


def solved(**options):
    def build():
        control, field = path("natural"), Field()

        def run(z0):
            return torchcde.cdeint(control, field, z0, torch.tensor([0.0, 2.0, 6.0]), **options)

        return run, (torch.randn(2, 4),)

    return build


def solved_pair():
    control, fields = torchcde.TupleControl(path("natural"), path("hermite")), Fields()

    def run(*states):
        return torchcde.cdeint(control, fields, states, control.interval, adjoint=False, method="rk4")

    return run, (torch.randn(2, 4), torch.randn(2, 4))


CALLS: dict[str, Callable[[], Any]] = {
    **{f"{name}_complete": coefficients(name, SERIES) for name in COEFFICIENTS},
    **{f"{name}_holes": coefficients(name, HOLES) for name in COEFFICIENTS},
    **{f"{name}_empty": coefficients(name, EMPTY) for name in ("linear", "natural")},
    **{f"{name}_times": coefficients(name, SERIES, TIMES.square()) for name in COEFFICIENTS},
    **{f"{name}_short": coefficients(name, SERIES[:, :2]) for name in COEFFICIENTS},
    "rectilinear": rectilinear(SERIES),
    "rectilinear_holes": rectilinear(HOLES),
    **{
        f"{name}_{what}": at(name, what, torch.tensor(2.5))
        for name in COEFFICIENTS
        for what in ("evaluate", "derivative")
    },
    "linear_many": at("linear", "evaluate", torch.tensor([0.5, 2.0, 6.0])),
    "natural_many": at("natural", "derivative", torch.tensor([0.5, 2.0, 6.0])),
    "hermite_irregular": at("hermite", "evaluate", torch.tensor(0.5), TIMES.square()),
    **{f"{name}_bounds": bounds(name) for name in ("linear", "natural")},
    "model": model(method="rk4"),
    "model_adaptive": model(),
    "model_linear": model("linear", method="rk4", options={"step_size": 1.0}),
    "model_product": model(method="rk4", with_product=True),
    "model_direct": model(adjoint=False, method="rk4"),
    "model_sde": model(backend="torchsde", adjoint=False, dt=1.0),
    "trained": trained(method="rk4"),
    "trained_direct": trained(adjoint=False, method="rk4"),
    "solved": solved(method="rk4"),
    "solved_adaptive": solved(adjoint=False),
    "solved_sde": solved(backend="torchsde", adjoint=False, dt=1.0),
    "solved_pair": lambda: solved_pair(),
}
