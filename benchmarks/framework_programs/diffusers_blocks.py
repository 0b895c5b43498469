"""diffusers: ``compile_repeated_blocks`` of a Flux transformer with random weights, for two lengths of the prompt."""

import torch
from diffusers import FluxTransformer2DModel

torch.manual_seed(0)
model = FluxTransformer2DModel(
    patch_size=1,
    in_channels=4,
    num_layers=2,
    num_single_layers=2,
    attention_head_dim=16,
    num_attention_heads=2,
    joint_attention_dim=32,
    pooled_projection_dim=32,
    axes_dims_rope=(4, 4, 8),
).eval()
model.compile_repeated_blocks(fullgraph=True)

with torch.no_grad():
    for tokens in (8, 11, 14):
        out = model(
            hidden_states=torch.randn(1, 16, 4),
            encoder_hidden_states=torch.randn(1, tokens, 32),
            pooled_projections=torch.randn(1, 32),
            timestep=torch.tensor([1.0]),
            img_ids=torch.randn(16, 3),
            txt_ids=torch.randn(tokens, 3),
        ).sample
print(out.shape)
