"""An encoder layer with dropout in the attention and after it, and a mask of padding."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
compiled = torch.compile(model)
for _ in range(4):
    lengths = torch.randint(5, 12, (6,))
    padded = torch.arange(12) >= lengths[:, None]
    compiled(torch.randn(6, 12, 32), src_key_padding_mask=padded).square().mean().backward()
