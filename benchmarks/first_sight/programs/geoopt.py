"""Manifolds and optimizers on them."""

from collections.abc import Callable
from typing import Any

import geoopt
import torch

DISTRIBUTION = FOLDER = "geoopt"

BALL = geoopt.PoincareBall()
X, Y, V = (torch.rand(4, 5, generator=torch.Generator().manual_seed(seed)) * 0.2 for seed in range(3))
SPD = torch.eye(4) + 0.1


def method(manifold, name, *arguments):
    return lambda: (getattr(manifold, name), arguments)


def step(make):
    def build():
        point = geoopt.ManifoldParameter(X.clone(), manifold=BALL)
        optimizer = make([point])

        def train():
            optimizer.zero_grad()
            loss = BALL.dist(point, Y).sum()
            loss.backward()
            optimizer.step()
            return loss

        return train, ()

    return build


CALLS: dict[str, Callable[..., Any]] = {
    f"ball {name}": method(BALL, name, *arguments)
    for name, arguments in {
        "dist": (X, Y),
        "dist2": (X, Y),
        "expmap": (X, V),
        "logmap": (X, Y),
        "expmap0": (V,),
        "logmap0": (X,),
        "mobius_add": (X, Y),
        "mobius_sub": (X, Y),
        "mobius_scalar_mul": (torch.tensor(0.5), X),
        "projx": (X,),
        "transp": (X, Y, V),
        "transp0": (X, V),
        "inner": (X, V),
        "norm": (X, V),
        "egrad2rgrad": (X, V),
        "dist0": (X,),
        "gyration": (X, Y, V),
        "geodesic": (torch.tensor(0.3), X, Y),
        "retr": (X, V),
        "mobius_matvec": (torch.eye(5), X),
        "mobius_pointwise_mul": (V, X),
        "dist2plane": (X, Y, V),
        "random_normal": (4, 5),
        "weighted_midpoint": (X,),
        "check_point_on_manifold": (X,),
        "wrapped_normal": (4, 5),
        "check_vector_on_tangent": (X, V),
        "unpack_tensor": (X,),
        "component_inner": (X, V),
        "origin": (4, 5),
    }.items()
}
SPHERE_X = torch.nn.functional.normalize(X + 0.1, dim=-1)
for label, manifold, point in (
    ("sphere", geoopt.Sphere(), SPHERE_X),
    ("stiefel", geoopt.Stiefel(), torch.linalg.qr(torch.rand(6, 3) + torch.eye(6, 3))[0]),
    ("canonical stiefel", geoopt.CanonicalStiefel(), torch.linalg.qr(torch.rand(6, 3) + torch.eye(6, 3))[0]),
    ("lorentz", geoopt.Lorentz(), geoopt.Lorentz().projx(X)),
    ("spd", geoopt.SymmetricPositiveDefinite(), SPD),
    ("birkhoff", geoopt.BirkhoffPolytope(), torch.full((4, 4), 0.25)),
    ("stereographic", geoopt.Stereographic(-0.5), X),
    ("sphere projection", geoopt.SphereProjection(), X),
    ("euclidean", geoopt.Euclidean(1), X),
    ("scaled", geoopt.Scaled(geoopt.Sphere(), 2.0), SPHERE_X),
    ("product", geoopt.ProductManifold((BALL, 3), (geoopt.Sphere(), 2)), torch.cat([X[:, :3], SPHERE_X[:, :2]], 1)),
    ("siegel", geoopt.manifolds.UpperHalf(), torch.complex(torch.eye(3), torch.eye(3))[None]),
):
    tangent = torch.rand_like(point) * 0.1
    for name, arguments in {
        "projx": (point,),
        "proju": (point, tangent),
        "egrad2rgrad": (point, tangent),
        "retr": (point, tangent),
        "expmap": (point, tangent),
        "logmap": (point, point * 1.01),
        "dist": (point, point * 1.01),
        "inner": (point, tangent),
        "norm": (point, tangent),
        "transp": (point, point, tangent),
        "random": tuple(point.shape),
        "check_point_on_manifold": (point,),
        "check_vector_on_tangent": (point, tangent),
        "retr_transp": (point, tangent, tangent),
        "expmap_transp": (point, tangent, tangent),
        "transp_follow_retr": (point, tangent, tangent),
        "origin": tuple(point.shape),
        "check_point": (point,),
        "check_vector": (point, tangent),
        "assert_check_point": (point,),
    }.items():
        if hasattr(manifold, name):
            CALLS[f"{label} {name}"] = method(manifold, name, *arguments)
for label, make in {
    "radam": lambda points: geoopt.optim.RiemannianAdam(points, lr=0.1),
    "radam amsgrad": lambda points: geoopt.optim.RiemannianAdam(points, lr=0.1, amsgrad=True, stabilize=1),
    "rsgd": lambda points: geoopt.optim.RiemannianSGD(points, lr=0.1, momentum=0.9),
    "line search": lambda points: geoopt.optim.RiemannianLineSearch(points),
}.items():
    CALLS[label] = step(make)
