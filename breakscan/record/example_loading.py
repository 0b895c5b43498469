"""Loads the examples of rules, each in a module of its own with fresh compiler and RNG state."""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import linecache
import logging
import random
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from breakscan.model.errors import InputError
from breakscan.model.findings import Kind, Place
from breakscan.rulebook.document import Example, Rule

_numbers = itertools.count()


class ReplayError(InputError):
    """An example cannot be run.  Names the document, the line of the example and what is wrong."""


def check_runs(rule: Rule, example: Example, function: Any, calls: list[tuple[Any, ...]]) -> None:
    """Raises ReplayError if the calls fail without the compiler."""
    if rule.kind is Kind.MISUSE:
        return
    try:
        for arguments in calls:
            function(*arguments)
    except Exception as error:
        raise ReplayError(
            f"{rule.path}:{example.line}: {example.label} fails without the compiler: {error!r}"
        ) from error


@contextlib.contextmanager
def loaded(rule: Rule, example: Example, place: Place) -> Iterator[tuple[Any, list[tuple[Any, ...]]]]:
    """The example's ``f`` and the arguments of its calls, in a fresh module with fresh compiler and RNG state."""
    import torch

    source = _placed(example.source, place)
    name = f"example_{next(_numbers)}_{rule.id}_{example.label.replace('/', '_')}_{place.value}"
    filename = str(Path(tempfile.gettempdir()) / f"{name}.py")
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    module = ModuleType(name)
    sys.modules[name] = module  # a dataclass looks its own module up
    namespace = module.__dict__
    torch._dynamo.reset()
    python_rng, grad = random.getstate(), torch.is_grad_enabled()
    config: Any = torch._dynamo.config
    flags = config.get_config_copy()  # examples show what a setting changes, sets of functions included
    try:
        with torch.random.fork_rng(), _quiet():
            torch.manual_seed(0)
            try:
                exec(compile(source, filename, "exec", dont_inherit=True), namespace)
                calls = _calls(example, namespace)
                function = namespace["f"]
            except Exception as error:
                where = f"{rule.path}:{example.line}: {example.label}"
                raise ReplayError(f"{where} cannot be set up: {error!r}") from error
            yield function, calls
    finally:
        random.setstate(python_rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # setting a deprecated flag, if only to what it was, warns
            config.load_config(flags)
        torch.set_grad_enabled(grad)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
        linecache.cache.pop(filename, None)
        del sys.modules[name]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Nothing that an example, or torch about it, prints, logs or warns of is shown."""
    loggers = [
        logger
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and name.split(".")[0] == "torch" and name != "torch.__trace"
    ]
    handlers = [logger.handlers for logger in loggers]
    for logger in loggers:
        logger.handlers = [logging.NullHandler()] if logger.handlers else []
    shut = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(shut), contextlib.redirect_stderr(shut):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, kept in zip(loggers, handlers, strict=True):
            logger.handlers = kept


def _calls(example: Example, namespace: dict[str, Any]) -> list[tuple[Any, ...]]:
    if "make_calls" in namespace:
        return [tuple(arguments) for arguments in namespace["make_calls"]()]
    if "make_inputs" in namespace:
        return [tuple(namespace["make_inputs"]())]
    import torch

    return [eval(f"({example.inputs},)", {"torch": torch, **namespace})]


def _placed(source: str, place: Place) -> str:
    """The example with the body of ``f`` moved into a loop, a ``try`` or a ``with``."""
    if place is Place.PLAIN:
        return source
    tree = ast.parse(source)
    function = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "f"), None)
    if function is None:
        return source
    body, last = list(function.body), None
    if isinstance(body[-1], ast.Return) and body[-1].value is not None:
        # The return follows the loop: inside, the loop would never repeat, and Dynamo would see no loop.
        store = ast.Name("_result", ast.Store())
        body[-1], last = ast.Assign([store], body[-1].value), ast.Return(ast.Name("_result", ast.Load()))
    shape = {
        Place.LOOP: "for _ in range(2):\n    pass",
        Place.TRY: "try:\n    pass\nexcept ZeroDivisionError:\n    raise",
        Place.WITH: "with _place():\n    pass",
    }[place]
    wrapper = ast.parse(shape).body[0]
    assert isinstance(wrapper, ast.For | ast.Try | ast.With)
    wrapper.body = body
    function.body = [wrapper, *([last] if last else [])]
    helper = "import contextlib\n@contextlib.contextmanager\ndef _place():\n    yield\n" if place is Place.WITH else ""
    return helper + ast.unparse(ast.fix_missing_locations(tree)) + "\n"
