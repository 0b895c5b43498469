"""The architectures of transformers, each in a tiny configuration with random weights, for surveys.

[[model]]
name = "transformers"
build = "breakscan.survey.transformers_models:build"
names = "breakscan.survey.transformers_models:names"
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Sizes = tuple[tuple[re.Pattern[str], int], ...]
SIZES: Sizes = (
    (re.compile(r"(num|n|encoder|decoder|hidden|text|vision|audio)?_?(\w+_)?(layers?|blocks|depth|n_layer)$"), 2),
    (re.compile(r"(num_|n_)?(\w+_)?(key_value_heads|kv_heads)$"), 2),
    (re.compile(r"(num_|n_)?(\w+_)?(heads?|n_head)$"), 4),
    (re.compile(r"(moe_|shared_\w*)?(intermediate_size|ffn_dim|d_ff|n_inner|ffn_hidden_size)$"), 48),
    (
        re.compile(
            r"(\w+_)?(hidden_size|d_model|n_embd|embed_dim|hidden_dim|dim|embedding_size|width|projection_dim)$"
        ),
        32,
    ),
    (re.compile(r"(head_dim|d_kv|qk_nope_head_dim|v_head_dim|qk_rope_head_dim|kv_channels|rotary_dim)$"), 8),
    (re.compile(r"(\w+_)?vocab_size(_\w+)?$"), 99),
    (re.compile(r"(max_position_embeddings|n_positions|max_\w*positions|max_sequence_length|block_size)$"), 128),
    (re.compile(r"(num_|n_)?(\w+_)?(experts)$"), 4),
    (re.compile(r"(\w*experts_per_tok\w*|top_k|moe_topk|num_selected_experts|moe_k)$"), 2),
    (re.compile(r"image_size$"), 32),
    (re.compile(r"patch_size$"), 8),
    (re.compile(r"(num_queries|num_query_tokens|num_latents|num_object_queries)$"), 6),
)
"""Names of settings, and what they are at most."""
LAYERS: Sizes = SIZES[:1]
LARGEST = 80_000_000
"""Parameters of a model whose sizes stay as they are."""
LENGTH = 16
"""Tokens, and steps of audio features."""


def names() -> list[str]:
    """The types of models that ``AutoModel`` knows."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    return sorted(auto.MODEL_MAPPING_NAMES)


def build(name: str) -> tuple[Any, Mapping[str, Any]]:
    """A model of a type that runs, and the inputs of a call.

    Sizes that depend on one another in a way that is not known here stay as they are, if the model is small with few
    layers.  Raises what the model raises where none runs.
    """
    library: Any = importlib.import_module("transformers")
    failure: Exception | None = None
    for sizes in (SIZES, LAYERS):
        config = library.CONFIG_MAPPING[name]()
        shrink(config, sizes)
        if sizes is not SIZES and _parameters(library, config) > LARGEST:
            continue
        found = _that_runs(library, config)
        if not isinstance(found, Exception):
            return found
        failure = failure or found
    assert failure is not None
    raise failure


def _parameters(library: Any, config: Any) -> float:
    """How many parameters a model has; infinitely many where it cannot be built."""
    import torch

    try:
        with torch.device("meta"):
            return float(sum(one.numel() for one in library.AutoModel.from_config(config).parameters()))
    except Exception:
        return float("inf")


def _that_runs(library: Any, config: Any) -> tuple[Any, dict[str, Any]] | Exception:
    """A model and the first inputs with which it runs, or why none does.  Raises ImportError for want of a package."""
    import torch

    failure: Exception | None = None
    try:
        model = library.AutoModel.from_config(config).eval()
        for given in inputs(model, config):
            with torch.no_grad(), _Caught() as caught:
                model(**given)
            if caught.error is None:
                return model, given
            failure = failure or caught.error
    except ImportError:
        raise
    except Exception as error:
        return error
    assert failure is not None
    return failure


class _Caught:
    """Keeps the error of a block."""

    error: Exception | None = None

    def __enter__(self) -> _Caught:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        self.error = error if isinstance(error, Exception) else None
        return self.error is not None


def shrink(config: Any, sizes: Sizes) -> None:
    """Makes a configuration small, and those in it."""
    for name, value in list(vars(config).items()):
        if hasattr(value, "model_type") and hasattr(value, "to_dict"):
            shrink(value, sizes)
        elif type(value) is int and not name.startswith("_"):
            small = next((size for pattern, size in sizes if pattern.fullmatch(name)), None)
            if small is not None and value > small:
                _set(config, name, small)
            elif sizes is SIZES and name.endswith("token_id") and value >= 99:
                _set(config, name, 3)


def _set(config: Any, name: str, value: int) -> None:
    # Some are computed from others.
    with contextlib.suppress(AttributeError, ValueError, TypeError):
        setattr(config, name, value)


def inputs(model: Any, config: Any) -> Iterator[dict[str, Any]]:
    """What a model may need, by the names of what its ``forward`` takes: its main input, then images besides."""
    import torch

    takes = inspect.signature(model.forward).parameters
    image = getattr(config, "image_size", None) or getattr(getattr(config, "vision_config", None), "image_size", 32)
    height, width = image if isinstance(image, list | tuple) else (image, image)
    channels = getattr(config, "num_channels", 3)
    audio = (1, 4000) if "codebook_size" in vars(config) or "audio_channels" in vars(config) else (4000,)
    mel = getattr(config, "num_mel_bins", None) or getattr(config, "feature_size", None) or 80
    frames = 2 * getattr(config, "max_source_positions", LENGTH)
    makers: dict[str, Callable[[], torch.Tensor]] = {
        "input_ids": lambda: torch.randint(4, 90, (2, LENGTH)),
        "decoder_input_ids": lambda: torch.randint(4, 90, (2, LENGTH)),
        "pixel_values": lambda: torch.randn(2, channels if isinstance(channels, int) else 3, height, width),
        "input_values": lambda: torch.randn(2, *audio),
        "input_features": lambda: torch.randn(2, mel, frames),
        "bbox": lambda: torch.zeros(2, LENGTH, 4, dtype=torch.long),
    }
    wanted = [model.main_input_name, *(["decoder_input_ids"] if getattr(config, "is_encoder_decoder", False) else [])]
    for names in (wanted, [*wanted, "input_ids", "pixel_values"]):
        yield {name: makers[name]() for name in dict.fromkeys(names) if name in makers and name in takes}
