"""Names of settings of configurations of transformers, by what they mean, and the sizes of tiny models."""

from __future__ import annotations

import re

VOCABULARY = 99
Sizes = tuple[tuple[re.Pattern[str], int], ...]
LAYER_COUNT = r"(num|n|encoder|decoder|hidden|text|vision|audio)?_?(\w+_)?(layers?|blocks|depth|n_layer)$"
KEY_VALUE_HEADS = r"(num_|n_)?(\w+_)?(key_value_heads|kv_heads)$"
HEADS = r"(num_|n_)?(\w+_)?(heads?|n_head)$"
INNER = r"(moe_|shared_\w*)?(intermediate_size|ffn_dim|d_ff|n_inner|ffn_hidden_size)$"
WIDTH = r"(\w+_)?(hidden_size|d_model|n_embd|embed_dim|hidden_dim|dim|embedding_size|width|projection_dim)$"
HEAD_WIDTH = r"(head_dim|d_kv|qk_nope_head_dim|v_head_dim|qk_rope_head_dim|kv_channels|rotary_dim)$"
GROUPS = r"(\w+_)?(n_groups?|topk_group|ngroups)$"
COUNTS: Sizes = (
    (re.compile(r"(\w+_)?vocab_size(_\w+)?$"), VOCABULARY),
    (re.compile(r"(max_position_embeddings|n_positions|max_\w*positions|max_sequence_length|block_size)$"), 128),
    (re.compile(r"(num_|n_)?(\w+_)?(experts)$"), 4),
    (re.compile(r"(\w*experts_per_tok\w*|top_k|moe_topk|num_selected_experts|moe_k)$"), 2),
    (re.compile(r"image_size$"), 32),
    (re.compile(r"patch_size$"), 8),
    (re.compile(r"(num_queries|num_query_tokens|num_latents|num_object_queries)$"), 6),
)
SIZES: Sizes = (
    (re.compile(LAYER_COUNT), 2),
    (re.compile(KEY_VALUE_HEADS), 2),
    (re.compile(HEADS), 4),
    (re.compile(INNER), 48),
    (re.compile(WIDTH), 32),
    (re.compile(HEAD_WIDTH), 8),
    *COUNTS,
)
"""Names of settings, and what they are at most."""
LAYERS: Sizes = SIZES[:1]
SMALLEST: Sizes = (
    *SIZES,
    (re.compile(r"\w*vocab\w*"), VOCABULARY),
    (re.compile(r"codebook_size"), 64),
    (re.compile(r"(\w+_)?latents"), 32),
    (re.compile(r"(\w+_)?filters"), 8),
    (re.compile(r"(\w+_)?channels"), 32),
    (re.compile(r"(\w+_)?groups"), 2),
    (re.compile(r"num_\w+_per_block"), 2),
)
"""The same with what few models are large by, such as convolutions."""
ABSENT: dict[str, int] = {"head_dim": 8, "num_key_value_heads": 2, "prediction_length": 4}
"""What a model needs though its configuration says nothing of it by default."""
MORE_ABSENT: dict[str, int] = {
    "num_key_value_heads": 2,
    "prediction_length": 4,
    "vocab_size": VOCABULARY,
    "pad_token_id": 0,
    "image_token_id": 3,
    "image_token_index": 3,
    "sliding_window": 16,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
}
"""The same for few models; with them, others are other models."""
