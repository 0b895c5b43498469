"""An autoencoder with residual vector quantization (vector-quantize-pytorch)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from vector_quantize_pytorch import ResidualVQ


class Quantized(nn.Module):
    def __init__(self, width: int, words: int, stages: int) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.quantize = ResidualVQ(dim=width, num_quantizers=stages, codebook_size=words)
        self.decode = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        quantized, _, loss = self.quantize(self.encode(x))
        return (self.decode(quantized) - x).square().mean() + loss.sum()


def build(device: str, tiny: bool) -> tuple[Any, tuple[Any, ...], bool]:
    """The model, its inputs, and whether the backward pass is run."""
    width, words, stages = (16, 8, 2) if tiny else (256, 1024, 8)
    shape = (2, 8, width) if tiny else (16, 1024, width)
    return Quantized(width, words, stages).to(device), (torch.randn(shape, device=device),), True
