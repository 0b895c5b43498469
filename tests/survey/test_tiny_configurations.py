"""Small configurations: which settings shrink, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from breakscan.survey.tiny_configurations import configurations


class Config:
    """A configuration as those of transformers: some settings are computed from others where they are not given."""

    model_type = "made-up"

    def __init__(
        self,
        vocab_size: int = 50_000,
        hidden_size: int = 1024,
        num_hidden_layers: int = 24,
        num_attention_heads: int = 16,
        num_key_value_heads: int = 16,
        head_dim: int | None = None,
        layer_types: list[str] | None = None,
        bos_token_id: int = 49_999,
        encoder: Config | None = None,
    ) -> None:
        self.vocab_size, self.hidden_size, self.num_hidden_layers = vocab_size, hidden_size, num_hidden_layers
        self.num_attention_heads, self.num_key_value_heads = num_attention_heads, num_key_value_heads
        self.head_dim = head_dim or hidden_size // num_attention_heads
        self.layer_types = layer_types or ["full" if place % 4 == 3 else "local" for place in range(num_hidden_layers)]
        self.bos_token_id, self.encoder = bos_token_id, encoder

    def to_dict(self) -> dict[str, object]:
        return vars(self)


def made(place: int, make: Callable[..., Any] = Config) -> Any:
    return list(configurations(make))[place][0]()


def test_the_first_has_small_settings_and_nothing_follows() -> None:
    config = made(0)
    assert (config.vocab_size, config.hidden_size, config.num_hidden_layers) == (99, 32, 2)
    assert (config.num_attention_heads, config.num_key_value_heads) == (4, 2)
    assert len(config.layer_types) == 24
    assert config.bos_token_id == 3


def test_the_second_has_few_layers() -> None:
    config = made(1)
    assert (config.hidden_size, config.num_hidden_layers, config.bos_token_id) == (1024, 2, 49_999)


def test_what_follows_from_settings_is_computed_again() -> None:
    config = made(2)
    assert (config.num_attention_heads, config.num_key_value_heads) == (4, 4)
    assert config.layer_types == ["local", "local", "local", "full"], "each kind of layer is there"
    assert (config.num_hidden_layers, config.bos_token_id) == (4, 3)


def test_heads_and_widths_stay_in_proportion() -> None:
    config = made(3)
    assert (config.num_attention_heads, config.hidden_size, config.head_dim) == (4, 256, 64)
    assert config.layer_types == ["local", "local", "local", "full"] * 2, "each kind of layer is there twice"
    grouped = made(3, lambda **given: Config(**{"num_key_value_heads": 4, **given}))
    assert (grouped.num_attention_heads, grouped.num_key_value_heads, grouped.hidden_size) == (4, 1, 256)


def test_configurations_in_configurations_are_small_too() -> None:
    config = made(2, lambda **given: Config(**{"encoder": Config(hidden_size=2048, bos_token_id=5), **given}))
    assert config.encoder is not None
    assert (config.encoder.hidden_size, config.encoder.bos_token_id) == (32, 5)


class Stages:
    """A configuration of convolutions, which have a size for each stage of a model."""

    model_type = "stages"

    def __init__(
        self,
        depths: list[int] | None = None,
        embed_dim: list[int] | None = None,
        strides: list[int] | None = None,
        num_filters: int = 64,
        encoder_vocab: int = 500_002,
    ) -> None:
        self.depths, self.embed_dim = depths or [3, 3, 27], embed_dim or [128, 256, 512]
        self.strides, self.num_filters, self.encoder_vocab = strides or [4, 2], num_filters, encoder_vocab

    def to_dict(self) -> dict[str, object]:
        return vars(self)


@pytest.mark.parametrize("place", [4, 5])
def test_each_number_of_a_list_is_small(place: int) -> None:
    config = made(place, Stages)
    assert (config.depths, config.embed_dim, config.num_filters, config.encoder_vocab) == ([2, 2, 2], [32] * 3, 8, 99)
    assert config.strides == [4, 2], "this is the name of no size"


def test_few_heads_keep_their_width() -> None:
    config = made(6, lambda: Config(num_key_value_heads=2, num_attention_heads=32))
    assert (config.num_attention_heads, config.num_key_value_heads, config.head_dim) == (4, 1, 32)
    assert (config.hidden_size, config.vocab_size) == (128, 99)


class Other(Config):
    """A configuration whose layers are always eight, with settings that need care."""

    def __init__(
        self,
        layer_types: list[str] | None = None,
        num_hidden_layers: int = 8,
        head_dim: int | str = "auto",
        num_shared_blocks: int = 2,
        rope_parameters: dict[str, Any] | None = None,
        sliding_window: int | None = None,
    ) -> None:
        layer_types = layer_types or ["local", "local", "full", "local"] * 2
        width = 64 if head_dim == "auto" else int(head_dim)
        super().__init__(num_hidden_layers=num_hidden_layers, layer_types=layer_types, head_dim=width)
        self.num_shared_blocks, self.sliding_window = num_shared_blocks, sliding_window
        self.rope_parameters = rope_parameters or {"rope_type": "default"}


def test_a_list_for_each_layer_is_cut_where_its_class_does_not_compute_it() -> None:
    config = made(5, Other)
    assert (config.num_hidden_layers, len(config.layer_types), config.num_shared_blocks) == (7, 7, 2)


def test_what_is_missing_is_there_at_last() -> None:
    assert [made(place, Other).sliding_window for place in (2, 5)] == [None, 16]


def test_what_a_class_computes_by_itself_is_left_to_it() -> None:
    assert made(2, Other).head_dim == 64


@pytest.mark.parametrize(
    ("rope", "sections"),
    [({"mrope_section": [8, 12, 12]}, [6, 5, 5]), ({}, [6, 5, 5]), ({"partial_rotary_factor": 0.5}, [4, 2, 2])],
)
def test_sections_fit_half_of_what_is_rotated_of_a_head(rope: dict[str, Any], sections: list[int]) -> None:
    config = made(4, lambda: Other(rope_parameters={"rope_type": "default", **rope}))
    assert (config.head_dim, config.rope_parameters["mrope_section"]) == (32, sections)


def test_a_setting_that_varies_by_layer_is_read_all_the_same() -> None:
    class Varied(Config):
        def __getattribute__(self, name: str) -> Any:
            if name == "num_key_value_heads":
                raise RuntimeError("ambiguous")
            return super().__getattribute__(name)

    assert made(2, Varied).num_hidden_layers == 4
