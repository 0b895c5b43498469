"""What models of transformers can be called with, by the names of what their ``forward`` takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from breakscan.survey.tiny_configurations import is_configuration

LENGTH = 16
"""Tokens, and steps of audio features."""
_SIDE = 4
"""Patches along a side of an image that is given as patches."""
_FORMS = 5
"""How many forms there are of an input, at most."""
_SAMPLES = 3840
"""Samples of audio: a multiple of the usual steps of codecs."""


def inputs(model: Any, config: Any, asked: Collection[str]) -> Iterator[dict[str, Any]]:
    """What a model may need, one after the other: its main input, then more, in each of the forms that are usual.

    ``asked`` are names that errors of earlier calls held; it may grow meanwhile.
    """
    takes = inspect.signature(model.forward).parameters
    known = _makers(config, takes)
    main = model.main_input_name
    wanted = [main] if isinstance(main, str) else list(main)
    if getattr(config, "is_encoder_decoder", False):
        wanted.append("decoder_input_ids")
    required = [name for name, one in takes.items() if one.default is one.empty]
    seen = set()
    for names in (
        lambda: wanted,
        lambda: [*wanted, "input_ids", "pixel_values"],
        lambda: [*required, *wanted],
        lambda: required,
        lambda: [*required, *wanted, *asked],
        lambda: [*required, *asked],
    ):
        for form in range(_FORMS):
            chosen = {name: known[name] for name in names() if name in takes and name in known}
            which = tuple((name, min(form, len(makers) - 1)) for name, makers in chosen.items())
            if which not in seen:
                seen.add(which)
                yield {name: chosen[name][number]() for name, number in which}


def setting(config: Any, *names: str) -> Any:
    """The first of some settings that a configuration has, or one in it; None without any."""
    for name in names:
        value = getattr(config, name, None)
        if value is not None:
            return value
    for value in list(vars(config).values()):
        if is_configuration(value):
            found = setting(value, *names)
            if found is not None:
                return found
    return None


def _number(config: Any, default: int, *names: str) -> int:
    value = setting(config, *names)
    if isinstance(value, list | tuple) and value:
        value = value[-1]
    return value if type(value) is int and value > 0 else default


def _makers(config: Any, takes: Collection[str]) -> dict[str, Sequence[Callable[[], Any]]]:
    """For each name, makers of the forms that are usual."""
    import torch

    image = getattr(config, "image_size", None) or getattr(getattr(config, "vision_config", None), "image_size", 32)
    height, width = image if isinstance(image, list | tuple) else (image, image)
    channels = _number(config, 3, "num_channels", "in_channels", "in_chans")
    patch = _number(config, 8, "patch_size")
    frames_of_patch = _number(config, 1, "temporal_patch_size")
    of_patch = channels * frames_of_patch * patch * patch
    patches = 2 * _SIDE * _SIDE
    vocabulary = _number(config, 90, "vocab_size")
    codebooks = _number(config, 1, "num_codebooks", "num_channels")
    codec = "codebook_size" in vars(config) or "audio_channels" in vars(config)
    mel = _number(config, 80, "num_mel_bins", "feature_size")
    frames = 2 * (getattr(config, "max_source_positions", None) or LENGTH)
    hidden = _number(config, 32, "hidden_size", "d_model", "n_embd")
    history = _number(config, LENGTH, "context_length") + max(setting(config, "lags_sequence") or [0])
    future = _number(config, 4, "prediction_length")
    series = _number(config, 1, "num_input_channels", "input_size")

    def ids(*shape: int) -> Callable[[], Any]:
        return lambda: torch.randint(min(4, vocabulary - 1), min(90, vocabulary), shape)

    def real(*shape: int) -> Callable[[], Any]:
        return lambda: torch.randn(*shape)

    def ones(*shape: int, dtype: Any = torch.long) -> Callable[[], Any]:
        return lambda: torch.ones(*shape, dtype=dtype)

    tokens = (ids(2, LENGTH), ids(2, LENGTH, codebooks), ids(2, LENGTH, codebooks + 1), ids(2, codebooks, LENGTH))
    one_image = real(2, channels, height, width)
    video = real(2, 2, channels, height, width)
    flat = real(patches, of_patch)
    rows = real(2, patches // 2, of_patch)
    mono, batch = real(2, 4000), real(2, 1, 4000)
    audio = (batch, mono) if codec else (mono, batch)
    features = (real(2, mel, frames), real(2, frames, mel), real(2, 1, frames, mel))
    in_rows = any(name.endswith("grid_thw") for name in takes)
    in_patches = in_rows or "spatial_shapes" in takes or "target_sizes" in takes
    images = (one_image, video, real(2, channels, 4 * height, 4 * width), real(2, channels, 224, 224))
    return {
        **dict.fromkeys(("input_ids", "decoder_input_ids", "qformer_input_ids"), tokens),
        "pixel_values": (flat if in_rows else rows, rows, *images) if in_patches else images,
        **dict.fromkeys(("prompt_pixel_values", "prompt_masks"), images),
        "pixel_attention_mask": (ones(2, patches // 2),),
        "pixel_values_videos": (video, flat),
        "hidden_states": (flat, real(patches, hidden), real(2, LENGTH, hidden)),
        **dict.fromkeys(("grid_thw", "image_grid_thw"), (lambda: torch.tensor([[1, _SIDE, _SIDE]] * 2),)),
        **dict.fromkeys(("target_sizes", "spatial_shapes"), (lambda: torch.tensor([[_SIDE, _SIDE]] * 2),)),
        "pixel_position_ids": (lambda: torch.zeros(2, patches // 2, 2, dtype=torch.long),),
        "input_values": (*audio, real(2, 1, _SAMPLES), real(2, _SAMPLES), real(2, 1024, mel)),
        **dict.fromkeys(("input_features", "audio_mel"), features),
        "input_features_mask": (ones(2, frames),),
        "audio_mel_mask": (ones(2, frames, dtype=torch.bool),),
        "bbox": (lambda: torch.zeros(2, LENGTH, 4, dtype=torch.long),),
        **dict.fromkeys(
            ("inputs_embeds", "query_embeds", "inputs", "noise_embeds", "context_hidden_states", "action_embeds"),
            (real(2, LENGTH, hidden),),
        ),
        "visual_feats": (real(2, 4, _number(config, 32, "visual_feat_dim")),),
        "visual_pos": (real(2, 4, 4),),
        "states": (real(2, LENGTH, _number(config, 8, "state_dim")),),
        "actions": (real(2, LENGTH, _number(config, 4, "act_dim")),),
        **dict.fromkeys(("rewards", "returns_to_go"), (real(2, LENGTH, 1),)),
        "timesteps": (lambda: torch.arange(LENGTH).repeat(2, 1),),
        "past_values": (real(2, history), real(2, history, series)),
        "past_observed_mask": (ones(2, history), ones(2, history, series)),
        "past_time_features": (real(2, history, _number(config, 1, "num_time_features")),),
        "future_values": (real(2, future), real(2, future, series)),
        "future_time_features": (real(2, future, _number(config, 1, "num_time_features")),),
    }
