"""The mixture-of-experts layer of Switch Transformers, base with 8 experts, trained (transformers before 5)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers.models.switch_transformers.configuration_switch_transformers import SwitchTransformersConfig
from transformers.models.switch_transformers.modeling_switch_transformers import SwitchTransformersSparseMLP


class Layers(nn.Module):
    def __init__(self, config: SwitchTransformersConfig, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(SwitchTransformersSparseMLP(config) for _ in range(depth))
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x)[0]
        return x.square().mean()


def build(device: str, tiny: bool) -> tuple[Any, tuple[Any, ...], bool]:
    """The model, its inputs, and whether the backward pass is run."""
    sizes = {"d_model": 16, "d_ff": 32, "num_experts": 4} if tiny else {"d_model": 768, "d_ff": 2048, "num_experts": 8}
    config = SwitchTransformersConfig(**sizes, expert_capacity=64, dropout_rate=0.0)
    shape = (2, 8, 16) if tiny else (8, 256, 768)
    return Layers(config, 2 if tiny else 4).to(device), (torch.randn(shape, device=device),), True
