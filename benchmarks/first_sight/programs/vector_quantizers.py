"""Vector quantization: codebooks, residual and lookup-free quantizers."""

from collections.abc import Callable
from typing import Any

import torch
import vector_quantize_pytorch as vq

DISTRIBUTION = "vector-quantize-pytorch"
FOLDER = "vector_quantize_pytorch"

TOKENS = torch.randn(2, 16, 8)
IMAGE = torch.randn(2, 8, 4, 4)
CHANNELS = torch.randn(2, 8, 8)
MASK = torch.arange(16)[None] < torch.tensor([[16], [9]])


def layer(name, *given, keywords=None, **options):
    def build():
        quantizer = getattr(vq, name)(**options)
        if not keywords:
            return quantizer, given or (TOKENS,)

        class Given(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.quantizer = quantizer

            def forward(self, *inputs):
                return self.quantizer(*inputs, **keywords)

        return Given(), given or (TOKENS,)

    return build


def codes(name, method, *given, **options):
    return lambda: (getattr(getattr(vq, name)(**options).eval(), method), given)


def train(name, *given, **options):
    def build():
        quantizer = getattr(vq, name)(**options)
        encoder = torch.nn.Linear(8, 8)

        def step(x):
            quantized, _, loss, *_ = quantizer(encoder(x))
            total = quantized.square().sum() + loss.sum()
            total.backward()
            return total

        return step, given or (TOKENS,)

    return build


CALLS: dict[str, Callable[..., Any]] = {}
SINGLE: dict[str, dict[str, Any]] = {
    "plain": {},
    "decay": {"decay": 0.8, "commitment_weight": 1.0},
    "kmeans": {"kmeans_init": True, "kmeans_iters": 3},
    "rotation": {"rotation_trick": True},
    "codebook dim": {"codebook_dim": 4},
    "cosine": {"use_cosine_sim": True},
    "cosine kmeans": {"use_cosine_sim": True, "kmeans_init": True, "kmeans_iters": 3},
    "dead codes": {"threshold_ema_dead_code": 2},
    "dead cosine codes": {"threshold_ema_dead_code": 2, "use_cosine_sim": True},
    "orthogonal": {"orthogonal_reg_weight": 10, "orthogonal_reg_max_codes": 4},
    "orthogonal active": {"orthogonal_reg_weight": 10, "orthogonal_reg_active_codes_only": True},
    "diversity": {"codebook_diversity_loss_weight": 0.1},
    "heads": {"codebook_dim": 4, "heads": 2},
    "separate heads": {"codebook_dim": 4, "heads": 2, "separate_codebook_per_head": True},
    "stochastic": {"stochastic_sample_codes": True, "sample_codebook_temp": 0.5},
    "directional": {"directional_reparam": True, "threshold_ema_dead_code": 2},
    "cross entropy": {"commitment_use_cross_entropy_loss": True},
    "learnable": {"learnable_codebook": True, "ema_update": False},
    "optimizer": {
        "learnable_codebook": True,
        "ema_update": False,
        "in_place_codebook_optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    },
    "affine": {"affine_param": True},
    "sync update": {"sync_update_v": 0.01, "learnable_codebook": True, "ema_update": False},
    "frozen": {"freeze_codebook": True},
    "normed": {"layernorm_after_project_in": True, "codebook_dim": 4},
}
for label, chosen in SINGLE.items():
    CALLS[f"vq {label}"] = layer("VectorQuantize", dim=8, codebook_size=12, **chosen)
    CALLS[f"vq {label} train"] = train("VectorQuantize", dim=8, codebook_size=12, **chosen)
CALLS |= {
    "vq mask": layer("VectorQuantize", keywords={"mask": MASK}, dim=8, codebook_size=12),
    "vq mask kmeans": layer("VectorQuantize", keywords={"mask": MASK}, dim=8, codebook_size=12, kmeans_init=True),
    "vq lens": layer("VectorQuantize", keywords={"lens": torch.tensor([16, 9])}, dim=8, codebook_size=12),
    "vq breakdown": layer("VectorQuantize", keywords={"return_loss_breakdown": True}, dim=8, codebook_size=12),
    "vq topk": layer("VectorQuantize", keywords={"topk": 2}, dim=8, codebook_size=12),
    "vq indices": layer("VectorQuantize", keywords={"indices": torch.zeros(2, 16).long()}, dim=8, codebook_size=12),
    "vq image": layer("VectorQuantize", IMAGE, dim=8, codebook_size=12, accept_image_fmap=True),
    "vq video": layer("VectorQuantize", torch.randn(1, 8, 2, 4, 4), dim=8, codebook_size=12, accept_3d_fmap=True),
    "vq one": layer("VectorQuantize", torch.randn(2, 8), dim=8, codebook_size=12),
    "vq codes": codes("VectorQuantize", "get_codes_from_indices", torch.zeros(2, 16).long(), dim=8, codebook_size=12),
    "vq output": codes("VectorQuantize", "get_output_from_indices", torch.zeros(2, 16).long(), dim=8, codebook_size=12),
    "random projection": layer("RandomProjectionQuantizer", dim=8, num_codebooks=2, codebook_dim=4, codebook_size=12),
}
STACKED: dict[str, dict[str, Any]] = {
    "plain": {},
    "stochastic": {"stochastic_sample_codes": True, "shared_codebook": True},
    "kmeans": {"kmeans_init": True, "kmeans_iters": 3},
    "dropout": {"quantize_dropout": True},
    "dropout multiple": {"quantize_dropout": True, "quantize_dropout_multiple_of": 2},
    "implicit": {"implicit_neural_codebook": True},
    "beam": {"beam_size": 2},
    "codebook dim": {"codebook_dim": 4},
    "sizes": {"num_quantizers": None, "codebook_size": (12, 8, 4)},
}
for label, chosen in STACKED.items():
    given = {"dim": 8, "num_quantizers": 3, "codebook_size": 12} | chosen
    CALLS[f"residual {label}"] = layer("ResidualVQ", **given)
    CALLS[f"residual {label} train"] = train("ResidualVQ", **given)
RESIDUAL = {"dim": 8, "num_quantizers": 3, "codebook_size": 12}
LEVELS = {"dim": 8, "levels": [8, 5, 5, 3], "num_quantizers": 2}
FREE = {"dim": 8, "codebook_size": 16, "num_quantizers": 2}
CALLS |= {
    "residual codes": layer("ResidualVQ", keywords={"return_all_codes": True}, **RESIDUAL),
    "residual mask": layer("ResidualVQ", keywords={"mask": MASK}, **RESIDUAL),
    "residual output": codes("ResidualVQ", "get_output_from_indices", torch.zeros(2, 16, 3).long(), **RESIDUAL),
    "grouped": layer("GroupedResidualVQ", groups=2, **RESIDUAL),
    "grouped train": train("GroupedResidualVQ", groups=2, **RESIDUAL),
    "sim": layer("SimVQ", dim=8, codebook_size=12),
    "sim train": train("SimVQ", dim=8, codebook_size=12, rotation_trick=True),
    "sim plain": layer("SimVQ", dim=8, codebook_size=12, rotation_trick=False),
    "sim codes": codes("SimVQ", "indices_to_codes", torch.zeros(2, 16).long(), dim=8, codebook_size=12),
    "residual sim": layer("ResidualSimVQ", **RESIDUAL),
    "residual sim dropout": layer("ResidualSimVQ", quantize_dropout=True, **RESIDUAL),
    "residual sim output": codes("ResidualSimVQ", "get_output_from_indices", torch.zeros(2, 16, 3).long(), **RESIDUAL),
    "fsq": layer("FSQ", torch.randn(2, 16, 4), levels=[8, 5, 5, 5]),
    "fsq dim": layer("FSQ", levels=[8, 5, 5, 5], dim=8),
    "fsq symmetric": layer("FSQ", levels=[8, 5, 5, 5], dim=8, preserve_symmetry=True),
    "fsq noise symmetric": layer("FSQ", levels=[8, 5, 5], dim=8, noise_dropout=0.5, preserve_symmetry=True),
    "fsq hard": layer("FSQ", levels=[8, 5, 5, 5], dim=8, bound_hard_clamp=True),
    "fsq image": layer("FSQ", IMAGE, levels=[8, 5, 5, 5], dim=8, channel_first=True),
    "fsq codebooks": layer("FSQ", levels=[4, 3], dim=8, num_codebooks=2),
    "fsq codes": codes("FSQ", "indices_to_codes", torch.zeros(2, 16).long(), levels=[8, 5, 5, 5], dim=8),
    "residual fsq": layer("ResidualFSQ", **LEVELS),
    "residual fsq dropout": layer("ResidualFSQ", quantize_dropout=True, **LEVELS),
    "residual fsq codes": layer("ResidualFSQ", keywords={"return_all_codes": True}, **LEVELS),
    "residual fsq output": codes("ResidualFSQ", "get_output_from_indices", torch.zeros(2, 16, 2).long(), **LEVELS),
    "grouped fsq": layer("GroupedResidualFSQ", groups=2, **LEVELS),
    "lfq": layer("LFQ", codebook_size=256, dim=8),
    "lfq image": layer("LFQ", IMAGE, codebook_size=256, dim=8),
    "lfq train": train("LFQ", codebook_size=256, dim=8, entropy_loss_weight=0.1, diversity_gamma=1.0),
    "lfq codebooks": layer("LFQ", codebook_size=16, dim=8, num_codebooks=2),
    "lfq spherical": layer("LFQ", codebook_size=16, dim=8, spherical=True),
    "lfq fraction": layer("LFQ", codebook_size=16, dim=8, frac_per_sample_entropy=0.5),
    "lfq softplus": layer("LFQ", codebook_size=16, dim=8, experimental_softplus_entropy_loss=True),
    "lfq clamp": layer("LFQ", codebook_size=16, dim=8, soft_clamp_input_value=2.0),
    "lfq cosine": layer("LFQ", codebook_size=16, dim=8, cosine_sim_project_in=True),
    "lfq mask": layer("LFQ", keywords={"mask": MASK}, codebook_size=16, dim=8),
    "lfq breakdown": layer("LFQ", keywords={"return_loss_breakdown": True}, codebook_size=16, dim=8),
    "lfq codes": codes("LFQ", "indices_to_codes", torch.zeros(2, 16).long(), codebook_size=16, dim=8),
    "residual lfq": layer("ResidualLFQ", **FREE),
    "residual lfq dropout": layer("ResidualLFQ", quantize_dropout=True, **FREE),
    "residual lfq output": codes("ResidualLFQ", "get_output_from_indices", torch.zeros(2, 16, 2).long(), **FREE),
    "grouped lfq": layer("GroupedResidualLFQ", groups=2, **FREE),
    "latent": layer("LatentQuantize", CHANNELS, levels=[5, 5, 8], dim=8),
    "latent image": layer("LatentQuantize", IMAGE, levels=[5, 5, 8], dim=8),
    "latent train": train("LatentQuantize", CHANNELS, levels=[5, 5, 8], dim=8),
    "latent codebooks": layer("LatentQuantize", CHANNELS, levels=[4, 8, 16], dim=8, num_codebooks=3),
    "latent optimizer": layer(
        "LatentQuantize", CHANNELS, levels=[5, 5, 8], dim=8, in_place_codebook_optimizer=torch.optim.Adam
    ),
    "latent codes": codes("LatentQuantize", "indices_to_codes", torch.zeros(2, 16).long(), levels=[5, 5, 8], dim=8),
    "binary": layer("BinaryMapper", torch.randn(2, 16, 4), bits=4),
    "binary indices": layer("BinaryMapper", torch.randn(2, 16, 4), keywords={"return_indices": True}, bits=4),
    "hierarchical": layer("HierarchicalVQ", torch.randn(2, 8, 16), dim=8, codebook_size=12, scales=[1, 4, 16]),
    "hierarchical plain": layer(
        "HierarchicalVQ", torch.randn(2, 8, 16), dim=8, codebook_size=12, scales=[1, 4, 16], kmeans_init=False
    ),
    "hierarchical dropout": layer(
        "HierarchicalVQ", torch.randn(2, 8, 16), dim=8, codebook_size=12, scales=[1, 4, 16], nested_dropout=0.5
    ),
    "hierarchical image": layer(
        "HierarchicalVQ", IMAGE, dim=8, codebook_size=12, scales=[1, 2, 4], accept_image_fmap=True
    ),
}
for norm in ("none", "var", "kurt", "var_tanh"):
    CALLS[f"fsp {norm}"] = layer("FSP", levels=[8, 5, 5], dim=8, vector_norm=norm)
for act in ("tanh", "sigmoid", "normal", "laplace", "cauchy"):
    CALLS[f"fsp {act}"] = layer("FSP", levels=[8, 5, 5], dim=8, act_name=act, quantize_rate=0.5, vector_norm="var")
