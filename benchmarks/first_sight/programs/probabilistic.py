"""Probabilistic programming: distributions, transforms, operations, inference."""

from collections.abc import Callable
from typing import Any

import pyro
import pyro.distributions as dist
import torch
from pyro import ops
from pyro.distributions import transforms
from pyro.infer import SVI, Trace_ELBO, TraceEnum_ELBO, TraceMeanField_ELBO, autoguide
from pyro.ops import stats, tensor_utils
from pyro.optim import Adam

DISTRIBUTION, FOLDER = "pyro-ppl", "pyro"

R = torch.rand(4)
P = torch.rand(4) + 0.5
S = torch.rand(4, 3)
COV = torch.eye(3) + 0.1
CALLS: dict[str, Callable[..., Any]] = {}


def density(make, *given):
    """The log density of a sample, drawn and scored inside."""

    def build():
        def score(*arguments):
            made = make(*arguments)
            value = made.sample()
            return made.log_prob(value)

        return score, given

    return build


def score(make, value, *given):
    def build():
        return (lambda v, *arguments: make(*arguments).log_prob(v)), (value, *given)

    return build


def normal(batch, event):
    return dist.MultivariateNormal(torch.zeros(*batch, event), torch.eye(event).expand(*batch, event, event))


for name, (make, given) in {
    "affine beta": (dist.AffineBeta, (P, P, R, P)),
    "asymmetric laplace": (dist.AsymmetricLaplace, (R, P, P)),
    "soft asymmetric laplace": (dist.SoftAsymmetricLaplace, (R, P, P)),
    "beta binomial": (lambda a, b: dist.BetaBinomial(a, b, 5), (P, P)),
    "dirichlet multinomial": (lambda c: dist.DirichletMultinomial(c, 5), (P,)),
    "gamma poisson": (dist.GammaPoisson, (P, P)),
    "folded": (lambda r, p: dist.FoldedDistribution(dist.Normal(r, p)), (R, P)),
    "inverse gamma": (dist.InverseGamma, (P, P)),
    "logistic": (dist.Logistic, (R, P)),
    "skew logistic": (dist.SkewLogistic, (R, P, P)),
    "soft laplace": (dist.SoftLaplace, (R, P)),
    "log normal": (dist.LogNormal, (R, P)),
    "multivariate student": (lambda d: dist.MultivariateStudentT(d, torch.zeros(3), COV), (torch.tensor(3.0),)),
    "projected normal": (dist.ProjectedNormal, (S,)),
    "zero inflated poisson": (lambda p: dist.ZeroInflatedPoisson(p, gate=torch.tensor(0.3)), (P,)),
    "zero inflated nb": (
        lambda p, r: dist.ZeroInflatedNegativeBinomial(p, logits=r, gate=torch.tensor(0.3)),
        (P, R),
    ),
    "zero inflated": (lambda p: dist.ZeroInflatedDistribution(dist.Poisson(p), gate=torch.tensor(0.3)), (P,)),
    "delta": (dist.Delta, (R,)),
    "empirical": (dist.Empirical, (R, P)),
    "lkj": (lambda c: dist.LKJ(3, c), (torch.tensor(1.5),)),
    "one hot": (dist.OneHotCategorical, (torch.rand(3, 4),)),
    "ordered logistic": (lambda p: dist.OrderedLogistic(p, torch.tensor([-1.0, 0.0, 1.0])), (R,)),
    "relaxed bernoulli st": (
        lambda p: dist.RelaxedBernoulliStraightThrough(torch.tensor(0.5), probs=p),
        (torch.rand(4),),
    ),
    "relaxed categorical st": (
        lambda p: dist.RelaxedOneHotCategoricalStraightThrough(torch.tensor(0.5), probs=p),
        (torch.rand(3, 4),),
    ),
    "masked": (lambda r, p: dist.Normal(r, p).mask(torch.tensor([True, False, True, True])), (R, P)),
    "masked mixture": (
        lambda r, p: dist.MaskedMixture(p > 0.7, dist.Normal(r, p), dist.Laplace(r, p)),
        (R, P),
    ),
    "mixture": (
        lambda s: dist.MixtureOfDiagNormals(s, s.exp(), torch.zeros(4)),
        (S,),
    ),
    "mixture shared": (lambda s: dist.MixtureOfDiagNormalsSharedCovariance(s, s[0].exp(), torch.zeros(4)), (S,)),
    "scale mixture": (lambda s: dist.GaussianScaleMixture(s[0].exp(), torch.zeros(2), torch.ones(2)), (S,)),
    "avf": (lambda c: dist.AVFMultivariateNormal(torch.zeros(3), c, torch.zeros(2, 3, 4)[..., :3]), (COV,)),
    "omt": (lambda c: dist.OMTMultivariateNormal(torch.zeros(3), c), (COV,)),
    "pareto": (dist.GeneralizedPareto, (R, P, P)),
    "von mises 3d": (dist.VonMises3D, (torch.rand(3),)),
    "polya gamma": (dist.TruncatedPolyaGamma, (R,)),
    "expanded": (lambda r, p: dist.Normal(r, p).expand([2, 4]).to_event(1), (R, P)),
    "extended binomial": (lambda p: dist.ExtendedBinomial(torch.tensor(4.0), probs=p), (torch.rand(4),)),
    "log normal nb": (lambda p, r: dist.LogNormalNegativeBinomial(p, r, p), (P, R)),
    "sine von mises": (
        lambda r, p: dist.SineBivariateVonMises(r, r, p, p, r * 0.1),
        (R[0], P[0]),
    ),
    "sine skewed": (
        lambda r, p: dist.SineSkewed(dist.Independent(dist.VonMises(r, p), 1), torch.full((4,), 0.1)),
        (R, P),
    ),
    "unit": (dist.Unit, (R,)),
    "nan normal": (dist.NanMaskedNormal, (R, P)),
    "nan mvn": (lambda c: dist.NanMaskedMultivariateNormal(torch.zeros(3), c), (COV,)),
}.items():
    CALLS[f"dist {name}"] = density(make, *given)
CALLS["stable sample"] = lambda: (lambda a, b: dist.Stable(a, b).rsample(), (torch.tensor(1.5), torch.tensor(0.1)))
CALLS["stable density"] = score(
    dist.StableWithLogProb, torch.tensor(0.4), torch.tensor(1.5), torch.tensor(0.1), torch.tensor(1.0)
)
CALLS["coalescent"] = score(
    lambda t: dist.CoalescentTimes(t, torch.tensor(1.0)), torch.tensor([-1.0, -0.5]), torch.tensor([0.0, 0.1, 0.2])
)
CALLS["discrete hmm"] = score(
    lambda i, t, r: dist.DiscreteHMM(i, t, dist.Normal(r, 1.0)), torch.rand(5), torch.rand(3), torch.rand(3, 3), R[:3]
)
CALLS["gaussian hmm"] = score(
    lambda m, h: dist.GaussianHMM(normal((), 2), m, normal((), 2), h, normal((), 3)),
    torch.rand(5, 3),
    torch.eye(2),
    torch.rand(2, 3),
)
CALLS["gaussian hmm filter"] = lambda: (
    lambda m, h, v: dist.GaussianHMM(normal((), 2), m, normal((), 2), h, normal((), 3), duration=5).filter(v).loc,
    (torch.eye(2), torch.rand(2, 3), torch.rand(5, 3)),
)
CALLS["linear hmm"] = lambda: (
    lambda m, h: dist.LinearHMM(normal((), 2), m, normal((), 2), h, normal((), 3), duration=5).rsample(),
    (torch.eye(2), torch.rand(2, 3)),
)
CALLS["gamma gaussian hmm"] = score(
    lambda m, h: dist.GammaGaussianHMM(
        dist.Gamma(torch.tensor(2.0), torch.tensor(2.0)), normal((), 2), m, normal((), 2), h, normal((), 3), duration=5
    ),
    torch.rand(5, 3),
    torch.eye(2),
    torch.rand(2, 3),
)
CALLS["matching"] = score(lambda r: dist.OneOneMatching(r, bp_iters=3), torch.tensor([1, 0, 2]), torch.rand(3, 3))
CALLS["two matching"] = score(
    lambda r: dist.OneTwoMatching(r, bp_iters=3), torch.tensor([0, 0, 1, 1]), torch.rand(4, 2)
)
CALLS["spanning tree"] = score(dist.SpanningTree, torch.tensor([[0, 1], [1, 2]]), torch.rand(3))
CALLS["grouped normal"] = score(
    lambda r, p: dist.GroupedNormalNormal(r, p, torch.ones(6), torch.tensor([0, 1, 2, 3, 0, 1])), torch.rand(6), R, P
)
for name, (make, value) in {
    "affine autoregressive": (lambda: transforms.affine_autoregressive(4), S.new_ones(3, 4)),
    "affine coupling": (lambda: transforms.affine_coupling(4), S.new_ones(3, 4)),
    "batchnorm": (lambda: transforms.batchnorm(4), torch.rand(3, 4)),
    "block autoregressive": (lambda: transforms.block_autoregressive(4), torch.rand(3, 4)),
    "channel permute": (lambda: transforms.generalized_channel_permute(4), torch.rand(2, 4, 3, 3)),
    "householder": (lambda: transforms.householder(4), torch.rand(3, 4)),
    "matrix exponential": (lambda: transforms.matrix_exponential(4), torch.rand(3, 4)),
    "neural autoregressive": (lambda: transforms.neural_autoregressive(4), torch.rand(3, 4)),
    "permute": (lambda: transforms.permute(4), torch.rand(3, 4)),
    "planar": (lambda: transforms.planar(4), torch.rand(3, 4)),
    "polynomial": (lambda: transforms.polynomial(4), torch.rand(3, 4)),
    "radial": (lambda: transforms.radial(4), torch.rand(3, 4)),
    "spline": (lambda: transforms.spline(4), torch.rand(3, 4)),
    "spline autoregressive": (lambda: transforms.spline_autoregressive(4), torch.rand(3, 4)),
    "spline coupling": (lambda: transforms.spline_coupling(4), torch.rand(3, 4)),
    "sylvester": (lambda: transforms.sylvester(4), torch.rand(3, 4)),
    "elu": (lambda: transforms.elu(), torch.rand(3, 4)),
    "leaky relu": (lambda: transforms.leaky_relu(), torch.rand(3, 4)),
    "dct": (lambda: transforms.DiscreteCosineTransform(), torch.rand(3, 4)),
    "haar": (lambda: transforms.HaarTransform(), torch.rand(3, 4)),
    "ordered": (lambda: transforms.OrderedTransform(), torch.rand(3, 4)),
    "normalize": (lambda: transforms.Normalize(), torch.rand(3, 4)),
    "simplex": (
        lambda: transforms.SimplexToOrderedTransform(torch.tensor(0.0)),
        torch.softmax(torch.rand(3, 4), -1),
    ),
    "corr cholesky": (lambda: transforms.CorrLCholeskyTransform(), torch.rand(3, 3)),
    "lower cholesky affine": (lambda: transforms.LowerCholeskyAffine(torch.zeros(3), COV.tril()), torch.rand(2, 3)),
}.items():

    def flow(make=make, value=value):
        transform = make()

        def run(x):
            y = transform(x)
            return y, transform.log_abs_det_jacobian(x, y)

        return run, (value,)

    def inverse(make=make, value=value):
        transform = make()
        return (lambda y: transform.inv(y)), (transform(value).detach(),)

    CALLS[f"transform {name}"] = flow
    CALLS[f"inverse {name}"] = inverse
CHAINS = torch.rand(2, 10, 3)
for name, (function, given) in {
    "gelman rubin": (stats.gelman_rubin, (CHAINS,)),
    "split gelman rubin": (stats.split_gelman_rubin, (CHAINS,)),
    "autocorrelation": (stats.autocorrelation, (R,)),
    "autocovariance": (stats.autocovariance, (R,)),
    "effective sample size": (stats.effective_sample_size, (CHAINS,)),
    "resample": (lambda x: stats.resample(x, 3), (R,)),
    "quantile": (lambda x: stats.quantile(x, 0.3), (R,)),
    "quantiles": (lambda x: stats.quantile(x, [0.3, 0.6]), (R,)),
    "weighed quantile": (lambda x, w: stats.weighed_quantile(x, [0.3, 0.6], w), (R, R)),
    "pi": (lambda x: stats.pi(x, 0.5), (R,)),
    "hpdi": (lambda x: stats.hpdi(x, 0.5), (R,)),
    "waic": (stats.waic, (S,)),
    "fit pareto": (stats.fit_generalized_pareto, (torch.rand(20),)),
    "crps": (stats.crps_empirical, (S, S[0])),
    "energy": (stats.energy_score_empirical, (torch.rand(5, 4, 3), S)),
    "block diag": (tensor_utils.block_diag_embed, (torch.rand(2, 3, 3),)),
    "block diagonal": (lambda x: tensor_utils.block_diagonal(x, 3), (torch.rand(6, 6),)),
    "periodic repeat": (lambda x: tensor_utils.periodic_repeat(x, 9, -1), (R,)),
    "periodic cumsum": (lambda x: tensor_utils.periodic_cumsum(x, 2, -1), (R,)),
    "periodic features": (lambda: tensor_utils.periodic_features(10, 5.0, 2.0), ()),
    "convolve": (tensor_utils.convolve, (R, R)),
    "repeated matmul": (lambda m: tensor_utils.repeated_matmul(m, 5), (COV,)),
    "dct": (tensor_utils.dct, (R,)),
    "idct": (tensor_utils.idct, (R,)),
    "haar": (tensor_utils.haar_transform, (R,)),
    "inverse haar": (tensor_utils.inverse_haar_transform, (R,)),
    "safe cholesky": (tensor_utils.safe_cholesky, (COV,)),
    "precision": (tensor_utils.precision_to_scale_tril, (COV,)),
    "vindex": (lambda x, i: ops.indexing.vindex(x, (i, i)), (S, torch.tensor([0, 1]))),
    "log beta": (ops.special.log_beta, (P, P)),
    "log binomial": (lambda n, k: ops.special.log_binomial(n, k, 0.1), (P + 3, P)),
    "log I1": (lambda x: ops.special.log_I1(2, x), (P,)),
    "safe log": (ops.special.safe_log, (P,)),
    "quad rule": (lambda x: ops.special.get_quad_rule(4, x), (P,)),
    "newton 1d": (
        lambda x: ops.newton.newton_step(((x - 2) ** 2).sum(-1), x),
        (torch.zeros(4, 1, requires_grad=True),),
    ),
    "newton 2d": (
        lambda x: ops.newton.newton_step(((x - 2) ** 2).sum(-1), x),
        (torch.zeros(4, 2, requires_grad=True),),
    ),
    "inv3d": (ops.linalg.inv3d, (COV,)),
    "rinverse": (lambda m: ops.linalg.rinverse(m, sym=True), (COV[:2, :2],)),
    "eig3d": (ops.linalg.eig_3d, (COV,)),
    "ubersum": (lambda x, y: ops.contract.ubersum("ab,bc->ac", x, y, batch_dims=""), (S, S.T.contiguous())),
    "contract": (lambda x, y: ops.contract.einsum("ab,bc->ac", x, y)[0], (S, S.T.contiguous())),
    "gaussian": (
        lambda c: ops.gaussian.mvn_to_gaussian(dist.MultivariateNormal(torch.zeros(3), c)).event_logsumexp(),
        (COV,),
    ),
    "gaussian tensordot": (
        lambda c: (
            ops.gaussian.gaussian_tensordot(
                ops.gaussian.mvn_to_gaussian(dist.MultivariateNormal(torch.zeros(3), c)),
                ops.gaussian.mvn_to_gaussian(dist.MultivariateNormal(torch.zeros(3), c)),
                1,
            ).log_normalizer
        ),
        (COV,),
    ),
    "arrowhead": (
        lambda c: ops.arrowhead.sqrt(ops.arrowhead.SymmArrowhead(c[:2], torch.ones(1))).top,
        (COV,),
    ),
    "velocity verlet": (
        lambda z, r: ops.integrator.velocity_verlet(
            {"z": z}, {"z": r}, lambda p: (p["z"] ** 2).sum(), lambda p: p, 0.1, 2
        )[0]["z"],
        (R, R),
    ),
    "welford": (lambda x: welford(x), (S,)),
    "dual averaging": (lambda: averaging(), ()),
}.items():
    CALLS[f"ops {name}"] = lambda function=function, given=given: (function, given)


def welford(x):
    state = ops.welford.WelfordCovariance(diagonal=False)
    for row in x:
        state.update(row)
    return state.get_covariance()


def averaging():
    state = ops.dual_averaging.DualAveraging()
    for g in (0.1, 0.2):
        state.step(g)
    return state.get_state()


def regression(x, y=None):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(3), 1.0).to_event(1))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 1.0))
    with pyro.plate("data", x.shape[0]):
        return pyro.sample("obs", dist.Normal(x @ weight, scale), obs=y)


def clusters(x):
    weights = pyro.sample("weights", dist.Dirichlet(torch.ones(2)))
    locs = pyro.sample("locs", dist.Normal(torch.zeros(2), 1.0).to_event(1))
    with pyro.plate("data", x.shape[0]):
        assigned = pyro.sample("assigned", dist.Categorical(weights), infer={"enumerate": "parallel"})
        pyro.sample("obs", dist.Normal(locs[assigned], 1.0), obs=x)


def infer(guide, loss):
    def build():
        made = guide(regression)
        svi = SVI(regression, made, Adam({"lr": 0.01}), loss())
        svi.step(S, R)

        def run(x, y):
            return svi.step(x, y)

        return run, (S, R)

    return build


def elbo(guide, loss):
    def build():
        made = guide(regression)
        made(S, R)
        return (lambda x, y: loss().differentiable_loss(regression, made, x, y)), (S, R)

    return build


for name in (
    "AutoNormal",
    "AutoDelta",
    "AutoDiagonalNormal",
    "AutoMultivariateNormal",
    "AutoLowRankMultivariateNormal",
):
    CALLS[f"svi {name}"] = infer(getattr(autoguide, name), Trace_ELBO)
    CALLS[f"elbo {name}"] = elbo(getattr(autoguide, name), Trace_ELBO)
CALLS["elbo mean field"] = elbo(autoguide.AutoNormal, TraceMeanField_ELBO)
CALLS["elbo laplace"] = elbo(autoguide.AutoLaplaceApproximation, Trace_ELBO)
CALLS["elbo iaf"] = elbo(autoguide.AutoIAFNormal, Trace_ELBO)
CALLS["enumerated"] = lambda: (
    lambda x: TraceEnum_ELBO(max_plate_nesting=1).loss(
        clusters, autoguide.AutoDelta(pyro.poutine.block(clusters, hide=["assigned"])), x
    ),
    (R,),
)
CALLS["trace"] = lambda: (
    lambda x, y: pyro.poutine.trace(regression).get_trace(x, y).log_prob_sum(),
    (S, R),
)
CALLS["condition"] = lambda: (
    lambda x, y: pyro.condition(regression, data={"scale": torch.tensor(1.0)})(x, y),
    (S, R),
)
CALLS["predictive"] = lambda: (
    lambda x: pyro.infer.Predictive(regression, num_samples=3)(x)["obs"],
    (S,),
)
