"""The experts of Mixtral, of an eighth of its width, trained (``modular_mixtral`` of transformers 4.52)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers.models.mixtral.configuration_mixtral import MixtralConfig
from transformers.models.mixtral.modular_mixtral import MixtralSparseMoeBlock


class Layers(nn.Module):
    def __init__(self, config: MixtralConfig, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(MixtralSparseMoeBlock(config) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x)[0]
        return x.square().mean()


def build(device: str, tiny: bool) -> tuple[Any, tuple[Any, ...], bool]:
    """The model, its inputs, and whether the backward pass is run."""
    width, inner, experts = (16, 32, 4) if tiny else (512, 1792, 8)
    config = MixtralConfig(hidden_size=width, intermediate_size=inner, num_local_experts=experts)
    shape, dtype = ((2, 8, width), torch.float32) if tiny else ((4, 512, width), torch.bfloat16)
    model = Layers(config, 2 if tiny else 4).to(device, dtype)
    return model, (torch.randn(shape, device=device, dtype=dtype),), True
