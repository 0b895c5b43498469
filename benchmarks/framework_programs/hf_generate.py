"""transformers: ``generate`` with a static cache and a compiled forward pass, for prompts of two lengths."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=128,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
).eval()
model.generation_config.cache_implementation = "static"
model.forward = torch.compile(model.forward)

for length in (8, 12):
    prompt = torch.randint(3, 128, (2, length))
    out = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False)
print(out.shape)
