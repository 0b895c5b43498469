"""Small configurations of a type of models of transformers, for models that compile in seconds.

Sizes depend on one another in ways that a configuration does not show, such as heads times their size.  So there are
several to be tried: in the first ones most is small, in the later ones more is as its author chose it.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

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
"""Settings that a model needs, and that its configuration lacks by default."""
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
Smaller = Callable[[Any, str, int], int]
_MOST_LAYERS = 12


def configurations(make: Callable[..., Any]) -> Iterator[tuple[Callable[[], Any], bool]]:
    """Makers of configurations, by and large the smallest first, each with whether all its sizes are small.

    ``make`` is the class of the configuration.
    """
    yield lambda: _shrunk(make(), SIZES), True
    yield lambda: _shrunk(make(), LAYERS), False
    yield lambda: _constructed(make(), _at_most, 1), True
    yield lambda: _constructed(make(), _in_proportion, 2), False
    yield lambda: _shrunk(make(), SMALLEST), True
    yield lambda: _constructed(make(), _smallest, 2, ABSENT | MORE_ABSENT, whole=True), True
    yield lambda: _constructed(make(), _few_heads, 2, MORE_ABSENT, whole=True), False
    yield make, False


def is_configuration(value: object) -> bool:
    """True if a setting is a configuration itself, such as that of an encoder."""
    return hasattr(value, "model_type") and hasattr(value, "to_dict")


def _shrunk(config: Any, sizes: Sizes) -> Any:
    """The configuration with settings that are smaller than it came with, and those in it."""
    for name, value in list(vars(config).items()):
        if is_configuration(value):
            _shrunk(value, sizes)
        elif name.startswith("_"):
            continue
        elif type(value) is int:
            small = _named(sizes, name)
            if small is not None and value > small:
                _set(config, name, small)
            elif sizes is not LAYERS and name.endswith("token_id") and value >= VOCABULARY:
                _set(config, name, 3)
        elif sizes is SMALLEST and _of_stages(name, value):
            _set(config, name, _each(config, name, value, _smallest))
    if sizes is SMALLEST:
        for name, value in _sections(vars(config)).items():
            _set(config, name, value)
    return config


def _set(config: Any, name: str, value: object) -> None:
    # Some are computed from others.
    with contextlib.suppress(AttributeError, ValueError, TypeError):
        setattr(config, name, value)


def _named(sizes: Sizes, name: str) -> int | None:
    return next((size for pattern, size in sizes if pattern.fullmatch(name)), None)


def _of_stages(name: str, value: object) -> bool:
    """True if a setting has a number for each stage of a model."""
    numbers = isinstance(value, list | tuple) and len(value) > 0 and all(type(one) is int for one in value)
    return numbers and not name.endswith(("token_id", "token_ids"))


def _each(config: Any, name: str, values: Sequence[int], smaller: Smaller) -> list[int]:
    """The numbers of a setting, each as if it were the setting: those of ``depths`` as a depth."""
    single = name if _named(SMALLEST, name) is not None else name.removesuffix("s")
    return [smaller(config, single, value) for value in values]


def _value(config: Any, name: str) -> Any:
    """A setting, also where reading it raises because it is another one in each layer; None without it."""
    own = vars(config)
    return own[name] if name in own else getattr(config, name, None)


def _constructed(
    config: Any, smaller: Smaller, rounds: int, absent: Mapping[str, int] = ABSENT, whole: bool = False
) -> Any:
    """A configuration of the same class that is made with smaller settings, so that what its class computes of them
    follows.  Layers are as many as hold each kind of layer ``rounds`` times.

    ``whole``: what is in lists is smaller, too, and lists that have something for each layer are not left to the class.
    """
    plain = type(config)()
    takes = _settings(type(config))
    layers, kept = _layers(config, rounds)
    given: dict[str, Any] = {}
    for name, own in takes.items():
        value = _value(config, name)
        if is_configuration(value):
            given[name] = _constructed(value, smaller, rounds, absent, whole)
        elif type(value) is int:
            if isinstance(own, str):
                continue  # such as "auto"
            if re.fullmatch(LAYER_COUNT, name):
                given[name] = min(value, kept) if value >= layers or value <= 2 else value * kept // layers
            elif name.endswith("token_id") and value >= VOCABULARY:
                given[name] = 3
            else:
                given[name] = smaller(config, name, value)
        elif isinstance(value, list) and len(value) == layers and (whole or own is not None):
            few = value[:kept]
            given[name] = _each(config, name, few, smaller) if whole and _of_stages(name, few) else few
        elif whole and _of_stages(name, value):
            given[name] = _each(config, name, value, smaller)
        elif value is None and name in absent:
            given[name] = smaller(config, name, absent[name])
        elif own is not None and value != _value(plain, name):
            given[name] = value
    if whole:
        given |= {name: value for name, value in _sections({**vars(config), **given}).items() if name in takes}
    return type(config)(**given)


def _sections(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that hold sections of a rotary embedding, which have to fit half of what is rotated of a head."""
    hidden, heads = settings.get("hidden_size"), settings.get("num_attention_heads")
    width = settings.get("head_dim") or (hidden // heads if type(hidden) is type(heads) is int and heads else 0)
    found: dict[str, Any] = {}
    for name, value in settings.items():
        rope = value if isinstance(value, dict) else {name: value}
        # Where a rotary embedding has none, models that need some have their own, which fit the width they came with.
        sections = rope.get("mrope_section") or ([0] * 3 if "rope_type" in rope else None)
        if width and isinstance(sections, list | tuple):
            part = rope.get("partial_rotary_factor") or settings.get("partial_rotary_factor") or 1
            half = (settings.get("qk_rope_head_dim") or int(width * part)) // 2
            if sum(sections) != half:
                others = half // len(sections)
                fitting = [half - others * (len(sections) - 1), *[others] * (len(sections) - 1)]
                found[name] = {**value, "mrope_section": fitting} if isinstance(value, dict) else fitting
    return found


def _settings(kind: Any) -> dict[str, Any]:
    """The settings of a class of configurations, with their defaults."""
    parameters = inspect.signature(kind).parameters.values()
    default = inspect.Parameter.empty
    return {
        one.name: None if one.default is default else one.default
        for one in parameters
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    }


def _layers(config: Any, rounds: int) -> tuple[int, int]:
    """The number of layers of a configuration, and how many of the first hold each kind of layer ``rounds`` times."""
    layers = _value(config, "num_hidden_layers")
    if type(layers) is not int or layers < 1:
        return 1, 2
    needed = 2
    for kinds in vars(config).values():
        if isinstance(kinds, list | tuple) and len(kinds) == layers and all(isinstance(one, str) for one in kinds):
            for kind in set(kinds):
                places = [place for place, one in enumerate(kinds, 1) if one == kind]
                needed = max(needed, places[min(rounds, len(places)) - 1])
    return layers, min(needed, _MOST_LAYERS)


def _at_most(config: Any, name: str, value: int, sizes: Sizes = SIZES) -> int:
    """A setting that is no larger than the sizes say; as many heads of keys as of queries where that is so."""
    if re.fullmatch(KEY_VALUE_HEADS, name) and value == _value(config, "num_attention_heads"):
        return min(value, 4)
    if re.fullmatch(GROUPS, name):
        return min(value, 2)
    small = _named(sizes, name)
    return value if small is None else min(value, small)


def _smallest(config: Any, name: str, value: int) -> int:
    return _at_most(config, name, value, SMALLEST)


def _in_proportion(config: Any, name: str, value: int) -> int:
    """A setting where widths and heads are divided by one number: what is a product of others stays one."""
    if re.fullmatch(HEAD_WIDTH, name):
        return value
    if any(re.fullmatch(one, name) for one in (HEADS, KEY_VALUE_HEADS, WIDTH, INNER)):
        factor = _factor(config)
        return value // factor if value % factor == 0 else value
    small = _named(COUNTS[:4], name)
    return value if small is None else min(value, small)


def _factor(config: Any) -> int:
    """The divisors of the heads of a model, so that some remain."""
    heads = _all_heads(config)
    common = math.gcd(*heads) if heads else 1
    return common if set(heads) - {common} else max(1, common // 4)


def _few_heads(config: Any, name: str, value: int) -> int:
    """A setting where few heads are left, as wide as they came: what rests on the width of a head holds, such as the
    sections of a rotary embedding."""
    factor = max(1, max(_all_heads(config), default=1) // 4)
    if re.fullmatch(HEAD_WIDTH, name):
        return value
    if any(re.fullmatch(one, name) for one in (HEADS, KEY_VALUE_HEADS)):
        return max(1, value // factor)
    if re.fullmatch(WIDTH, name):
        return value // factor if value % factor == 0 else value
    return _smallest(config, name, value)


def _all_heads(config: Any) -> list[int]:
    return [
        value
        for name, value in vars(config).items()
        if type(value) is int and value > 1 and (re.fullmatch(HEADS, name) or re.fullmatch(KEY_VALUE_HEADS, name))
    ]
