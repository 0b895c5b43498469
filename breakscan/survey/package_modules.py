"""The public modules of a package, each with a call that runs, for surveys.

It is the call that an example in the docstring of the class makes; without one that runs, arguments of the constructor
and inputs are guessed by names and annotations.  A real call decides.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from breakscan.survey.example_calls import example_of
from breakscan.survey.found_call import FoundCall
from breakscan.survey.guessed_calls import guessed_call
from breakscan.survey.no_downloads import no_downloads

_SECONDS = 20.0
"""CPU seconds that examples, and then guesses, may take."""


def build(place: str) -> tuple[Any, tuple[Any, ...], Mapping[str, Any]]:
    """A module of the class at a dotted name, and what it is called with.  Raises NoArgumentsError where no call of it
    runs, and what the import raises."""
    import torch

    kind = loaded(place)
    # What the package compiles itself is none of the unit, as long as it is only looked for.
    with torch.compiler.set_stance("force_eager"), no_downloads():
        found = found_call(kind)[0]
    return found.module, found.positional, found.keywords


def loaded(place: str) -> type:
    """The class at a dotted name.  Raises what its module raises when it is imported."""
    module, _, name = place.rpartition(".")
    value = getattr(importlib.import_module(module), name, None)
    if isinstance(value, type):
        return value
    importlib.import_module(place)
    raise TypeError(f"{place} cannot be imported after the other modules of its package, and can be without them")


def found_call(kind: type) -> tuple[FoundCall, bool]:
    """A call that runs, and whether it is that of an example."""
    example = example_of(kind, _SECONDS)
    if example.call is not None:
        return example.call, True
    return guessed_call(kind, example.module, example.values, _SECONDS), False
