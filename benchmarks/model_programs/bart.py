"""BART-large in float16, encoder and decoder (transformers)."""

from __future__ import annotations

from typing import Any

import torch
from transformers import BartConfig, BartModel


def build(device: str, tiny: bool) -> tuple[Any, tuple[Any, ...], bool]:
    """The model, its inputs, and whether the backward pass is run."""
    sizes: dict[str, Any] = {}
    if tiny:
        sizes = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
    config = BartConfig(**sizes, use_cache=False)
    model = BartModel(config).to(device, torch.float16).eval()
    batch, length = (2, 16) if tiny else (8, 512)
    words = torch.randint(4, config.vocab_size, (batch, length), device=device)
    return model, (words,), False
