"""Minimization of functions: quasi-Newton, conjugate gradient, trust regions, least squares, bounds."""

from collections.abc import Callable
from typing import Any

import torch
import torchmin
from torchmin import line_search
from torchmin.benchmarks import rosen, rosen_der, rosen_hess, rosen_hess_prod
from torchmin.function import ScalarFunction, VectorFunction
from torchmin.lstsq import cg, common, linear_operator, lsmr
from torchmin.trustregion import exact

DISTRIBUTION = "pytorch-minimize"
FOLDER = "torchmin"

START = torch.tensor([1.3, 0.7, 0.8, 1.9, 1.2])
MATRIX = torch.randn(6, 4)
RIGHT = torch.randn(6)
SQUARE = torch.randn(4, 4)
POSITIVE = SQUARE @ SQUARE.T + torch.eye(4)


def bowl(x):
    return (x - 0.5).square().sum()


def residuals(x):
    return torch.stack([10 * (x[1] - x[0].square()), 1 - x[0]])


def found(method, function=rosen, **options):
    return lambda: (lambda x: torchmin.minimize(function, x, method, max_iter=2, **options).x, (START,))


def bounded(function=rosen, **options):
    return lambda: (lambda x: torchmin.minimize_constr(function, x, max_iter=2, **options).x, (START,))


def squares(**options):
    start = torch.tensor([0.2, 0.4])
    return lambda: (lambda x: torchmin.least_squares(residuals, x, max_nfev=2, **options).x, (start,))


def of(function, *given, **options):
    return lambda: (lambda *given: function(*given, **options), given)


def stepped(method, **options):
    def build():
        layer = torch.nn.Linear(4, 1)
        optimizer = torchmin.Minimizer(layer.parameters(), method=method, max_iter=2, **options)

        def closure():
            optimizer.zero_grad()
            return (layer(MATRIX)[:, 0] - RIGHT).square().sum()

        return (lambda: optimizer.step(closure)), ()

    return build


def searched(function, **options):
    def build():
        scalar = ScalarFunction(rosen, START.shape)
        first = scalar.closure(START)
        direction = -first.grad

        def run(x, t):
            if function is line_search.strong_wolfe:
                return function(scalar.dir_evaluate, x, t, direction, first.f, first.grad)
            return function(scalar.fun, x, t, direction, first.f, first.grad, **options)

        return run, (START, 1e-3)

    return build


CALLS: dict[str, Callable[..., Any]] = {}
METHODS = ("bfgs", "l-bfgs", "cg", "newton-cg", "newton-exact", "dogleg", "trust-ncg", "trust-exact", "trust-krylov")
for method in METHODS:
    CALLS[method] = found(method)
    CALLS[f"{method} all"] = found(method, disp=2, return_all=True)
    CALLS[f"{method} tolerance"] = found(method, bowl, tol=1.0)
    CALLS[f"{method} step"] = stepped(method)
for method in ("bfgs", "l-bfgs", "cg", "newton-cg", "newton-exact"):
    CALLS[f"{method} plain"] = found(method, options={"line_search": "none", "lr": 1e-3})
CALLS |= {
    "bfgs direct": found("bfgs", options={"inverse": False}),
    "l-bfgs short": found("l-bfgs", options={"history_size": 2}),
    "newton lu": found("newton-exact", options={"handle_npd": "lu"}),
    "newton cauchy": found("newton-exact", options={"handle_npd": "cauchy"}),
    "newton eig": found("newton-exact", options={"handle_npd": "eig"}),
    "newton-cg once": found("newton-cg", options={"twice_diffable": False}),
    "newton-cg flat": found("newton-cg", options={"cg_max_iter": 2}),
    "frank-wolfe tracenorm": of(
        lambda x: torchmin.minimize_constr(
            lambda y: (y - SQUARE).square().sum(),
            x,
            method="frank-wolfe",
            max_iter=2,
            options={"constr_type": "tracenorm", "t": 5.0},
        ),
        torch.eye(4),
    ),
    "frank-wolfe birkhoff": of(
        lambda x: torchmin.minimize_constr(
            lambda y: (y - SQUARE).square().sum(),
            x,
            method="frank-wolfe",
            max_iter=2,
            options={"constr_type": "birkhoff"},
        ),
        torch.eye(4),
    ),
    "l-bfgs-b": bounded(method="l-bfgs-b", bounds={"lb": 0.0, "ub": 1.5}),
    "l-bfgs-b bowl": bounded(bowl, method="l-bfgs-b", bounds={"lb": 0.0, "ub": 0.3}),
    "trust-constr": bounded(method="trust-constr", bounds={"lb": 0.0, "ub": 1.5}),
    "trust-constr constraint": bounded(method="trust-constr", constr={"fun": lambda x: x.square().sum(), "ub": 2.0}),
    "squares": squares(),
    "squares exact": squares(tr_solver="exact"),
    "squares scaled": squares(x_scale="jac", verbose=2),
    "squares bounds": squares(bounds=(0.0, 0.9)),
    "squares cgls": squares(tr_solver="cgls"),
    "rosen": of(rosen, START),
    "rosen der": of(rosen_der, START),
    "rosen hess": of(rosen_hess, START),
    "rosen prod": of(rosen_hess_prod, START, torch.ones(5)),
    "scalar": lambda: (lambda x: ScalarFunction(rosen, x.shape).closure(x), (START,)),
    "scalar hess": lambda: (lambda x: ScalarFunction(rosen, x.shape, hess=True).closure(x), (START,)),
    "scalar hessp": lambda: (lambda x: ScalarFunction(rosen, x.shape, hessp=True).closure(x).hessp.mv(x), (START,)),
    "vector": lambda: (lambda x: VectorFunction(residuals, x.shape, jac=True).closure(x), (START,)),
    "vector jacp": lambda: (lambda x: VectorFunction(residuals, x.shape, jacp=True).closure(x), (START,)),
    "wolfe": searched(line_search.strong_wolfe),
    "backtracking": searched(line_search.backtracking),
    "cg solve": of(cg.cg, POSITIVE, torch.ones(4)),
    "cgls": of(cg.cgls, MATRIX, RIGHT),
    "lsmr": of(lsmr.lsmr, MATRIX, RIGHT),
    "lsmr damped": of(lsmr.lsmr, MATRIX, RIGHT, damp=0.1, maxiter=3),
    "dense": of(lambda x: linear_operator.jacobian_dense(residuals, x), START),
    "linop": lambda: (lambda x: linear_operator.jacobian_linop(residuals, x).matvec(torch.ones(5)), (START,)),
    "linop adjoint": lambda: (lambda x: linear_operator.jacobian_linop(residuals, x).rmatvec(torch.ones(2)), (START,)),
    "in bounds": of(common.in_bounds, START, torch.zeros(5), torch.ones(5)),
    "active": of(common.find_active_constraints, START, torch.zeros(5), torch.ones(5)),
    "feasible": of(common.make_strictly_feasible, START, torch.zeros(5), torch.ones(5)),
    "feasible exact": of(common.make_strictly_feasible, START, torch.zeros(5), torch.ones(5), rstep=0),
    "quadratic": of(common.evaluate_quadratic, MATRIX, torch.ones(4), torch.rand(4)),
    "quadratic 1d": of(common.build_quadratic_1d, MATRIX, torch.ones(4), torch.rand(4)),
    "quadratic least": of(common.minimize_quadratic_1d, torch.tensor(2.0), torch.tensor(-1.0), 0.0, 1.0),
    "region 2d": of(common.solve_trust_region_2d, POSITIVE[:2, :2], torch.ones(2), 0.1),
    "radius": of(common.update_tr_radius, 1.0, torch.tensor(0.5), torch.tensor(0.4), torch.tensor(1.0), True),
    "terminated": of(
        common.check_termination,
        torch.tensor(0.1),
        torch.tensor(1.0),
        torch.tensor(0.1),
        torch.tensor(1.0),
        0.5,
        1e-3,
        1e-3,
    ),
    "triangular": of(exact.solve_triangular, POSITIVE.triu(), torch.ones(4)),
    "cholesky": of(exact.solve_cholesky, torch.linalg.cholesky(POSITIVE), torch.ones(4)),
    "smallest": of(exact.estimate_smallest_singular_value, POSITIVE.triu()),
    "gershgorin": of(exact.gershgorin_bounds, POSITIVE),
    "submatrix": of(exact.singular_leading_submatrix, POSITIVE, torch.linalg.cholesky(POSITIVE).T, torch.tensor(3)),
}
