"""Numbers and words that parameters of a constructor usually have, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_WIDTH = "width"
_INTEGERS: tuple[tuple[re.Pattern[str], tuple[Any, ...]], ...] = tuple(
    (re.compile(rf"(.*_)?(?:{pattern})"), values)
    for pattern, values in (
        (r"n?_?heads?|nhead", (2, 1)),
        (r"(num_?|n_?)?(layers?|blocks?|depths?|stages?|levels?|repeats?|recycles?)", (2, 1)),
        (r"(num_?|n_?)?(iters?|iterations?|steps?|epochs?|samples?)", (2, 4)),
        (r"kernel(_?sizes?)?|window(_?sizes?)?|ks", (3, 2)),
        (r"strides?|dilations?|(n_|num_)?groups?|padding|pad|reduction|order", (1, 2)),
        (r"num_embeddings|vocab(ulary)?(_?size)?|num_tokens|n_tokens|codebook_size", (32,)),
        (r"max_(seq_)?len(gth)?|seq_len|length|len|num_patches|context(_length)?|max_position\w*", (16,)),
        (r"patch(_?size)?", (4, 8)),
        (r"((image|img|input|output|out|in|target|crop|pad|spatial)_?)?(size|shape|resolution)|height|h|w", (32, 8, 4)),
        (r"(up|down)?_?(scale|factor|ratio|expansion|multiplier|mult|upscale|rate)(_factor)?", (2, 1)),
        (r"(num_?|n_?)?(class(es)?|labels?|categories|outputs?|targets?)", (4, 2)),
        (r"(spatial_?)?(ndims?|dimensions?)|spatial_dims|n_?d", (2, 3)),
        (r"(num_?|n_?)?experts?", (4,)),
        (r"top_?k|k|n|num_\w+|n_\w+", (2, 4)),
        (r"axis|dims?_?[0-9]?", (_WIDTH, 1)),
        (r"seed|index|idx|start_dim|start", (0, 1)),
        (
            r"\w*(channels?|chans?|ch|features?|feats?|dims?|hidden|planes|embed\w*|width|units|size|filters|d_\w+)",
            (_WIDTH,),
        ),
    )
)
_FLOATS: tuple[tuple[re.Pattern[str], tuple[float, ...]], ...] = tuple(
    (re.compile(rf"(.*_)?(?:{pattern})"), values)
    for pattern, values in (
        (r"p|prob(ability)?|dropout|drop\w*|rate", (0.1,)),
        (r"eps(ilon)?|tol(erance)?", (1e-5,)),
        (r"scale(_factor)?|factor|ratio|upscale", (2.0, 0.5)),
        (r"angle|degrees?", (30.0,)),
    )
)
_TEXTS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(rf"(.*_)?(?:{pattern})"), values)
    for pattern, values in (
        (r"reduction|reduce|aggr\w*|pool\w*|pooling\w*", ("mean", "max", "sum")),
        (r"act\w*|nonlinearity", ("relu", "gelu")),
        (r"norm\w*", ("batch", "layer")),
        (r"padding(_mode)?|pad_mode", ("reflect", "zeros", "same")),
        (r"task", ("binary", "multiclass")),
        (r"mode|interpolation|method", ("bilinear", "nearest", "same")),
        (r"device", ("cpu",)),
    )
)


def integers(name: str, width: int) -> list[int]:
    """For a whole number; ``width`` is what all widths are, so that modules fit each other."""
    found = _named(_INTEGERS, name) or (_WIDTH, 2, 1)
    return [width if one is _WIDTH else one for one in found]


def floats(name: str) -> list[float]:
    """For a number."""
    return list(_named(_FLOATS, name) or (1.0, 0.5, 0.1))


def texts(name: str) -> list[str]:
    """For a word."""
    return list(_named(_TEXTS, name) or ("relu", "mean"))


def of_name_alone(name: str, width: int) -> list[Any]:
    """Where there is nothing but a name; none where it says nothing."""
    for table in (_INTEGERS, _FLOATS, _TEXTS):
        found = _named(table, name)
        if found is not None:
            return [width if one is _WIDTH else one for one in found]
    return []


def _named(table: Iterable[tuple[re.Pattern[str], tuple[Any, ...]]], name: str) -> tuple[Any, ...] | None:
    return next((found for pattern, found in table if pattern.fullmatch(name)), None)
