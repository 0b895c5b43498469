"""Reinforcement learning: networks, policies, action values, losses of agents and their optimizer."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from pfrl import action_value, nn, policies, q_functions
from pfrl.agents import acer, categorical_dqn, dqn, iqn
from pfrl.distributions import Delta
from pfrl.explorers import AdditiveGaussian, AdditiveOU, Boltzmann, LinearDecayEpsilonGreedy
from pfrl.functions.bound_by_tanh import bound_by_tanh
from pfrl.functions.lower_triangular_matrix import lower_triangular_matrix
from pfrl.optimizers import RMSpropEpsInsideSqrt
from pfrl.utils import clip_l2_grad_norm, copy_param, recurrent
from pfrl.utils.conjugate_gradient import conjugate_gradient
from pfrl.utils.mode_of_distribution import mode_of_distribution

DISTRIBUTION = "pfrl"
FOLDER = "pfrl"

X, A = torch.randn(4, 3), torch.randn(4, 2)
ACTIONS = torch.tensor([0, 1, 2, 0])
FRAMES = torch.rand(2, 4, 84, 84)
BOX_LOW, BOX_HIGH = np.full(2, -1.0, np.float32), np.full(2, 1.0, np.float32)


class Space:
    """What a function of a bounded action asks of a space."""

    low, high = BOX_LOW, BOX_HIGH


def made(make, *arguments):
    return lambda: (make(), arguments)


def asked(make, *what):
    """What an action value that is made in compiled code says."""

    def run(*tensors):
        value = make(*tensors)
        return [value.max, value.greedy_actions, *(getattr(value, name)(ACTIONS) for name in what)]

    return run


def of_network(make, x):
    """The greedy action and its value, from a network."""

    def build():
        network = make()

        def run(x):
            values = network(x)
            return values.greedy_actions, values.max

        return run, (x,)

    return build


def of_policy(make, x):
    def build():
        policy = make()

        def run(x):
            distribution = policy(x)
            action = distribution.sample()
            return action, mode_of_distribution(distribution)

        return run, (x,)

    return build


def of_recurrent(make, what):
    def build():
        network = make()
        sequences = [torch.randn(3, 3), torch.randn(2, 3)]

        def packed(*sequences):
            return recurrent.pack_and_forward(network, list(sequences), None)

        def one_step(x):
            return recurrent.one_step_forward(network, x, None)

        return (packed, tuple(sequences)) if what == "packed" else (one_step, (X,))

    return build


def of_states(what):
    state = (torch.randn(1, 4, 5), torch.randn(1, 4, 5))
    runs = {
        "masked": lambda s: recurrent.mask_recurrent_state_at(s, [1, 2]),
        "picked": lambda s: recurrent.get_recurrent_state_at(s, 1, detach=True),
        "joined": lambda s: recurrent.concatenate_recurrent_states([recurrent.get_recurrent_state_at(s, 0, False)] * 2),
        "detached": recurrent.detach_recurrent_state,
        "array": recurrent.recurrent_state_as_numpy,
    }
    return lambda: (runs[what], (state,))


def lstm():
    return nn.RecurrentSequential(torch.nn.LSTM(3, 5), torch.nn.Linear(5, 2))


def branched():
    return nn.RecurrentBranched(torch.nn.GRU(3, 5), lstm())


def quantile_network():
    return iqn.ImplicitQuantileQFunction(
        psi=torch.nn.Linear(3, 6),
        phi=torch.nn.Sequential(iqn.CosineBasisLinear(8, 6), torch.nn.ReLU()),
        f=torch.nn.Linear(6, 3),
    )


def of_quantiles():
    network = quantile_network()

    def run(x):
        value = network(x)(torch.rand(4, 8))
        return value.evaluate_actions_as_quantiles(ACTIONS), value.max

    return run, (X,)


def copied(method):
    def build():
        source, target = nn.MLP(3, 2, (4,)), nn.MLP(3, 2, (4,))
        options = {"tau": 0.1} if method == "soft" else {}

        def run(x):
            copy_param.synchronize_parameters(source, target, method, **options)
            return target(x)

        return run, (X,)

    return build


def clipped():
    network = nn.MLP(3, 2, (4,))
    network(X).sum().backward()

    def run(limit):
        return clip_l2_grad_norm.clip_l2_grad_norm_(network.parameters(), limit)

    return run, (0.1,)


def stepped(**options):
    def build():
        network = nn.MLP(3, 2, (4,))
        optimizer = RMSpropEpsInsideSqrt(network.parameters(), lr=1e-3, **options)

        def run(x):
            loss = network(x).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return run, (X,)

    return build


def explored(explorer):
    values = torch.randn(1, 3)

    def run(values):
        value = action_value.DiscreteActionValue(values)
        return explorer.select_action(10, lambda: values.argmax().item(), value)

    return lambda: (run, (values,))


def moved(explorer):
    return lambda: (lambda a: explorer.select_action(10, lambda: a.numpy()), (torch.randn(2),))


def solved():
    matrix = torch.randn(4, 4)
    matrix = matrix @ matrix.T + torch.eye(4)
    return lambda b: conjugate_gradient(lambda v: matrix @ v, b), (torch.randn(4),)


def weighed(with_kl):
    def run(logits, others):
        pi = torch.distributions.Categorical(logits=logits)
        mu = torch.distributions.Categorical(logits=others)
        x = pi.sample()
        if with_kl:
            loss = -pi.log_prob(x).sum()
            return acer.compute_loss_with_kl_constraint(pi, mu, loss, delta=0.5)
        return acer.compute_importance(pi, mu, x), acer.compute_full_importance(pi, mu)

    return lambda: (run, (torch.randn(1, 3, requires_grad=True), torch.randn(1, 3)))


def corrected(truncated):
    def run(logits, others, values):
        pi, mu = (torch.distributions.Categorical(logits=given) for given in (logits, others))
        return acer.compute_policy_gradient_loss(
            action=torch.tensor([1]),
            advantage=0.5,
            action_distrib=pi,
            action_distrib_mu=mu,
            action_value=action_value.DiscreteActionValue(values),
            v=0.1,
            truncation_threshold=1.0 if truncated else None,
        )

    return lambda: (run, (torch.randn(1, 3, requires_grad=True), torch.randn(1, 3), torch.randn(1, 3)))


DIST = torch.softmax(torch.randn(4, 3, 5), 2), torch.linspace(-1, 1, 5)
QUADRATIC = torch.randn(4, 2), torch.eye(2).expand(4, 2, 2).clone(), torch.randn(4, 1)

CALLS: dict[str, Callable[[], Any]] = {
    "mlp": made(lambda: nn.MLP(3, 2, (4,)), X),
    "mlp_bn": made(lambda: nn.MLPBN(3, 2, (4,), normalize_output=True), X),
    "large_cnn": made(nn.LargeAtariCNN, FRAMES),
    "small_cnn": made(nn.SmallAtariCNN, FRAMES),
    "bounded": made(lambda: nn.BoundByTanh(BOX_LOW, BOX_HIGH), A),
    "branched": made(lambda: nn.Branched(torch.nn.Linear(3, 2), torch.nn.Linear(3, 1)), X),
    "concat": made(nn.ConcatObsAndAction, (X, A)),
    "normalized": made(lambda: nn.EmpiricalNormalization(3, clip_threshold=5), X),
    "normalized_until": made(lambda: nn.EmpiricalNormalization(3, until=8), X),
    "noisy": made(lambda: nn.FactorizedNoisyLinear(torch.nn.Linear(3, 2)), X),
    "lstm_packed": of_recurrent(lstm, "packed"),
    "lstm_one_step": of_recurrent(lstm, "one step"),
    "branched_packed": of_recurrent(branched, "packed"),
    "branched_one_step": of_recurrent(branched, "one step"),
    **{f"state_{what}": of_states(what) for what in ("masked", "picked", "joined", "detached", "array")},
    "gaussian_free": of_policy(lambda: policies.GaussianHeadWithStateIndependentCovariance(2, "diagonal"), A),
    "gaussian_spherical": of_policy(lambda: policies.GaussianHeadWithStateIndependentCovariance(2), A),
    "gaussian_diagonal": of_policy(policies.GaussianHeadWithDiagonalCovariance, torch.randn(4, 4)),
    "gaussian_fixed": of_policy(lambda: policies.GaussianHeadWithFixedCovariance(0.5), A),
    "softmax": of_policy(policies.SoftmaxCategoricalHead, X),
    "delta": lambda: (lambda loc: (Delta(loc).rsample((2,)), Delta(loc).mean), (A,)),
    "dueling": of_network(lambda: q_functions.DuelingDQN(3), FRAMES),
    "dueling_distribution": of_network(lambda: q_functions.DistributionalDuelingDQN(3, 5, -1, 1), FRAMES),
    "q_fc": of_network(lambda: q_functions.FCStateQFunctionWithDiscreteAction(3, 3, 4, 1), X),
    "q_distribution": of_network(
        lambda: q_functions.DistributionalFCStateQFunctionWithDiscreteAction(3, 3, 5, -1, 1, 4, 1), X
    ),
    "q_quadratic": of_network(lambda: q_functions.FCQuadraticStateQFunction(3, 2, 4, 1, Space()), X),
    "q_fcsa": made(lambda: q_functions.FCSAQFunction(3, 2, 4, 1), X, A),
    "q_bn": made(lambda: q_functions.FCBNSAQFunction(3, 2, 4, 1), X, A),
    "q_bn_late": made(lambda: q_functions.FCBNLateActionSAQFunction(3, 2, 4, 2), X, A),
    "q_late": made(lambda: q_functions.FCLateActionSAQFunction(3, 2, 4, 2), X, A),
    "q_iqn": of_quantiles,
    "value_discrete": made(
        lambda: asked(action_value.DiscreteActionValue, "evaluate_actions", "compute_advantage"), torch.randn(4, 3)
    ),
    "value_distribution": made(
        lambda: asked(
            action_value.DistributionalDiscreteActionValue, "evaluate_actions", "evaluate_actions_as_distribution"
        ),
        *DIST,
    ),
    "value_quantiles": made(
        lambda: asked(action_value.QuantileDiscreteActionValue, "evaluate_actions_as_quantiles"), torch.randn(4, 6, 3)
    ),
    "value_quadratic": made(
        lambda: lambda mu, mat, v: action_value.QuadraticActionValue(mu, mat, v, BOX_LOW, BOX_HIGH).max, *QUADRATIC
    ),
    "value_quadratic_actions": made(
        lambda: lambda mu, mat, v: action_value.QuadraticActionValue(mu, mat, v).evaluate_actions(A), *QUADRATIC
    ),
    "value_printed": made(lambda: lambda q: repr(action_value.DiscreteActionValue(q)), torch.randn(4, 3)),
    "lower_triangular": made(lambda: lower_triangular_matrix, torch.randn(2, 3), torch.randn(2, 3)),
    "bound": made(lambda: lambda a: bound_by_tanh(a, BOX_LOW, BOX_HIGH), A),
    "copy_hard": copied("hard"),
    "copy_soft": copied("soft"),
    "clip": clipped,
    "rmsprop": stepped(),
    "rmsprop_centered": stepped(centered=True, momentum=0.9, weight_decay=0.1),
    "solve": solved,
    "explore_linear": explored(LinearDecayEpsilonGreedy(1.0, 0.1, 100, lambda: np.random.randint(3))),
    "explore_boltzmann": explored(Boltzmann()),
    "explore_gaussian": moved(AdditiveGaussian(0.1, -1, 1)),
    "explore_ou": moved(AdditiveOU()),
    "loss_dqn": made(lambda: dqn.compute_value_loss, torch.randn(4), torch.randn(4)),
    "loss_dqn_weighted": made(lambda: dqn.compute_weighted_value_loss, torch.randn(4), torch.randn(4), torch.rand(4)),
    "loss_categorical": made(lambda: categorical_dqn.compute_value_loss, torch.rand(4, 5)),
    "loss_quantiles": made(
        lambda: iqn.compute_eltwise_huber_quantile_loss, torch.randn(4, 6), torch.randn(4, 6), torch.rand(4, 6)
    ),
    "importance": weighed(False),
    "kl_constraint": weighed(True),
    "policy_gradient": corrected(False),
    "policy_gradient_truncated": corrected(True),
}
