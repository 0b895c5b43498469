"""The architectures of transformers, each in a tiny configuration with random weights, for surveys.

They are the models of a manifest:

    breakscan survey run benchmarks/survey_transformers.toml

Needs transformers.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar, cast

from survey_transformers_configurations import configurations, is_configuration
from survey_transformers_inputs import inputs, setting

T = TypeVar("T")
LARGEST = 80_000_000
"""Parameters of a model, at most."""
_WITHOUT_CACHE = {"use_cache": False}
"""A model whose layers are all of a kind that has no cache may fail to make one."""
_FRAMES = 2
"""Innermost calls whose lines say which inputs an error is about."""


def names() -> list[str]:
    """The types of models that ``AutoModel`` knows."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    return sorted(auto.MODEL_MAPPING_NAMES)


def build(name: str) -> tuple[Any, Mapping[str, Any]]:
    """A model of a type that runs, and the inputs of a call.

    Raises what the smallest model raises where none runs.
    """
    library: Any = importlib.import_module("transformers")
    failure: Exception | None = None
    in_cache = True
    for always in ({}, _WITHOUT_CACHE):
        if not in_cache:
            break
        in_cache = False
        for make, bounded in configurations(library.CONFIG_MAPPING[name]):
            found = outcome(partial(_of_configuration, library, make, bounded, always))
            if not isinstance(found, Exception):
                return found
            failure = failure or found
            in_cache |= "cache" in str(found).lower()
    assert failure is not None
    raise failure


def _of_configuration(
    library: Any, make: Callable[[], Any], bounded: bool, always: Mapping[str, Any]
) -> tuple[Any, Mapping[str, Any]]:
    config = make()
    parameters = _parameters(library, config)
    if not bounded if parameters is None else parameters > LARGEST:
        raise ValueError(f"a model with so few layers has over {LARGEST:,} parameters")
    return _that_runs(library, config, always)


def _parameters(library: Any, config: Any) -> int | None:
    """The number of parameters of a model; None where it cannot be built without memory for them."""
    import torch

    with torch.device("meta"):
        model = outcome(partial(library.AutoModel.from_config, config))
        while isinstance(model, AttributeError) and _adopted(model):
            model = outcome(partial(library.AutoModel.from_config, config))
    return None if isinstance(model, Exception) else sum(one.numel() for one in cast(Any, model).parameters())


def _adopted(error: AttributeError) -> bool:
    """True if a configuration that lacks a setting now has that of one in it: a type of model may be a part of what its
    configuration is for."""
    config, name = error.obj, error.name
    if name is None or not is_configuration(config) or hasattr(config, name):
        return False
    value = setting(config, name)
    if value is not None:
        setattr(config, name, value)
    return hasattr(config, name)


def _that_runs(library: Any, config: Any, always: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A model and the first inputs with which it runs.  Raises what it raises with the first, if it runs with none."""
    import torch

    model = library.AutoModel.from_config(config).eval()
    takes = inspect.signature(model.forward).parameters
    asked: dict[str, None] = {}
    failure: Exception | None = None
    for needed in inputs(model, config, asked):
        given = {**needed, **{name: value for name, value in always.items() if name in takes}}
        with torch.no_grad():
            found = outcome(partial(model, **given))
        if not isinstance(found, Exception):
            return model, given
        failure = failure or found
        asked.update(dict.fromkeys(_asked(found, takes)))
    assert failure is not None
    raise failure


def _asked(error: Exception, takes: Iterable[str]) -> Iterator[str]:
    """Names of inputs that an error holds, or the code that raised it: a line that reads an input raises without it."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if f"{os.sep}torch{os.sep}" not in one.filename]
    lines = [one.line or "" for one in frames[-_FRAMES:]]
    words = set(re.findall(r"\w+", " ".join([str(error), *lines]).lower()))
    for name in takes:
        if name in words or any(name.endswith("_" + word) for word in words):
            yield name


def outcome(call: Callable[[], T]) -> T | Exception:
    """The result of a call, or the error that it raises.  Raises ImportError: nothing else helps without a package."""
    try:
        return call()
    except ImportError:
        raise
    except Exception as error:
        return error
