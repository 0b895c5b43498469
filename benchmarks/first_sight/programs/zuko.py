"""Normalizing flows."""

from collections.abc import Callable
from typing import Any

import torch
import zuko

DISTRIBUTION = FOLDER = "zuko"

X, C = torch.rand(6, 3), torch.rand(6, 4)


class OfFlow(torch.nn.Module):
    def __init__(self, flow):
        super().__init__()
        self.flow = flow


class Density(OfFlow):
    def forward(self, x, context):
        return self.flow(context).log_prob(x)


class Sample(OfFlow):
    def forward(self, context):
        return self.flow(context).rsample((2,))


class Likelihood(OfFlow):
    def forward(self, context):
        return self.flow(context).rsample_and_log_prob((2,))


CALLS: dict[str, Callable[..., Any]] = {}
for name, options in {
    "MAF": {},
    "NSF": {},
    "NICE": {},
    "NCSF": {},
    "GMM": {"components": 2},
    "CNF": {},
    "SOSPF": {},
    "NAF": {},
    "UNAF": {},
    "BPF": {},
    "GF": {},
    "RealNVP": {},
}.items():
    make = getattr(zuko.flows, name, None)
    if make is not None:
        CALLS[f"{name} density"] = lambda make=make, options=options: (Density(make(3, 4, **options)), (X, C))
        CALLS[f"{name} sample"] = lambda make=make, options=options: (Sample(make(3, 4, **options)), (C,))
        CALLS[f"{name} likelihood"] = lambda make=make, options=options: (Likelihood(make(3, 4, **options)), (C,))
T = zuko.transforms
for name, transform in {
    "identity": T.IdentityTransform(),
    "cos": T.CosTransform(),
    "sin": T.SinTransform(),
    "softclip": T.SoftclipTransform(),
    "signed power": T.SignedPowerTransform(torch.tensor(0.3)),
    "circular shift": T.CircularShiftTransform(),
    "affine": T.MonotonicAffineTransform(torch.tensor(0.1), torch.tensor(0.2)),
    "rqs": T.MonotonicRQSTransform(torch.rand(3, 8), torch.rand(3, 8), torch.rand(3, 7)),
    "monotonic": T.MonotonicTransform(lambda x: x**3 + x),
    "bernstein": T.BernsteinTransform(torch.rand(3, 8)),
    "bounded bernstein": T.BoundedBernsteinTransform(torch.rand(3, 8)),
    "gaussianization": T.GaussianizationTransform(torch.rand(3, 8), torch.rand(3, 8)),
    "sos": T.SOSPolynomialTransform(torch.rand(3, 2, 4), torch.rand(3)),
    "unconstrained": T.UnconstrainedMonotonicTransform(lambda x: x**2 + 1, torch.zeros(())),
    "permutation": T.PermutationTransform(torch.tensor([2, 0, 1])),
    "rotation": T.RotationTransform(torch.rand(3, 3)),
    "lu": T.LULinearTransform(torch.eye(3) + 0.1),
    "ffjord": T.FreeFormJacobianTransform(lambda t, x: -x, torch.tensor(0.0), torch.tensor(1.0)),
}.items():
    CALLS[f"{name} call"] = lambda transform=transform: (lambda x: transform(x), (X,))
    CALLS[f"{name} inverse"] = lambda transform=transform: (lambda x: transform.inv(x), (X,))
    CALLS[f"{name} ladj"] = lambda transform=transform: (lambda x: transform.call_and_ladj(x), (X,))
D = zuko.distributions
for name, make in {
    "diag normal": lambda: D.DiagNormal(torch.zeros(3), torch.ones(3)),
    "box": lambda: D.BoxUniform(-torch.ones(3), torch.ones(3) * 2),
    "mixture": lambda: D.Mixture(D.DiagNormal(torch.rand(2, 3), torch.ones(2, 3)), torch.rand(2)),
    "generalized": lambda: D.GeneralizedNormal(torch.tensor(2.0)),
    "truncated": lambda: D.Truncated(torch.distributions.Normal(torch.zeros(()), torch.ones(())), -2.0, 2.0),
    "sort": lambda: D.Sort(D.DiagNormal(torch.zeros(3), torch.ones(3)), 2),
    "top k": lambda: D.TopK(D.DiagNormal(torch.zeros(3), torch.ones(3)), 2, 2),
    "minimum": lambda: D.Minimum(D.DiagNormal(torch.zeros(3), torch.ones(3)), 2),
}.items():
    CALLS[f"{name} log prob"] = lambda make=make: (lambda x: make().log_prob(x), (X,))
    CALLS[f"{name} sample"] = lambda make=make: (lambda x: make().sample((2,)), (X,))
N = zuko.nn
CALLS |= {
    "mlp": lambda: (N.MLP(3, 2, normalize=True), (X,)),
    "masked mlp": lambda: (N.MaskedMLP(torch.ones(2, 3) > 0), (X,)),
    "monotonic mlp": lambda: (N.MonotonicMLP(3, 2), (X,)),
    "bisection": lambda: (lambda y: zuko.utils.bisection(lambda x: x**3 + x, y, -10.0, 10.0), (X,)),
    "odeint": lambda: (lambda x: zuko.utils.odeint(lambda t, x: -x, x, 0.0, 1.0), (X,)),
    "gauss legendre": lambda: (lambda x: zuko.utils.gauss_legendre(lambda y: y**2, x, x + 1), (X,)),
    "broadcast": lambda: (lambda x, y: zuko.utils.broadcast(x, y, ignore=1), (X, C)),
    "unpack": lambda: (lambda x: zuko.utils.unpack(x, [(1,), (2,)]), (X,)),
}
