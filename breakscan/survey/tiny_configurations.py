"""Small configurations of a type of models of transformers, for models that compile in seconds.

Sizes depend on one another in ways that a configuration does not tell, such as heads times their size.  So there are
several to be tried: in the first ones most is small, in the later ones more is as its author chose it.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Sizes = tuple[tuple[re.Pattern[str], int], ...]
_LAYERS = r"(num|n|encoder|decoder|hidden|text|vision|audio)?_?(\w+_)?(layers?|blocks|depth|n_layer)$"
_KEY_VALUE_HEADS = r"(num_|n_)?(\w+_)?(key_value_heads|kv_heads)$"
_HEADS = r"(num_|n_)?(\w+_)?(heads?|n_head)$"
_INNER = r"(moe_|shared_\w*)?(intermediate_size|ffn_dim|d_ff|n_inner|ffn_hidden_size)$"
_WIDTH = r"(\w+_)?(hidden_size|d_model|n_embd|embed_dim|hidden_dim|dim|embedding_size|width|projection_dim)$"
_HEAD_WIDTH = r"(head_dim|d_kv|qk_nope_head_dim|v_head_dim|qk_rope_head_dim|kv_channels|rotary_dim)$"
_GROUPS = r"(\w+_)?(n_groups?|topk_group|ngroups)$"
_COUNTS: Sizes = (
    (re.compile(r"(\w+_)?vocab_size(_\w+)?$"), 99),
    (re.compile(r"(max_position_embeddings|n_positions|max_\w*positions|max_sequence_length|block_size)$"), 128),
    (re.compile(r"(num_|n_)?(\w+_)?(experts)$"), 4),
    (re.compile(r"(\w*experts_per_tok\w*|top_k|moe_topk|num_selected_experts|moe_k)$"), 2),
    (re.compile(r"image_size$"), 32),
    (re.compile(r"patch_size$"), 8),
    (re.compile(r"(num_queries|num_query_tokens|num_latents|num_object_queries)$"), 6),
)
SIZES: Sizes = (
    (re.compile(_LAYERS), 2),
    (re.compile(_KEY_VALUE_HEADS), 2),
    (re.compile(_HEADS), 4),
    (re.compile(_INNER), 48),
    (re.compile(_WIDTH), 32),
    (re.compile(_HEAD_WIDTH), 8),
    *_COUNTS,
)
"""Names of settings, and what they are at most."""
LAYERS: Sizes = SIZES[:1]
_ABSENT: Mapping[str, int] = {"head_dim": 8, "num_key_value_heads": 2, "prediction_length": 4}
"""What a model needs though its configuration says nothing of it by default."""
_MOST_LAYERS = 12
VOCABULARY = 99


def configurations(make: Callable[..., Any]) -> Iterator[tuple[Callable[[], Any], bool]]:
    """Makers of configurations, by and large the smallest first, each with whether all its sizes are small.

    ``make`` is the class of the configuration.
    """
    yield lambda: _shrunk(make(), SIZES), True
    yield lambda: _shrunk(make(), LAYERS), False
    yield lambda: _constructed(make(), _at_most, 1), True
    yield lambda: _constructed(make(), _in_proportion, 2), False
    yield make, False


def is_configuration(value: object) -> bool:
    """Whether a setting is a configuration itself, such as that of an encoder."""
    return hasattr(value, "model_type") and hasattr(value, "to_dict")


def _shrunk(config: Any, sizes: Sizes) -> Any:
    """The configuration with settings that are smaller than it came with, and those in it."""
    for name, value in list(vars(config).items()):
        if is_configuration(value):
            _shrunk(value, sizes)
        elif type(value) is int and not name.startswith("_"):
            small = _named(sizes, name)
            if small is not None and value > small:
                _set(config, name, small)
            elif sizes is SIZES and name.endswith("token_id") and value >= VOCABULARY:
                _set(config, name, 3)
    return config


def _set(config: Any, name: str, value: int) -> None:
    # Some are computed from others.
    with contextlib.suppress(AttributeError, ValueError, TypeError):
        setattr(config, name, value)


def _named(sizes: Sizes, name: str) -> int | None:
    return next((size for pattern, size in sizes if pattern.fullmatch(name)), None)


def _constructed(config: Any, smaller: Callable[[Any, str, int], int], rounds: int) -> Any:
    """A configuration of the same class that is made with smaller settings, so that what its class computes of them
    follows.  Layers are as many as hold each kind of layer ``rounds`` times."""
    plain = type(config)()
    takes = _settings(type(config))
    layers, kept = _layers(config, rounds)
    given: dict[str, Any] = {}
    for name, own in takes.items():
        value = getattr(config, name, None)
        if is_configuration(value):
            given[name] = _constructed(value, smaller, rounds)
        elif type(value) is int:
            if re.fullmatch(_LAYERS, name):
                given[name] = min(value, kept) if value >= layers else value * kept // layers
            elif name.endswith("token_id") and value >= VOCABULARY:
                given[name] = 3
            else:
                given[name] = smaller(config, name, value)
        elif isinstance(value, list) and len(value) == layers and own is not None:
            given[name] = value[:kept]
        elif value is None and name in _ABSENT:
            given[name] = smaller(config, name, _ABSENT[name])
        elif own is not None and value != getattr(plain, name, None):
            given[name] = value
    return type(config)(**given)


def _settings(kind: Any) -> dict[str, Any]:
    """What a class of configurations takes, and what each setting is by default."""
    parameters = inspect.signature(kind).parameters.values()
    default = inspect.Parameter.empty
    return {
        one.name: None if one.default is default else one.default
        for one in parameters
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    }


def _layers(config: Any, rounds: int) -> tuple[int, int]:
    """How many layers a configuration has, and how many of the first hold each kind of layer ``rounds`` times."""
    layers = getattr(config, "num_hidden_layers", None)
    if type(layers) is not int or layers < 1:
        return 1, 2
    needed = 2
    for kinds in vars(config).values():
        if isinstance(kinds, list | tuple) and len(kinds) == layers and all(isinstance(one, str) for one in kinds):
            for kind in set(kinds):
                places = [place for place, one in enumerate(kinds, 1) if one == kind]
                needed = max(needed, places[min(rounds, len(places)) - 1])
    return layers, min(needed, _MOST_LAYERS)


def _at_most(config: Any, name: str, value: int) -> int:
    """A setting that is no larger than :data:`SIZES` says; as many heads of keys as of queries where that is so."""
    if re.fullmatch(_KEY_VALUE_HEADS, name) and value == getattr(config, "num_attention_heads", None):
        return min(value, 4)
    if re.fullmatch(_GROUPS, name):
        return min(value, 2)
    small = _named(SIZES, name)
    return value if small is None else min(value, small)


def _in_proportion(config: Any, name: str, value: int) -> int:
    """A setting where widths and heads are divided by one number: what is a product of others stays one."""
    if re.fullmatch(_HEAD_WIDTH, name):
        return value
    if any(re.fullmatch(one, name) for one in (_HEADS, _KEY_VALUE_HEADS, _WIDTH, _INNER)):
        factor = _factor(config)
        return value // factor if value % factor == 0 else value
    small = _named(_COUNTS[:3], name)
    return value if small is None else min(value, small)


def _factor(config: Any) -> int:
    """What the heads of a model can be divided by, so that some remain."""
    heads = [
        value
        for name, value in vars(config).items()
        if type(value) is int and value > 1 and (re.fullmatch(_HEADS, name) or re.fullmatch(_KEY_VALUE_HEADS, name))
    ]
    common = math.gcd(*heads) if heads else 1
    return common if set(heads) - {common} else max(1, common // 4)
