"""Attention by hashing, with a reversible residual."""

from collections.abc import Callable
from typing import Any

import reformer_pytorch
import torch
from reformer_pytorch import LSHAttention, LSHSelfAttention, Reformer, ReformerLM

DISTRIBUTION, FOLDER = "reformer-pytorch", "reformer_pytorch"

TOKENS = torch.randint(0, 50, (2, 64))
X = torch.rand(2, 64, 32)


def lm(**options):
    return lambda: (
        ReformerLM(num_tokens=50, dim=32, depth=2, max_seq_len=64, heads=2, bucket_size=8, n_hashes=2, **options),
        (TOKENS,),
    )


CALLS: dict[str, Callable[..., Any]] = {
    "lm": lm(),
    "lm causal": lm(causal=True),
    "lm full attention": lm(full_attn_thres=64),
    "lm axial": lm(axial_position_emb=True, axial_position_shape=(8, 8)),
    "lm absolute": lm(absolute_position_emb=True),
    "lm local": lm(n_local_attn_heads=1),
    "lm rezero": lm(use_rezero=True),
    "lm chunks": lm(ff_chunks=4, attn_chunks=2),
    "lm glu": lm(ff_glu=True),
    "lm memory": lm(num_mem_kv=16),
    "lm shared": lm(weight_tie=True),
    "lm embeddings": lm(return_embeddings=True),
    "lm small embedding": lm(emb_dim=16),
    "lm dropout": lm(lsh_dropout=0.1, ff_dropout=0.1, layer_dropout=0.2),
    "reformer": lambda: (Reformer(32, 2, heads=2, bucket_size=8, n_hashes=2), (X,)),
    "lsh self": lambda: (LSHSelfAttention(32, heads=2, bucket_size=8, n_hashes=2), (X,)),
    "lsh self causal": lambda: (LSHSelfAttention(32, heads=2, bucket_size=8, n_hashes=2, causal=True), (X,)),
    "lsh self full": lambda: (LSHSelfAttention(32, heads=2, bucket_size=8, use_full_attn=True), (X,)),
    "lsh self attend across": lambda: (
        LSHSelfAttention(32, heads=2, bucket_size=8, n_hashes=2, attn_chunks=2, attend_across_buckets=True),
        (X,),
    ),
    "lsh": lambda: (LSHAttention(bucket_size=8, n_hashes=2, causal=True), (X, X)),
    "lsh rehash": lambda: (LSHAttention(bucket_size=8, n_hashes=2, random_rotations_per_head=True), (X, X)),
    "lsh no duplicates": lambda: (LSHAttention(bucket_size=8, n_hashes=2, allow_duplicate_attention=False), (X, X)),
    "lsh weights": lambda: (LSHAttention(bucket_size=8, n_hashes=2, return_attn=True), (X, X)),
    "enc dec": lambda: (
        lambda net, s, t: net(s, t),
        (
            reformer_pytorch.ReformerEncDec(
                dim=32,
                enc_num_tokens=50,
                enc_depth=1,
                enc_max_seq_len=64,
                enc_bucket_size=8,
                dec_num_tokens=50,
                dec_depth=1,
                dec_max_seq_len=64,
                dec_bucket_size=8,
                enc_heads=2,
                dec_heads=2,
            ),
            TOKENS,
            TOKENS,
        ),
    ),
    "padded": lambda: (reformer_pytorch.Autopadder(Reformer(32, 1, heads=2, bucket_size=8)), (X[:, :50],)),
    "recorder": lambda: (reformer_pytorch.Recorder(Reformer(32, 1, heads=2, bucket_size=8)), (X,)),
    "training": lambda: (
        reformer_pytorch.generative_tools.TrainingWrapper(
            ReformerLM(num_tokens=50, dim=32, depth=1, max_seq_len=64, heads=2, bucket_size=8, causal=True)
        ),
        (TOKENS,),
    ),
    "generate": lambda: (
        lambda net, start: net.generate(start, 2),
        (
            reformer_pytorch.generative_tools.TrainingWrapper(
                ReformerLM(num_tokens=50, dim=32, depth=1, max_seq_len=64, heads=2, bucket_size=8, causal=True)
            ),
            TOKENS[:, :16],
        ),
    ),
}
