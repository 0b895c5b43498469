"""Calls of a module that nobody has shown: constructors and inputs are tried, and the first that runs is taken."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import time
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain, islice
from typing import Any

from breakscan.survey.combinations import combinations
from breakscan.survey.found_call import FoundCall, TooLargeError, run, seed, small_models
from breakscan.survey.guessed_inputs import inputs
from breakscan.survey.heard import Heard, quoted
from breakscan.survey.likely_values import smaller, values
from breakscan.survey.outcome import outcome
from breakscan.survey.signatures import resolved

_WIDTHS = (8, 3, 1, 32)
_CONSTRUCTORS = 40
"""Combinations of arguments of a constructor that are tried with each width."""
_ROUNDS = 6
"""How often what errors of a constructor said leads to other arguments."""
_MODULES = 12
"""Modules that are tried, of those that could be made."""
_CALLS = 400
_CALLS_OF_ONE = 150
_LOADS = re.compile(r"(.*_)?(pretrained|checkpoint|weights|download)(_.*)?")


class NoArgumentsError(Exception):
    """Nothing that was tried ran."""


def guessed_call(kind: type, made: Any, known: Mapping[str, Any], seconds: float) -> FoundCall:
    """A call that runs.  ``made`` is a module of an example, if there is one, and ``known`` are names and values in it.
    Raises NoArgumentsError."""
    until = time.process_time() + seconds
    calls = 0
    failure: Exception | None = None
    unbuilt: list[Exception] = []
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        modules = chain([(made, _WIDTHS[0])] if made is not None else [], _modules(kind, unbuilt, until))
        for module, width in islice(modules, _MODULES):
            heard = Heard()
            module.eval()
            for positional, keywords in islice(inputs(module, width, known, heard), _CALLS_OF_ONE):
                found = outcome(partial(run, module, positional, keywords))
                if not isinstance(found, Exception):
                    return found
                failure = failure or found
                heard.listen(found)
                calls += 1
                if calls >= _CALLS or time.process_time() > until:
                    raise _none(failure)
    raise _none(failure or unbuilt[0])


def _none(failure: Exception) -> NoArgumentsError:
    said = f"{type(failure).__name__}: {failure}".strip().partition("\n")[0]
    return NoArgumentsError(f"no arguments found with which it runs: {said[:200]}")


def _modules(kind: type, failures: list[Exception], until: float) -> Iterator[tuple[Any, int]]:
    """Modules of a class that could be made, and the width that they were made with."""
    try:
        parameters = resolved(kind)
        rest = any(one.kind is one.VAR_KEYWORD for one in inspect.signature(kind).parameters.values())
    except (ValueError, TypeError) as error:
        failures.append(error)
        return
    heard = Heard()
    refused: set[str] = set()
    large = False
    state: object = None
    for _ in range(_ROUNDS):
        # A constructor that takes any names passes them on; what it passes them to says which.
        named = [name for name in heard.quoted if rest and name not in parameters and name not in refused]
        if state == (state := (heard.state([*parameters, *named]), large, len(refused))):
            return
        wanted = {
            name: one.annotation
            for name, one in parameters.items()
            if one.default is one.empty or (name in heard.names and one.default is None)
        }
        wanted.update(dict.fromkeys(named, Any))
        instead = _without_weights(parameters) | (smaller(parameters) if large else {})
        for width in _WIDTHS if wanted else _WIDTHS[:1]:
            makers = {name: values(name, annotation, width) for name, annotation in wanted.items()}
            makers = {name: found for name, found in makers.items() if found}
            for chosen in islice(combinations([len(one) for one in makers.values()]), _CONSTRUCTORS):
                found = outcome(partial(_made, kind, makers, chosen, instead))
                if not isinstance(found, Exception):
                    yield found, width
                    continue
                failures.append(found)
                large = large or isinstance(found, TooLargeError)
                heard.listen(found)
                if isinstance(found, TypeError):
                    refused.update(name for name in quoted(found) if name in named)
                if time.process_time() > until:
                    return


def _without_weights(parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """What keeps a module from loading weights, where it does so by default."""
    loads = {name: one.default for name, one in parameters.items() if _LOADS.fullmatch(name)}
    return {name: False if default is True else None for name, default in loads.items() if _asks(default)}


def _asks(default: object) -> bool:
    return default is True or (isinstance(default, str) and bool(default))


def _made(kind: type, makers: Mapping[str, Any], chosen: tuple[int, ...], instead: Mapping[str, Any]) -> Any:
    seed()
    given = {name: one[number]() for (name, one), number in zip(makers.items(), chosen, strict=True)}
    with small_models():
        return kind(**{**instead, **given})
