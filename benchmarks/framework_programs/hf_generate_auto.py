"""transformers: ``generate`` compiles by itself what its ``compile_config`` says, once the cache is static."""

import torch
from transformers import CompileConfig, Qwen2Config, Qwen2ForCausalLM

torch.manual_seed(0)
model = Qwen2ForCausalLM(
    Qwen2Config(
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
config = CompileConfig(fullgraph=False, dynamic=None, mode=None)
config._compile_all_devices = True
model.generation_config.compile_config = config
model.generation_config.cache_implementation = "static"

for rows in (1, 2, 3):
    prompt = torch.randint(3, 128, (rows, 8))
    out = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=10, do_sample=False)
print(out.shape)
