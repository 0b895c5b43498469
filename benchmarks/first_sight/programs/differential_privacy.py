"""Differential privacy: per-sample gradients, private optimizers and layers, accountants."""

from collections.abc import Callable
from typing import Any

import opacus
import torch
from opacus import accountants, layers, optimizers, schedulers
from opacus.accountants.analysis import gdp, rdp
from opacus.grad_sample import (
    GradSampleModule,
    GradSampleModuleExpandedWeights,
    GradSampleModuleFastGradientClipping,
    compute_conv_grad_sample,
    compute_embedding_grad_sample,
    compute_embedding_norm_sample,
    compute_group_norm_grad_sample,
    compute_instance_norm_grad_sample,
    compute_layer_norm_grad_sample,
    compute_linear_grad_sample,
    compute_rms_norm_grad_sample,
    compute_sequence_bias_grad_sample,
    create_or_accumulate_grad_sample,
)
from opacus.utils import fast_gradient_clipping_utils, module_utils, packed_sequences, per_sample_gradients_utils
from opacus.utils.tensor_utils import (
    calc_sample_norms,
    calc_sample_norms_one_layer,
    filter_dilated_rows,
    sum_over_all_but_batch_and_last_n,
    unfold2d,
    unfold3d,
)
from opacus.validators import ModuleValidator

DISTRIBUTION = FOLDER = "opacus"

X = torch.randn(6, 4)
IMAGE = torch.randn(3, 4, 8, 8)
SEQUENCE = torch.randn(3, 5, 4)
TOKENS = torch.randint(0, 7, (3, 5))


class Network(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        out = self.inner(x)
        return out[0] if isinstance(out, tuple) else out


def network():
    return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))


def sampler(function, make, given, backprops=None):
    def build():
        layer = make()
        back = torch.ones_like(layer(given).detach()) if backprops is None else backprops
        return (lambda x, b: function(layer, [x], b)), (given, back)

    return build


def embedded(function):
    def build():
        layer = torch.nn.Embedding(7, 4)
        return (lambda x, b: function(layer, [x], b)), (TOKENS, torch.randn(3, 5, 4))

    return build


def forward(make, given, wrap=GradSampleModule, **options):
    return lambda: (wrap(Network(make()), **options), (given,))


def trained(make, given, wrap=GradSampleModule, **options):
    def build():
        model = wrap(Network(make()), **options)

        def run(x):
            loss = model(x).square().mean()
            loss.backward()
            return loss

        return run, (given,)

    return build


def private(kind, clipping="flat", **options):
    def build():
        model = GradSampleModule(network())
        given = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": 6} | options
        optimizer = kind(torch.optim.SGD(model.parameters(), lr=0.1), **given)

        def run(x):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            return optimizer.step()

        return run, (X,)

    return build


def part(method, **options):
    def build():
        model = GradSampleModule(network())
        optimizer = optimizers.DPOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=6
        )

        def run(x):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.clip_and_accumulate()
            optimizer.add_noise()
            optimizer.scale_grad()

        def single(x):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            return getattr(optimizer, method)(**options)

        return (run if method == "scale_grad" else single), (X,)

    return build


def scheduled(kind, **options):
    def build():
        model = GradSampleModule(network())
        optimizer = optimizers.DPOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=6
        )
        schedule = getattr(schedulers, kind)(optimizer, **options)
        return (lambda: schedule.step()), ()

    return build


def accounted(kind):
    def build():
        accountant = getattr(accountants, kind)()
        accountant.step(noise_multiplier=1.0, sample_rate=0.01)

        def run():
            accountant.step(noise_multiplier=1.0, sample_rate=0.01)
            return accountant.get_epsilon(delta=1e-5)

        return run, ()

    return build


def of(function, *given, **options):
    return lambda: (lambda *given: function(*given, **options), given)


def convolutions():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))


def with_model(function, *given, make=network):
    def build():
        model = make()
        return (lambda *given: function(model, *given)), given

    return build


def ghost(per_layer=False):
    def build():
        model = GradSampleModuleFastGradientClipping(network(), max_grad_norm=1.0, use_ghost_clipping=not per_layer)
        optimizer = optimizers.DPOptimizerFastGradientClipping(
            torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=6
        )
        criterion = fast_gradient_clipping_utils.DPLossFastGradientClipping(
            model, optimizer, torch.nn.CrossEntropyLoss()
        )

        def run(x, y):
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()

        return run, (X, torch.randint(0, 2, (6,)))

    return build


CALLS: dict[str, Callable[..., Any]] = {
    "linear": sampler(compute_linear_grad_sample, lambda: torch.nn.Linear(4, 3), X),
    "linear sequence": sampler(compute_linear_grad_sample, lambda: torch.nn.Linear(4, 3), SEQUENCE),
    "layer norm": sampler(compute_layer_norm_grad_sample, lambda: torch.nn.LayerNorm(4), SEQUENCE),
    "rms norm": sampler(compute_rms_norm_grad_sample, lambda: torch.nn.RMSNorm(4), SEQUENCE),
    "group norm": sampler(compute_group_norm_grad_sample, lambda: torch.nn.GroupNorm(2, 4), IMAGE),
    "instance norm": sampler(compute_instance_norm_grad_sample, lambda: torch.nn.InstanceNorm2d(4, affine=True), IMAGE),
    "bias": sampler(compute_sequence_bias_grad_sample, lambda: layers.SequenceBias(4), SEQUENCE, torch.randn(6, 3, 4)),
    "embedding": embedded(compute_embedding_grad_sample),
    "embedding norm": embedded(compute_embedding_norm_sample),
    "norms": of(calc_sample_norms, [("a", torch.randn(3, 4)), ("b", torch.randn(3, 2, 2))]),
    "norms apart": of(calc_sample_norms, [("a", torch.randn(3, 4)), ("b", torch.randn(3, 2, 2))], flat=False),
    "norms layer": of(calc_sample_norms_one_layer, torch.randn(3, 4, 2)),
    "sum but": of(sum_over_all_but_batch_and_last_n, torch.randn(3, 4, 5, 6), n_dims=1),
    "unfold": of(unfold2d, IMAGE, kernel_size=(3, 3), padding=(1, 1), stride=(1, 1), dilation=(1, 1)),
    "unfold volume": of(
        unfold3d, torch.randn(2, 3, 4, 4, 4), kernel_size=(2, 2, 2), padding=(1, 1, 1), stride=(1, 1, 1)
    ),
    "unfold one": of(unfold3d, torch.randn(2, 3, 4, 4, 4), kernel_size=2, padding=1, stride=2, dilation=1),
    "dilated rows": of(
        filter_dilated_rows,
        torch.randn(2, 4, 5, 3, 3, 2, 2, 2),
        dilation=(2, 1, 1),
        dilated_kernel_size=(4, 3, 2),
        kernel_size=(2, 3, 2),
    ),
    "lengths": of(packed_sequences.compute_seq_lengths, torch.tensor([3, 2, 2, 1])),
    "trainable": lambda: (lambda: list(module_utils.trainable_parameters(network())), ()),
    "trainable modules": with_model(lambda m: list(module_utils.trainable_modules(m))),
    "requires grad": with_model(lambda m: module_utils.requires_grad(m, recurse=True)),
    "clone": with_model(lambda m: module_utils.clone_module(m)),
    "submodule": with_model(lambda m: module_utils.get_submodule(m, "0")),
    "equal": with_model(lambda m: module_utils.are_state_dict_equal(m.state_dict(), m.state_dict())),
    "microbatch": with_model(lambda m, x: per_sample_gradients_utils.compute_microbatch_grad_sample(x, m), X),
    "of opacus": with_model(lambda m, x: per_sample_gradients_utils.compute_opacus_grad_sample(x, m), X),
    "correct": with_model(lambda m, x: per_sample_gradients_utils.check_per_sample_gradients_are_correct(x, m), X),
    "attention": lambda: (layers.DPMultiheadAttention(4, 2), (SEQUENCE, SEQUENCE, SEQUENCE)),
    "attention bias": lambda: (
        layers.DPMultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True, batch_first=True),
        (SEQUENCE, SEQUENCE, SEQUENCE),
    ),
    "attention kdim": lambda: (
        layers.DPMultiheadAttention(4, 2, kdim=3, vdim=3),
        (SEQUENCE, torch.randn(3, 5, 3), torch.randn(3, 5, 3)),
    ),
    "attention masked": lambda: (
        layers.DPMultiheadAttention(4, 2),
        (SEQUENCE, SEQUENCE, SEQUENCE, torch.zeros(5, 3).bool(), True, torch.zeros(3, 3).bool()),
    ),
    "sequence bias": lambda: (layers.SequenceBias(4, batch_first=True), (SEQUENCE,)),
    "step": private(optimizers.DPOptimizer),
    "step sum": private(optimizers.DPOptimizer, loss_reduction="sum"),
    "step secure": private(optimizers.DPOptimizer, secure_mode=True),
    "step silent": private(optimizers.DPOptimizer, noise_multiplier=0.0),
    "step layers": private(optimizers.DPPerLayerOptimizer, max_grad_norm=[1.0, 1.0, 1.0, 1.0]),
    "step adaptive": private(
        optimizers.AdaClipDPOptimizer,
        target_unclipped_quantile=0.5,
        clipbound_learning_rate=0.2,
        max_clipbound=10.0,
        min_clipbound=0.1,
        unclipped_num_std=1.0,
    ),
    "clip": part("clip_and_accumulate"),
    "noise": part("add_noise"),
    "scale": part("scale_grad"),
    "zero": part("zero_grad", set_to_none=True),
    "pre step": part("pre_step"),
    "ghost": ghost(),
    "ghost apart": ghost(per_layer=True),
    "gaussian": accounted("GaussianAccountant"),
    "rdp": accounted("RDPAccountant"),
    "prv": accounted("PRVAccountant"),
    "rdp of": of(lambda: rdp.compute_rdp(q=0.01, noise_multiplier=1.0, steps=10, orders=[2, 2.5, 8])),
    "rdp spent": of(lambda: rdp.get_privacy_spent(orders=[2, 4, 8], rdp=[0.1, 0.2, 0.4], delta=1e-5)),
    "gdp uniform": of(lambda: gdp.compute_eps_uniform(steps=10, noise_multiplier=1.0, sample_rate=0.01, delta=1e-5)),
    "gdp poisson": of(lambda: gdp.compute_eps_poisson(steps=10, noise_multiplier=1.0, sample_rate=0.01, delta=1e-5)),
    "valid": with_model(lambda m: ModuleValidator.validate(m)),
    "is valid": with_model(lambda m: ModuleValidator.is_valid(m), make=convolutions),
    "fix": with_model(lambda m: ModuleValidator.fix(m), make=convolutions),
    "noise exponential": scheduled("ExponentialNoise", gamma=0.9),
    "noise step": scheduled("StepNoise", step_size=1, gamma=0.9),
    "noise lambda": scheduled("LambdaNoise", noise_lambda=lambda epoch: 0.9**epoch),
    "clip exponential": scheduled("ExponentialGradClip", gamma=0.9),
    "clip step": scheduled("StepGradClip", step_size=1, gamma=0.9),
    "made private": lambda: (
        lambda: opacus.PrivacyEngine().is_compatible(module=network(), optimizer=None, data_loader=None),
        (),
    ),
}
for kind in ("DPLSTM", "DPGRU", "DPRNN"):
    for options in (
        {},
        {"num_layers": 2, "bidirectional": True},
        {"batch_first": True, "dropout": 0.1, "num_layers": 2},
    ):
        CALLS[f"{kind} {len(options)}"] = lambda kind=kind, options=options: (
            getattr(layers, kind)(4, 3, **options),
            (SEQUENCE,),
        )
    CALLS[f"{kind} packed"] = lambda kind=kind: (
        getattr(layers, kind)(4, 3, batch_first=True),
        (torch.nn.utils.rnn.pack_padded_sequence(SEQUENCE, [5, 3, 2], batch_first=True),),
    )
    CALLS[f"{kind} trained"] = trained(lambda kind=kind: getattr(layers, kind)(4, 3), SEQUENCE, batch_first=False)
CONVOLUTIONS: dict[str, Any] = {
    "1d": (lambda: torch.nn.Conv1d(4, 6, 3), torch.randn(3, 4, 8)),
    "1d valid": (lambda: torch.nn.Conv1d(4, 6, 3, padding="same"), torch.randn(3, 4, 8)),
    "2d": (lambda: torch.nn.Conv2d(4, 6, 3, padding=1, stride=2), IMAGE),
    "2d groups": (lambda: torch.nn.Conv2d(4, 4, 3, groups=2, dilation=2), IMAGE),
    "3d": (lambda: torch.nn.Conv3d(2, 2, 2, padding=1), torch.randn(2, 2, 4, 4, 4)),
    "3d dilated": (lambda: torch.nn.Conv3d(2, 2, 2, dilation=2), torch.randn(2, 2, 4, 4, 4)),
}
for label, (make, given) in CONVOLUTIONS.items():
    CALLS[f"conv {label}"] = sampler(compute_conv_grad_sample, make, given)
MODELS: dict[str, Any] = {
    "linear": (lambda: torch.nn.Linear(4, 3), X),
    "conv": (lambda: torch.nn.Conv2d(4, 6, 3), IMAGE),
    "norm": (lambda: torch.nn.GroupNorm(2, 4), IMAGE),
    "embedding": (lambda: torch.nn.Embedding(7, 4), TOKENS),
}
for label, (make, given) in MODELS.items():
    CALLS |= {
        f"forward {label}": forward(make, given),
        f"train {label}": trained(make, given),
        f"train {label} functorch": trained(make, given, force_functorch=True),
        f"train {label} sum": trained(make, given, loss_reduction="sum"),
        f"train {label} expanded": trained(make, given, wrap=GradSampleModuleExpandedWeights),
        f"train {label} ghost": trained(make, given, wrap=GradSampleModuleFastGradientClipping),
        f"train {label} fast": trained(
            make, given, wrap=GradSampleModuleFastGradientClipping, use_ghost_clipping=False
        ),
    }
CALLS["accumulate"] = lambda: (
    lambda p, g: create_or_accumulate_grad_sample(param=p, grad_sample=g, max_batch_len=6),
    (torch.nn.Parameter(torch.randn(4)), torch.randn(6, 4)),
)
