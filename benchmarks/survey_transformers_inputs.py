"""Inputs for models of transformers, by the names of what their ``forward`` takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from survey_transformers_configurations import is_configuration

Forms = Callable[[Sequence[int]], Iterable[Sequence[int]]]
"""The forms of inputs in each of several calls, by the number of forms of each."""
LENGTH = 16
"""Tokens, and steps of audio features."""
_SIDE = 4
"""Patches along a side of an image that is given as patches."""
_LARGE = 512
"""The side of images that are larger than a configuration says, at most."""
_FORMS = 6
"""The most forms of an input."""
_MIXED = 12
"""In how many ways the forms of several inputs are mixed, at most."""
_ROUNDS = 3
"""The most errors in a row whose inputs are added."""
_SAMPLES = 3840
"""Samples of audio: a multiple of the usual steps of codecs."""


def inputs(model: Any, config: Any, asked: Collection[str]) -> Iterator[dict[str, Any]]:
    """Inputs that a model may need, one after the other: its main input, then more, in each of the usual forms.

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

    def calls(names: Sequence[str], forms: Forms) -> Iterator[dict[str, Any]]:
        chosen = {name: known[name] for name in names if name in takes and name in known}
        for numbers in forms([len(makers) for makers in chosen.values()]):
            which = tuple(zip(chosen, numbers, strict=True))
            if which not in seen:
                seen.add(which)
                yield {name: chosen[name][number]() for name, number in which}

    needed = [*required, *wanted]
    yield from calls(wanted, _in_step)
    yield from calls([*wanted, "input_ids", "pixel_values"], _in_step)
    yield from calls(needed, _in_step)
    yield from calls(required, _in_step)
    yield from calls([*needed, *asked], _in_step)
    yield from calls([*required, *asked], _in_step)
    for _ in range(_ROUNDS):
        yield from calls(_compatible([*needed, *asked]), _first)
    yield from calls(needed, _mixed)
    yield from calls(_compatible([*needed, *asked]), _mixed)


def _in_step(counts: Sequence[int]) -> Iterable[Sequence[int]]:
    """The first form of each input, the second of each, and so on."""
    return [[min(form, count - 1) for count in counts] for form in range(_FORMS)]


def _first(counts: Sequence[int]) -> Iterable[Sequence[int]]:
    return [[0] * len(counts)]


def _mixed(counts: Sequence[int]) -> Iterable[Sequence[int]]:
    """Forms of inputs in all ways; first those in which most inputs have their first form."""
    ways = product(*(range(count) for count in counts))
    return sorted(ways, key=lambda forms: (sum(form > 0 for form in forms), sum(forms)))[:_MIXED]


def _compatible(names: Sequence[str]) -> list[str]:
    """Names without those that replace another one that is given."""
    return [name for name in names if name != "inputs_embeds" or "input_ids" not in names]


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
    frames_of_patch = _number(config, 1, "temporal_patch_size", "patch_temporal")
    of_patch = channels * frames_of_patch * patch * patch
    patches = 2 * _SIDE * _SIDE
    vocabulary = _number(config, 90, "vocab_size")
    codebooks = _number(config, 1, "num_codebooks", "num_channels")
    codec = "codebook_size" in vars(config) or "audio_channels" in vars(config)
    mel = _number(config, 80, "num_mel_bins", "feature_size")
    frames = 2 * (getattr(config, "max_source_positions", None) or _number(config, LENGTH, "n_window"))
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
    whole_video = real(2, _number(config, 2, "num_frames"), channels, height, width)
    flat = real(patches, of_patch)
    rows = real(2, patches // 2, of_patch)
    mono, batch = real(2, 4000), real(2, 1, 4000)
    audio = (batch, mono) if codec else (mono, batch)
    features = (real(2, mel, frames), real(2, frames, mel), real(2, 1, frames, mel), real(2, 8 * LENGTH, 8 * LENGTH))
    channels_first = real(2, hidden, LENGTH)
    in_rows = any(name.endswith("grid_thw") for name in takes)
    in_patches = in_rows or "spatial_shapes" in takes or "target_sizes" in takes
    large = [min(4 * side, max(side, _LARGE)) for side in (height, width)]
    side = _number(config, _LARGE, "image_size")
    images = (
        one_image,
        video,
        real(2, channels, *large),
        real(2, channels, 224, 224),
        whole_video,
        real(2, channels, side, side),
    )
    squares = real(patches, channels, patch, patch)
    return {
        **dict.fromkeys(("input_ids", "decoder_input_ids", "qformer_input_ids"), tokens),
        "pixel_values": (flat if in_rows else rows, rows, *images, squares) if in_patches else images,
        **dict.fromkeys(("prompt_pixel_values", "prompt_masks"), images),
        "pixel_attention_mask": (ones(2, patches // 2),),
        "pixel_values_videos": (video, flat, whole_video),
        "hidden_states": (flat, real(patches, hidden), real(2, LENGTH, hidden), channels_first, real(2, 1, _SAMPLES)),
        "latents": (channels_first,),
        **dict.fromkeys(("grid_thw", "image_grid_thw"), (lambda: torch.tensor([[1, _SIDE, _SIDE]] * 2),)),
        **dict.fromkeys(("target_sizes", "spatial_shapes"), (lambda: torch.tensor([[_SIDE, _SIDE]] * 2),)),
        "merge_sizes": (ones(2),),
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
        "past_values_padding": (lambda: torch.zeros(2, history),),
        "freq": (lambda: torch.zeros(2, 1, dtype=torch.long),),
        "past_observed_mask": (ones(2, history), ones(2, history, series)),
        "past_time_features": (real(2, history, _number(config, 1, "num_time_features")),),
        "future_values": (real(2, future), real(2, future, series)),
        "future_time_features": (real(2, future, _number(config, 1, "num_time_features")),),
    }
