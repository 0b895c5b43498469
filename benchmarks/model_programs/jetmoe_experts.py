"""The mixture-of-experts layer of JetMoE at half its width, trained in bfloat16 (transformers before 5)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers.models.jetmoe.configuration_jetmoe import JetMoeConfig
from transformers.models.jetmoe.modeling_jetmoe import JetMoeMoE


class Layers(nn.Module):
    def __init__(self, config: JetMoeConfig, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(JetMoeMoE(config) for _ in range(depth))
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x)[0]
        return x.square().mean()


def build(device: str, tiny: bool) -> tuple[Any, tuple[Any, ...], bool]:
    """The model, its inputs, and whether the backward pass is run."""
    width, inner, experts = (16, 32, 4) if tiny else (1024, 2816, 8)
    config = JetMoeConfig(hidden_size=width, intermediate_size=inner, num_local_experts=experts)
    shape, dtype = ((2, 8, width), torch.float32) if tiny else ((4, 512, width), torch.bfloat16)
    model = Layers(config, 2 if tiny else 4).to(device, dtype)
    return model, (torch.randn(shape, device=device, dtype=dtype),), True
