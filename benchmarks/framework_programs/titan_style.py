"""torchtitan's way: each TransformerBlock is compiled with ``fullgraph=True``, then sharded by FSDP2; two ranks of
``torchrun`` with gloo."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (w(x).view(batch, length, self.heads, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(mixed.transpose(1, 2).reshape(batch, length, width))


class TransformerBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.w1, self.w2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.w2(nn.functional.silu(self.w1(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, words=64, width=32, layers=3):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleDict({str(n): TransformerBlock(width, 4) for n in range(layers)})
        self.norm = nn.RMSNorm(width)
        self.output = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers.values():
            x = layer(x)
        return self.output(self.norm(x))


def apply_compile(model):
    for name, block in model.layers.named_children():
        block.compile(fullgraph=True)
        model.layers.register_module(name, block)


def loss_of(prediction, labels):
    return nn.functional.cross_entropy(prediction.flatten(0, 1).float(), labels.flatten(0, 1))


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = Transformer()
    apply_compile(model)
    for block in model.layers.values():
        fully_shard(block)
    fully_shard(model)
    loss_fn = torch.compile(loss_of)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    torch.manual_seed(dist.get_rank())
    for length in (16, 16, 16, 24):
        tokens = torch.randint(0, 64, (2, length + 1))
        loss = loss_fn(model(tokens[:, :-1]), tokens[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


main()
