"""The tiny models of transformers."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from breakscan.survey.found_call import LARGEST  # noqa: E402
from breakscan.survey.transformers_models import build, names  # noqa: E402

pytestmark = pytest.mark.torch


def test_the_names_are_those_of_the_library() -> None:
    assert {"bert", "llama", "t5", "vit"} <= set(names())


@pytest.mark.parametrize("name", ["bert", "llama", "t5", "vit", "mixtral", "whisper", "deepseek_v3", "qwen3_next"])
def test_models_run(name: str) -> None:
    model, given = build(name)
    assert sum(one.numel() for one in model.parameters()) < LARGEST
    assert model(**given) is not None


def test_what_does_not_run_says_why() -> None:
    with pytest.raises(KeyError):
        build("no-such-model")
