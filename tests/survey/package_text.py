"""A package of layers, as its maintainers would write it."""

from __future__ import annotations

from pathlib import Path

LAYERS = '''
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Callable, Literal, Optional

import torch
from torch import Tensor, nn


class Branchy(nn.Module):
    """Scales.

    >>> open("note.txt", "w").close()
    >>> torch.set_default_dtype(torch.float64)
    >>> layer = Branchy(gone)
    >>> layer = Branchy(5).cuda()
    >>> layer(torch.ones(3, 7))
    >>> print(layer(torch.ones(3, 5, device="cuda"), scale=2.0))
    """

    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x, scale=1.0):
        if x.size(1) != self.width:
            raise ValueError("wrong width")
        if x.sum() > 0:
            x.mul_(0)
        return x * scale


class Attention(nn.Module):
    def __init__(self, dim: int, num_heads: int, dropout: float, act: Optional[Callable[[Tensor], Tensor]] = None):
        super().__init__()
        if dropout > 0.5:
            raise ValueError("drops too much")
        self.attention = nn.MultiheadAttention(dim, num_heads, dropout, batch_first=True)

    def forward(self, x: Tensor, padding_mask: Tensor) -> Tensor:
        return self.attention(x, x, x, key_padding_mask=~padding_mask)[0]


class Classifier(nn.Module):
    def __init__(self, num_classes=None):
        super().__init__()
        if num_classes is None:
            raise ValueError("num_classes must be given")
        self.unused = nn.Linear(4, num_classes)
        self.linear = nn.Linear(48, num_classes)

    def forward(self, features):
        return self.linear(features)


class ImageEncoder(nn.Module):
    def __init__(self, kind: Literal["small", "large"], sizes: tuple[int, ...]):
        super().__init__()
        assert kind == "small" and len(sizes) == 2
        self.patches = nn.Conv2d(3, 8, 4, 4)

    def forward(self, image: Tensor) -> Tensor:
        if image.size(-1) != 24:
            raise ValueError("the image must have 24 rows")
        return self.patches(image)


class Loss(nn.Module):
    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        if target.is_floating_point():
            raise ValueError("needs classes")
        return nn.functional.cross_entropy(logits, target)


class Stuck(nn.Module):
    def forward(self, x):
        raise RuntimeError("stuck")


class Tokens(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, 8)

    def forward(self, tokens):
        return self.embedding(tokens)


class Wide(nn.Module):
    def __init__(self, hidden_size: int = 30_000):
        super().__init__()
        self.linear = nn.Linear(hidden_size, hidden_size)

    def forward(self, x):
        return self.linear(x)


@dataclass
class Configuration:
    hidden_size: int = 30_000


class Configured(nn.Module):
    def __init__(self, config: Configuration):
        super().__init__()
        self.linear = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x):
        return self.linear(x)


class Deep(Attention):
    def __init__(self, **settings):
        if "num_heads" not in settings:
            raise ValueError("`num_heads` must be given to `layer` of `Deep`")
        super().__init__(dropout=0.0, **settings)


class Many(nn.Module):
    def forward(self, *inputs, scale=None):
        first, second = inputs
        return first @ second.T


class Container(nn.Module):
    pass


class Base(nn.Module, ABC):
    @abstractmethod
    def forward(self, x): ...


class _Own(nn.Module):
    def forward(self, x):
        return x
'''
FILES = {
    "__init__.py": "from torch.nn import Linear\nfrom small_layers.layers import Branchy\n",
    "layers.py": LAYERS,
    "app.py": "from small_layers.layers import Wide\n",
    "broken.py": "import no_such_package\n",
    "_hidden.py": "from torch import nn\nclass Hidden(nn.Linear): ...\n",
    "tests/__init__.py": "raise AssertionError\n",
}


def write_package(folder: Path) -> None:
    """Writes the package ``small_layers`` into a folder."""
    for name, text in FILES.items():
        path = folder / "small_layers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
