"""diffusers: a Stable Diffusion pipeline with random weights, ``pipe.unet.compile()``, at two sizes of images."""

import torch
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel

torch.manual_seed(0)
unet = UNet2DConditionModel(
    sample_size=16,
    in_channels=4,
    out_channels=4,
    block_out_channels=(32, 64),
    layers_per_block=1,
    down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
    up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    cross_attention_dim=32,
    attention_head_dim=8,
    norm_num_groups=8,
)
vae = AutoencoderKL(
    block_out_channels=(32, 32),
    down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2,
    latent_channels=4,
    norm_num_groups=8,
)
pipe = StableDiffusionPipeline(
    vae=vae,
    text_encoder=None,
    tokenizer=None,
    unet=unet,
    scheduler=DDIMScheduler(),
    safety_checker=None,
    feature_extractor=None,
    requires_safety_checker=False,
)
pipe.set_progress_bar_config(disable=True)
pipe.unet.compile()
pipe.vae.decode = torch.compile(pipe.vae.decode)

for size in (32, 48):
    images = pipe(
        prompt_embeds=torch.randn(1, 7, 32),
        negative_prompt_embeds=torch.randn(1, 7, 32),
        height=size,
        width=size,
        num_inference_steps=3,
        output_type="pt",
    ).images
print(images.shape)
