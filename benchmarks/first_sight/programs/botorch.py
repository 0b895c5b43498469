"""Bayesian optimization: models, acquisition functions, test functions, samplers."""

from collections.abc import Callable
from typing import Any

import botorch
import torch
from botorch import acquisition
from botorch.models import MultiTaskGP, SingleTaskGP  # type: ignore[attr-defined]
from botorch.models.transforms import Normalize, Standardize
from botorch.sampling import SobolQMCNormalSampler
from botorch.test_functions import multi_objective, synthetic

DISTRIBUTION = FOLDER = "botorch"

torch.set_default_dtype(torch.double)
X = torch.rand(8, 2)
Y = torch.sin(X.sum(-1, keepdim=True))
POINTS = torch.rand(5, 1, 2)
BATCH = torch.rand(5, 3, 2)


def model():
    return SingleTaskGP(X, Y)


def acquire(make, points=POINTS):
    return lambda: (make(), (points,))


def sampler():
    return SobolQMCNormalSampler(torch.Size([4]), seed=0)


def posterior(make):
    def build():
        fitted = make()

        def mean_and_variance(points):
            found = fitted.posterior(points)
            return found.mean, found.variance

        return mean_and_variance, (torch.rand(4, 2),)

    return build


CALLS: dict[str, Callable[..., Any]] = {
    "posterior": posterior(model),
    "posterior standardized": posterior(lambda: SingleTaskGP(X, Y, outcome_transform=Standardize(1))),
    "posterior normalized": posterior(lambda: SingleTaskGP(X, Y, input_transform=Normalize(2))),
    "posterior two": posterior(lambda: SingleTaskGP(X, torch.cat([Y, -Y], -1))),
    "ei": acquire(lambda: acquisition.ExpectedImprovement(model(), 0.1)),
    "log ei": acquire(lambda: acquisition.LogExpectedImprovement(model(), 0.1)),
    "pi": acquire(lambda: acquisition.ProbabilityOfImprovement(model(), 0.1)),
    "ucb": acquire(lambda: acquisition.UpperConfidenceBound(model(), 0.1)),
    "mean": acquire(lambda: acquisition.PosteriorMean(model())),
    "stddev": acquire(lambda: acquisition.PosteriorStandardDeviation(model())),
    "qei": acquire(lambda: acquisition.qExpectedImprovement(model(), 0.1, sampler()), BATCH),
    "qlogei": acquire(lambda: acquisition.qLogExpectedImprovement(model(), 0.1, sampler()), BATCH),
    "qnei": acquire(lambda: acquisition.qNoisyExpectedImprovement(model(), X, sampler(), cache_root=False), BATCH),
    "qpi": acquire(lambda: acquisition.qProbabilityOfImprovement(model(), 0.1, sampler()), BATCH),
    "qucb": acquire(lambda: acquisition.qUpperConfidenceBound(model(), 0.1, sampler()), BATCH),
    "qsr": acquire(lambda: acquisition.qSimpleRegret(model(), sampler()), BATCH),
    "qkg": acquire(lambda: acquisition.qKnowledgeGradient(model(), 2), torch.rand(2, 3, 2)),
    "qnipv": acquire(lambda: acquisition.qNegIntegratedPosteriorVariance(model(), X[:, None]), BATCH),
    "mes": acquire(lambda: acquisition.qMaxValueEntropy(model(), torch.rand(20, 2)), POINTS),
    "sobol sampler": lambda: (lambda x: sampler()(model().posterior(x)), (torch.rand(4, 2),)),
    "draw sobol": lambda: (
        lambda b: botorch.utils.sampling.draw_sobol_samples(b, n=4, q=2),
        (torch.tensor([[0.0, 0.0], [1.0, 1.0]]),),
    ),
    "draw normal": lambda: (lambda: botorch.utils.sampling.draw_sobol_normal_samples(3, 4), ()),
    "simplex": lambda: (lambda: botorch.utils.sampling.sample_simplex(3, 4), ()),
    "hypersphere": lambda: (lambda: botorch.utils.sampling.sample_hypersphere(3, 4, qmc=False), ()),
    "pareto": lambda: (botorch.utils.multi_objective.pareto.is_non_dominated, (torch.rand(6, 2),)),
    "hypervolume": lambda: (
        lambda y: botorch.utils.multi_objective.hypervolume.Hypervolume(torch.zeros(2)).compute(y),
        (torch.rand(6, 2),),
    ),
    "partitioning": lambda: (
        lambda y: botorch.utils.multi_objective.box_decompositions.NondominatedPartitioning(
            torch.zeros(2), y
        ).get_hypercell_bounds(),
        (torch.rand(6, 2),),
    ),
    "fast partitioning": lambda: (
        lambda y: botorch.utils.multi_objective.box_decompositions.FastNondominatedPartitioning(
            torch.zeros(2), y
        ).compute_hypervolume(),
        (torch.rand(6, 3)[:, :2],),
    ),
    "chebyshev": lambda: (
        lambda y: botorch.utils.multi_objective.scalarization.get_chebyshev_scalarization(torch.ones(2), y)(y),
        (torch.rand(6, 2),),
    ),
    "standardize": lambda: (botorch.utils.transforms.standardize, (Y,)),
    "normalize": lambda: (botorch.utils.transforms.normalize, (X, torch.tensor([[0.0, 0.0], [1.0, 1.0]]))),
    "unnormalize": lambda: (botorch.utils.transforms.unnormalize, (X, torch.tensor([[0.0, 0.0], [1.0, 1.0]]))),
    "soft eval constraint": lambda: (botorch.utils.objective.soft_eval_constraint, (Y,)),
    "apply constraints": lambda: (
        lambda y, s: botorch.utils.objective.apply_constraints(y, [lambda z: z[..., 0]], s, 0.1),
        (torch.rand(4, 3), torch.rand(4, 3, 2)),
    ),
    "log hei": lambda: (botorch.utils.probability.utils.log_ndtr, (X,)),
    "bvn": lambda: (
        botorch.utils.probability.bvn.bvn,
        (torch.rand(4) * 0.5, -torch.ones(4), -torch.ones(4), torch.ones(4), torch.ones(4)),
    ),
    "mvnxpb": lambda: (
        lambda c, b: botorch.utils.probability.mvnxpb.MVNXPB(c, b).solve(),
        (torch.eye(3) + 0.2, torch.tensor([[-1.0, 1.0]] * 3)),
    ),
    "linear constraints": lambda: (
        botorch.utils.sampling.find_interior_point,
        (torch.eye(2).numpy(), X[0].numpy() + 1),
    ),
    "round ste": lambda: (botorch.utils.rounding.RoundSTE.apply, (X,)),
    "approximate round": lambda: (botorch.utils.rounding.approximate_round, (X,)),
    "fat max": lambda: (lambda x: botorch.utils.safe_math.fatmax(x, dim=-1), (X,)),
    "smooth amax": lambda: (lambda x: botorch.utils.safe_math.smooth_amax(x, dim=-1), (X,)),
    "logmeanexp": lambda: (lambda x: botorch.utils.safe_math.logmeanexp(x, dim=-1), (X,)),
    "t batch": lambda: (botorch.utils.transforms.match_batch_shape, (X, POINTS)),
    "initial heuristic": lambda: (
        lambda x, y: botorch.optim.initializers.initialize_q_batch(x, y, n=2),
        (torch.rand(6, 1, 2), torch.rand(6)),
    ),
    "columnwise clamp": lambda: (lambda x: botorch.optim.utils.columnwise_clamp(x, 0.1, 0.9), (X,)),
    "multi task": lambda: (
        lambda x: MultiTaskGP(torch.cat([X, torch.zeros(8, 1)], -1), Y, task_feature=-1).posterior(x).mean,
        (torch.rand(4, 2),),
    ),
}
for name in (
    "Ackley",
    "Branin",
    "Hartmann",
    "Levy",
    "Rastrigin",
    "Rosenbrock",
    "StyblinskiTang",
    "Griewank",
    "Cosine8",
    "Michalewicz",
    "Powell",
    "Shekel",
    "DixonPrice",
    "EggHolder",
    "HolderTable",
    "SixHumpCamel",
    "Beale",
    "Bukin",
    "DropWave",
    "ThreeHumpCamel",
):
    problem = getattr(synthetic, name)()
    CALLS[name] = lambda problem=problem: (problem, (torch.rand(4, problem.dim),))
for name, arguments in {
    "BraninCurrin": (),
    "DTLZ1": (4,),
    "DTLZ2": (4,),
    "DTLZ7": (4,),
    "ZDT1": (4,),
    "ZDT2": (4,),
    "VehicleSafety": (),
    "DH1": (3,),
    "DH2": (3,),
    "GMM": (),
    "Penicillin": (),
    "CarSideImpact": (),
    "C2DTLZ2": (4,),
    "MW7": (3,),
    "OSY": (),
    "SRN": (),
    "WeldedBeam": (),
    "BNH": (),
}.items():
    if hasattr(multi_objective, name):
        CALLS[name] = lambda name=name, arguments=arguments: (lambda problem: (problem, (torch.rand(4, problem.dim),)))(
            getattr(multi_objective, name)(*arguments)
        )
