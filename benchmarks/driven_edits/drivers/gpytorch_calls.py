"""Calls of gpytorch that reach what ``fix --unsafe`` edits. Needs linear-operator and scipy."""

# mypy: ignore-errors

import gpytorch
import torch
from common import J, K
from gpytorch import kernels, likelihoods, settings
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.test.base_test_case import BaseTestCase
from gpytorch.utils import deprecation, grid, interpolation
from linear_operator.operators import DiagLinearOperator


def points(rows=4, columns=2):
    return torch.rand(rows, columns)


def covariance(size=4):
    root = torch.rand(size, size)
    return root @ root.T + torch.eye(size)


def lazy_variance(mean, diagonal):
    return MultivariateNormal(mean, DiagLinearOperator(diagonal)).variance


class Regression(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, kernel=None):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = kernels.ScaleKernel(kernel or kernels.RBFKernel())

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, inducing):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(inducing.size(-2))
        super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, distribution))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = kernels.RBFKernel()

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def regress(x, y, at, policy="ignore"):
    likelihood = likelihoods.GaussianLikelihood().to(x)
    model = Regression(x, y, likelihood).to(x).eval()
    with settings.observation_nan_policy(policy):
        found = likelihood.eval()(model(at))
        return found.mean, found.variance


def fit(x, y, at):
    likelihood = likelihoods.GaussianLikelihood()
    model = Regression(x, y, likelihood)
    return gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(at), y)


def inducing(x, other, diagonal=False):
    kernel = kernels.InducingPointKernel(kernels.RBFKernel(), points(3), likelihoods.GaussianLikelihood())
    found = kernel.to(x).forward(x, other, diag=diagonal)
    return found if diagonal else found.to_dense()


def fixed_noise(noise, function_mean, size):
    likelihood = likelihoods.FixedNoiseGaussianLikelihood(noise)
    return likelihood(MultivariateNormal(function_mean, covariance(size))).variance


def bernoulli(labels, mean, matrix):
    return likelihoods.BernoulliLikelihood().expected_log_prob(labels, MultivariateNormal(mean, matrix))


def elbo(x, y, inducing):
    model, likelihood = Variational(inducing), likelihoods.BernoulliLikelihood()
    return gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(x))(model(x), y)


def softmax_of_samples(samples):
    return likelihoods.SoftmaxLikelihood(num_classes=3, num_features=2)(samples).logits


def softmax_of_batch(mean, matrix):
    likelihood = likelihoods.SoftmaxLikelihood(num_classes=2, mixing_weights=False)
    return likelihood(MultivariateNormal(mean, matrix)).logits


def old_state(inducing):
    model = Variational(inducing)
    state = {name: one for name, one in model.state_dict().items() if "updated_strategy" not in name}
    return model.load_state_dict(state)


def covariance_prior(matrix):
    sd_prior = gpytorch.priors.SmoothedBoxPrior(0.1, 2.0)
    return gpytorch.priors.LKJCovariancePrior(2, 1.0, sd_prior).log_prob(matrix)


def keops(x):
    from gpytorch.kernels.keops import RBFKernel

    return RBFKernel()(x).to_dense()


class Case(BaseTestCase):
    """The assertions for tensors that the tests of gpytorch use."""

    def fail(self, message=None):
        raise AssertionError(message)

    def assertLess(self, one, other, message=None):
        assert one < other, message


def assert_equal(one, other):
    case = Case()
    case.assertAllClose(one, other)


def renamed_argument(value):
    return deprecation._deprecate_kwarg({"old": value}, "old", "new", None)


def renamed_function(x):
    return deprecation._deprecated_function_for("old", torch.sin)(x)


for lower, upper in ((torch.zeros(2), torch.ones(2)), (torch.zeros(2), torch.full((2,), torch.inf))):
    J("Interval", lambda lower=lower, upper=upper: (gpytorch.constraints.Interval, lower, upper))
J(
    "Interval.transform",
    lambda: (lambda a, b, x: gpytorch.constraints.Interval(a, b).transform(x), *torch.eye(2), points()),
)
J(
    "GreaterThan",
    lambda: (lambda bound, x: gpytorch.constraints.GreaterThan(bound).transform(x), torch.rand(2), points()),
)
J("variance", lambda: (lambda mean, matrix: MultivariateNormal(mean, matrix).variance, torch.rand(4), covariance()))
J("negative variance", lambda: (lazy_variance, torch.rand(4), torch.tensor([-1.0, 0, 1, 2])))
J("logdet", lambda: (gpytorch.logdet, covariance()))
J("matmul", lambda: (gpytorch.matmul, points(), points(2, 3)))
J("keops", lambda: (keops, points()))
J("last_dim_is_batch", lambda: (lambda x: kernels.RBFKernel()(x, last_dim_is_batch=True).to_dense(), points()))
J("Cylindrical", lambda: (kernels.CylindricalKernel(2, kernels.MaternKernel(2.5)).forward, points() / 2, points() / 2))
J("Cylindrical far", lambda: (kernels.CylindricalKernel(2, kernels.MaternKernel(2.5)).forward, points(), points() * 9))
for name in ("Matern52KernelGrad", "RBFKernelGrad", "RBFKernelGradGrad"):
    kernel = getattr(kernels, name)
    J(name, lambda kernel=kernel: (lambda x: kernel().to(x).forward(x, x), points(3)))
    J(f"{name} of two", lambda kernel=kernel: (kernel().forward, points(3), points(3)))
    J(f"{name} of other sizes", lambda kernel=kernel: (kernel().forward, points(3), points(4)))
    J(f"{name} diagonal", lambda kernel=kernel: (lambda x: kernel().to(x).forward(x, x, diag=True), points(3)))
    J(f"{name} diagonal of two", lambda kernel=kernel: (kernel().forward, points(3), points(3), K(diag=True)))
for diagonal in (False, True):
    J("InducingPointKernel", lambda diagonal=diagonal: (lambda x: inducing(x, x, diagonal), points()), True)
    J("InducingPointKernel of two", lambda diagonal=diagonal: (inducing, points(), points(), diagonal), True)
J("Bernoulli", lambda: (bernoulli, torch.tensor([0.0, 1, 1, 0]), torch.rand(4), covariance()), True)
J("Bernoulli with -1", lambda: (bernoulli, torch.tensor([-1.0, 1, 1, -1]), torch.rand(4), covariance()), True)
J("Bernoulli with integers", lambda: (bernoulli, torch.tensor([-1, 1, 1, 0]), torch.rand(4), covariance()))
J("elbo", lambda: (elbo, points(), torch.tensor([0.0, 1, 1, 0]), points(3)), True)
J("fixed noise", lambda: (fixed_noise, torch.rand(4), torch.rand(4), 4))
J("fixed noise, small", lambda: (fixed_noise, torch.tensor([1e-9, 0, 0.5, 1]), torch.rand(4), 4))
J("fixed noise, other size", lambda: (fixed_noise, torch.rand(4), torch.rand(3), 3))
J("softmax", lambda: (softmax_of_samples, points(5, 2)))
J("softmax of two rows", lambda: (softmax_of_samples, points(2, 2)))
J("softmax of a batch", lambda: (softmax_of_batch, points(2, 4), torch.stack([covariance(), covariance()])))
J(
    "softmax of tasks",
    lambda: (
        lambda mean: (
            likelihoods.SoftmaxLikelihood(2, mixing_weights=False, num_classes=2)(
                MultitaskMultivariateNormal(mean, torch.eye(mean.numel()))
            ).logits
        ),
        points(4, 2),
    ),
)
J("regress", lambda: (regress, points(), torch.rand(4), points(3)))
J("regress at the data", lambda: (lambda x, y: regress(x, y, x), points(), torch.rand(4)))
J("regress at equal data", lambda: (lambda x, y: regress(x, y, x.clone()), points(), torch.rand(4)))
J("regress, fill", lambda: (regress, points(), torch.tensor([0.1, torch.nan, 0.3, 0.2]), points(3), "fill"))
J("regress, mask", lambda: (regress, points(), torch.tensor([0.1, torch.nan, 0.3, 0.2]), points(3), "mask"))
J("fit", lambda: (lambda x, y: fit(x, y, x), points(), torch.rand(4)), True)
J("fit elsewhere", lambda: (fit, points(), torch.rand(4), points()), True)
J("LKJCovariancePrior", lambda: (covariance_prior, torch.tensor([[1.0, 0.3], [0.3, 0.5]])))
J("LKJCovariancePrior, negative", lambda: (covariance_prior, torch.tensor([[-1.0, 0.3], [0.3, 0.5]])))
J("assertAllClose", lambda: (assert_equal, points(), points()))
J("assertAllClose of one", lambda: (lambda x: assert_equal(x, x), points()))
J("renamed argument", lambda: (renamed_argument, 1))
J("renamed function", lambda: (renamed_function, points()))
J("scale_to_bounds", lambda: (grid.scale_to_bounds, points(), -1.0, 1.0))
J("left_interp", lambda: (interpolation.left_interp, torch.tensor([[0, 1], [2, 3]]), points(2, 2), points(4, 1)))
J("left_t_interp", lambda: (interpolation.left_t_interp, torch.tensor([[0, 1], [2, 3]]), points(2, 2), points(2, 1), 4))
J("old state", lambda: (old_state, points(3)))
