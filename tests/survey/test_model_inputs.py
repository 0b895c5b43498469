"""What models are called with, and how it is found."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from breakscan.survey.transformers_models import _that_runs, build  # noqa: E402

pytestmark = pytest.mark.torch


class Model(torch.nn.Module):  # type: ignore[name-defined,misc]
    main_input_name = "input_ids"


def found(model: Any, **config: object) -> dict[str, Any]:
    """The inputs with which a model runs, as shapes."""
    library = SimpleNamespace(AutoModel=SimpleNamespace(from_config=lambda config: model))
    _, given = _that_runs(library, SimpleNamespace(**config), {})
    return {name: tuple(value.shape) for name, value in given.items()}


def test_forms_of_inputs_are_mixed() -> None:
    class Speech(Model):
        main_input_name = "input_features"

        def forward(self, input_features: Any, decoder_input_ids: Any = None) -> None:
            assert (input_features.shape[-1], decoder_input_ids.shape) == (80, (2, 16))

    assert found(Speech(), is_encoder_decoder=True) == {"input_features": (2, 32, 80), "decoder_input_ids": (2, 16)}


def test_a_line_that_raises_names_what_it_reads() -> None:
    class Layout(Model):
        def forward(self, input_ids: Any = None, bbox: Any = None, inputs_embeds: Any = None) -> Any:
            if (input_ids is None) == (inputs_embeds is None):
                raise ValueError("specify exactly one of input_ids or inputs_embeds")
            return bbox[:, :, 0]

    assert set(found(Layout())) == {"input_ids", "bbox"}


def test_a_line_that_calls_into_torch_names_what_it_gives() -> None:
    class Wrapped(Model):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(99, 4)

        def forward(self, input_ids: Any, qformer_input_ids: Any = None) -> Any:
            return self.embedding(qformer_input_ids)

    assert set(found(Wrapped())) == {"input_ids", "qformer_input_ids"}


def test_videos_have_as_many_frames_as_the_configuration_says() -> None:
    class Video(Model):
        main_input_name = "pixel_values"

        def forward(self, pixel_values: Any) -> None:
            assert pixel_values.shape[1] == 16

    assert found(Video(), num_frames=16, image_size=8) == {"pixel_values": (2, 16, 3, 8, 8)}


class Hybrid(Model):
    """A model that cannot make a cache if no layer has one."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.kinds = set(config.layer_types[: config.num_hidden_layers])

    def forward(self, input_ids: Any, use_cache: bool = True) -> None:
        if use_cache and "full" not in self.kinds:
            raise ValueError("the cache has no attention layers")


class HybridConfig:
    model_type = "hybrid"

    def __init__(self, num_hidden_layers: int = 8, kinds: str = "linear linear full linear") -> None:
        self.num_hidden_layers, self.kinds = num_hidden_layers, kinds
        self.layer_types = (kinds.split() * num_hidden_layers)[:num_hidden_layers]

    def to_dict(self) -> dict[str, object]:
        return vars(self)


@pytest.mark.parametrize(("kinds", "given"), [("linear linear full", []), ("linear", ["use_cache"])])
def test_only_without_layers_that_have_a_cache_there_is_none(
    monkeypatch: pytest.MonkeyPatch, kinds: str, given: list[str]
) -> None:
    library = SimpleNamespace(
        CONFIG_MAPPING={"hybrid": lambda: HybridConfig(kinds=kinds)}, AutoModel=SimpleNamespace(from_config=Hybrid)
    )
    monkeypatch.setitem(sys.modules, "transformers", library)
    model, inputs = build("hybrid")
    assert list(inputs) == ["input_ids", *given]
    assert model.kinds == set(kinds.split())


def test_a_setting_that_a_model_misses_is_that_of_a_configuration_in_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Composite:
        model_type = "composite"

        def __init__(self) -> None:
            self.decoder = HybridConfig()

        def to_dict(self) -> dict[str, object]:
            return vars(self)

    library = SimpleNamespace(CONFIG_MAPPING={"part": Composite}, AutoModel=SimpleNamespace(from_config=Hybrid))
    monkeypatch.setitem(sys.modules, "transformers", library)
    model, _ = build("part")
    assert model.kinds == {"linear", "full"}


class Sides(Model):
    """A model that keeps the sides of the images that it is given, and runs with none."""

    main_input_name = "pixel_values"

    def __init__(self) -> None:
        super().__init__()
        self.sides: set[int] = set()

    def forward(self, pixel_values: Any) -> None:
        self.sides.add(pixel_values.shape[-1])
        raise ValueError("no such image")


@pytest.mark.parametrize(("side", "largest"), [(32, 224), (300, 512), (600, 600)])
def test_images_are_not_much_larger_than_a_configuration_says(side: int, largest: int) -> None:
    model = Sides()
    with pytest.raises(ValueError, match="no such image"):
        found(model, image_size=side)
    assert max(model.sides) == largest


def test_images_have_the_side_that_a_configuration_in_another_says() -> None:
    model, backbone = Sides(), SimpleNamespace(image_size=48, model_type="backbone", to_dict=dict)
    with pytest.raises(ValueError, match="no such image"):
        found(model, backbone=backbone)
    assert 48 in model.sides
