"""Small configurations: which settings shrink, and what follows from them."""

from __future__ import annotations

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


def made(place: int, make: object = Config) -> Config:
    config: Config = list(configurations(make))[place][0]()  # type: ignore[arg-type]
    return config


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
