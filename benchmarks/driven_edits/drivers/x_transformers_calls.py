"""Calls of x-transformers that reach what ``fix --unsafe`` edits. Needs einops, einx, loguru and torch-einops-utils."""

# mypy: ignore-errors

import torch
from common import J, K
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper
from x_transformers.discover_wrapper import DiscoverDecoder, TPREncoder
from x_transformers.x_transformers import calc_z_loss

SIZES = {"dim": 16, "depth": 1, "heads": 2, "attn_dim_head": 8}
IGNORED = -100


def tokens(length=6, most=9):
    return torch.randint(1, most, (2, length))


def padded(length=6):
    return tokens(length).masked_fill(torch.arange(length) > 3, IGNORED)


def wrapped(model_options=None, layer_options=None, **options):
    layers = Decoder(**SIZES, **(layer_options or {}))
    model = TransformerWrapper(num_tokens=9, max_seq_len=12, attn_layers=layers, **(model_options or {}))
    return AutoregressiveWrapper(model, **options)


def looped():
    return wrapped({"looped": True, "max_looped_steps": 3}, {"pre_and_post_norm": True})


def continuous():
    return wrapped({"add_continuous_pred_head": True})


def attention_loss():
    return wrapped(add_attn_z_loss=True)


for make in (looped, continuous, attention_loss):
    J(make.__name__, lambda make=make: (make(), tokens()), True)
    J(f"{make.__name__} eval", lambda make=make: (make().eval(), tokens()))
    J(f"{make.__name__} padded", lambda make=make: (make(), padded()), True)
    J(f"{make.__name__} all padded", lambda make=make: (make(), torch.full((2, 6), IGNORED)), True)
    J(f"{make.__name__} of lengths", lambda make=make: (make(), tokens(), K(lens=torch.tensor([3, 6]))), True)
    J(f"{make.__name__} with outputs", lambda make=make: (make(), tokens(), K(return_outputs=True)), True)


def scores():
    return [torch.randn(2, 2, 6, 6) for _ in range(2)]


J("z_loss", lambda: (calc_z_loss, scores()), True)
J("z_loss of some", lambda: (calc_z_loss, scores(), torch.arange(12).view(2, 6) < 8), True)
J("z_loss of none", lambda: (calc_z_loss, scores(), torch.zeros(2, 6, dtype=torch.bool), 0.5), True)
J("z_loss of all", lambda: (calc_z_loss, scores(), torch.ones(2, 6, dtype=torch.bool), 0.5), True)


def encoder():
    return TPREncoder(dim=16, num_fillers=5, num_roles=6, filler_dim=4, role_dim=4)


def roles():
    return torch.arange(6).repeat(2, 1)


def bottleneck():
    model = TransformerWrapper(num_tokens=7, max_seq_len=12, attn_layers=Decoder(**SIZES))
    return DiscoverDecoder(decoder=model, num_fillers=5, bos_id=5, pad_id=6, max_seq_len=6).eval()


def surgery(old, new, *role_ids):
    return bottleneck().surgery(old, new, *role_ids, encoder())


ROWS = torch.tensor([[0, 1, 2, 3, 6, 6], [4, 3, 2, 1, 0, 1]])

J("TPREncoder", lambda: (encoder(), tokens(most=5), roles()), True)
J("TPREncoder masked", lambda: (encoder(), tokens(most=5), roles(), torch.arange(12).view(2, 6) < 8), True)
J("TPREncoder of unknown tokens", lambda: (encoder(), tokens(most=5) + 3, roles()))
J("TPREncoder of negative tokens", lambda: (encoder(), tokens(most=5) - 3, roles()))
J("TPREncoder of unknown roles", lambda: (encoder(), tokens(most=5), roles() + 3))
J(
    "fit",
    lambda: (
        lambda x, r, y: encoder().fit(x, r, y, steps=2, batch_size=3),
        tokens(most=5),
        roles(),
        torch.randn(2, 16),
    ),
    True,
)
J("surgery", lambda: (surgery, ROWS.clone(), ROWS.clone(), roles(), roles()))
J("surgery of some", lambda: (surgery, ROWS.clone(), torch.where(ROWS == 3, 0, ROWS), roles(), roles().flip(1)))
J("surgery of padding", lambda: (surgery, ROWS.clone(), torch.where(ROWS == 6, 0, ROWS), roles(), roles()))
J("surgery of unknown tokens", lambda: (surgery, ROWS.clone(), torch.where(ROWS == 3, 5, ROWS), roles(), roles()))
J("surgery from unknown tokens", lambda: (surgery, torch.where(ROWS == 3, 9, ROWS), ROWS.clone(), roles(), roles()))
