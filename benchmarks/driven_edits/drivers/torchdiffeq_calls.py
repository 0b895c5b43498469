"""Calls of torchdiffeq that reach what ``fix --unsafe`` edits."""

# mypy: ignore-errors

import torch
import torchdiffeq
from common import J, K
from torch import nn
from torchdiffeq._impl import misc
from torchdiffeq._impl.rk_common import _ButcherTableau, _runge_kutta_step

ADAPTIVE = "dopri8 dopri5 bosh3 fehlberg2 adaptive_heun".split()
FIXED = "euler midpoint heun2 heun3 rk4 explicit_adams implicit_adams".split()


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, t, y):
        return torch.tanh(self.layer(y)) - t


class Watched(Field):
    """Has callbacks of its own, some of which not every solver knows."""

    def callback_step(self, t, y, dt):
        self.seen = getattr(self, "seen", 0) + 1

    def callback_reject_step(self, t, y, dt):
        self.seen = getattr(self, "seen", 0) - 1


def state():
    return torch.rand(2, 3)


def times():
    return torch.linspace(0, 0.2, 3)


def solve(y, t, field=None, **options):
    return torchdiffeq.odeint(field or Field().to(y), y, t, **options)


def adjoint(y, t, field, **options):
    return torchdiffeq.odeint_adjoint(field, y, t, **options)


def frozen(y, t):
    field = Field().to(y)
    field.layer.bias.requires_grad_(False)
    options = {"norm": misc._rms_norm}
    return torchdiffeq.odeint_adjoint(field, y, t, adjoint_options=options)


def decay(t, y):
    return -y


def stiff(t, y):
    return -1e4 * y**3


def event(y, t, threshold, **options):
    return torchdiffeq.odeint_event(decay, y, t, event_fn=lambda t, y: y.max() - threshold, **options)


for method in ADAPTIVE + FIXED:
    J(method, lambda method=method: (solve, state(), times(), K(method=method)))
    J(f"{method} backwards", lambda method=method: (solve, state(), times().flip(0), K(method=method)))
    J(f"{method} adjoint", lambda method=method: (adjoint, state(), times(), Field(), K(method=method)), True)
    J(f"{method} with callbacks", lambda method=method: (solve, state(), times(), Watched(), K(method=method)))
for method in ADAPTIVE:
    for name in ("step_t", "jump_t"):
        J(
            f"{method} {name}",
            lambda method=method, name=name: (
                lambda y, t, at: solve(y, t, method=method, options={name: at}),
                state(),
                times(),
                torch.tensor([0.05, 0.15]),
            ),
        )
    J(
        f"{method} both",
        lambda method=method: (
            lambda y, t, at, jump: solve(y, t, method=method, options={"step_t": at, "jump_t": jump}),
            state(),
            times(),
            torch.tensor([0.05, 0.15]),
            torch.tensor([0.05]),
        ),
    )
    J(
        f"{method} first_step",
        lambda method=method: (
            lambda y, t, step: solve(y, t, method=method, options={"first_step": step}),
            state(),
            times(),
            torch.tensor(0.1),
        ),
    )
    J(
        f"{method} few steps",
        lambda method=method: (
            solve,
            state(),
            times(),
            K(method=method, options={"first_step": 0.001, "max_num_steps": 2}),
        ),
    )
    J(
        f"{method} max_step",
        lambda method=method: (solve, state(), times(), K(method=method, options={"max_step": 0.05, "min_step": 0.01})),
    )
    J(
        f"{method} tuple",
        lambda method=method: (
            lambda x, y, t: torchdiffeq.odeint(lambda t, y: (y[1], -y[0]), (x, y), t, method=method),
            torch.rand(3),
            torch.rand(3),
            times(),
        ),
    )
    J(f"{method} stiff", lambda method=method: (solve, state(), times(), stiff, K(method=method)))
    J(f"{method} event", lambda method=method: (event, torch.ones(2), torch.tensor(0.0), 0.5, K(method=method)))
    J(f"{method} event at once", lambda method=method: (event, torch.ones(2), torch.tensor(0.0), 1.0, K(method=method)))
for method in FIXED:
    J(
        f"{method} step_size",
        lambda method=method: (solve, state(), times(), K(method=method, options={"step_size": 0.03})),
    )
    J(
        f"{method} cubic",
        lambda method=method: (
            solve,
            state(),
            times(),
            K(method=method, options={"step_size": 0.03, "interp": "cubic"}),
        ),
    )
    J(
        f"{method} step of the times",
        lambda method=method: (
            lambda y, t, step: solve(y, t, method=method, options={"step_size": step}),
            state(),
            times(),
            torch.tensor(0.1),
        ),
    )
    J(
        f"{method} grid",
        lambda method=method: (
            lambda y, t, grid: solve(y, t, method=method, options={"grid_constructor": lambda f, y, t: grid}),
            state(),
            times(),
            torch.linspace(0, 0.2, 9),
        ),
    )
    J(
        f"{method} other grid",
        lambda method=method: (
            lambda y, t, grid: solve(y, t, method=method, options={"grid_constructor": lambda f, y, t: grid}),
            state(),
            times(),
            torch.linspace(0.1, 0.2, 9),
        ),
    )
    J(
        f"{method} event",
        lambda method=method: (
            event,
            torch.ones(2),
            torch.tensor(0.0),
            0.9,
            K(method=method, options={"step_size": 0.05}),
        ),
    )
J("adams of few orders", lambda: (solve, state(), times(), K(method="implicit_adams", options={"max_order": 3})))
J(
    "adams that does not converge",
    lambda: (solve, state() * 9, torch.linspace(0, 2, 9), stiff, K(method="implicit_adams", options={"max_iters": 1})),
)
J("unexpected option", lambda: (solve, state(), times(), K(method="rk4", options={"no_such": 1})))
J("unsorted times", lambda: (solve, state(), torch.tensor([0.0, 0.2, 0.1])))
J("equal times", lambda: (solve, state(), torch.tensor([0.0, 0.1, 0.1])))
J("another device", lambda: (lambda y, t: torchdiffeq.odeint(decay, y.to("meta"), t, method="euler"), state(), times()))
J("frozen parameter", lambda: (frozen, state(), times()), True)
J("np_nextafter", lambda: (misc.np_nextafter, torch.rand(3), torch.rand(3)))
J(
    "_linear_interp",
    lambda: (
        lambda a, b, x, y, at: torchdiffeq._impl.fixed_grid.Euler(decay, x, atol=0.0)._linear_interp(a, b, x, y, at),
        torch.tensor(0.0),
        torch.tensor(1.0),
        state(),
        state(),
        torch.tensor(0.5),
    ),
)
for sums, weights in (([0.0, 0.5], [0.5, 0.5]), ([0.5, 0.0], [0.25, 0.25])):
    J(
        "_runge_kutta_step",
        lambda sums=sums, weights=weights: (
            lambda y, t, dt, alpha, beta, c_sol, c_error: _runge_kutta_step(
                lambda t, y, perturb: -y,
                y,
                -y,
                t,
                dt,
                t + dt,
                _ButcherTableau(alpha, [beta[:1], beta], c_sol, c_error),
            ),
            state(),
            torch.tensor(0.0),
            torch.tensor(0.1),
            torch.tensor([0.5, 1.0]),
            torch.tensor(weights),
            torch.tensor([*sums, 0.0]),
            torch.tensor([0.1, 0.1, 0.1]),
        ),
    )
