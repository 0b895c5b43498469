"""Calls that the docstring of a class makes: the way in which its author calls it."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from breakscan.survey.example_code import statements
from breakscan.survey.found_call import FoundCall, copied, seed, small_models

_CODE = "<example>"


@dataclass(slots=True)
class DocstringExample:
    """What the examples of a class gave: a ``call`` that ran; without one, a ``module`` that they made, and the names
    that they gave to ``values``."""

    call: FoundCall | None = None
    module: Any = None
    values: dict[str, Any] = field(default_factory=dict)


def example_of(kind: type, seconds: float) -> DocstringExample:
    """Runs the examples of a class until they call one of its instances.  They may fail wherever they want."""
    import torch

    found = DocstringExample()
    until = time.process_time() + seconds
    dtype = torch.get_default_dtype()
    with _quietly_elsewhere(), _recorded_calls(kind, found), torch.enable_grad():
        seed()
        names = _names(kind)
        before = dict(names)
        try:
            for statement in _statements(kind):
                with contextlib.suppress(Exception, SystemExit), small_models():
                    exec(compile(statement, _CODE, "exec"), names)
                if found.call is not None or time.process_time() > until:
                    break
        finally:
            torch.set_default_dtype(dtype)
    found.values = {name: value for name, value in names.items() if before.get(name, names) is not value}
    found.module = next((one for one in found.values.values() if type(one) is kind), None)
    return found


def _statements(kind: type) -> Iterator[str]:
    own = vars(kind)
    for one in (kind, own.get("__init__"), own.get("forward")):
        docstring = getattr(one, "__doc__", None)
        if isinstance(docstring, str):
            yield from statements(docstring)


def _names(kind: type) -> dict[str, Any]:
    """What examples take for granted: the names of the class's module, and the usual ones of PyTorch."""
    import torch

    usual = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "Tensor": torch.Tensor, "tensor": torch.tensor}
    own = {name: value for name, value in vars(sys.modules[kind.__module__]).items() if not name.startswith("__")}
    with contextlib.suppress(ImportError):
        import numpy

        usual["np"] = numpy
    return {**usual, **own, kind.__name__: kind, "__name__": kind.__module__}


@contextlib.contextmanager
def _recorded_calls(kind: Any, found: DocstringExample) -> Iterator[None]:
    """Keeps the first call of an instance of a class that returns, with what it was given."""
    own = vars(kind).get("__call__")
    call: Callable[..., Any] = kind.__call__

    def recorded(module: Any, *positional: Any, **keywords: Any) -> Any:
        if type(module) is not kind or found.call is not None:
            return call(module, *positional, **keywords)
        given = FoundCall(module, copied(positional), copied(keywords))
        returned = call(module, *positional, **keywords)
        found.call = found.call or given
        return returned

    kind.__call__ = recorded
    try:
        yield
    finally:
        if own is None:
            del kind.__call__
        else:
            kind.__call__ = own


@contextlib.contextmanager
def _quietly_elsewhere() -> Iterator[None]:
    """In a folder that is removed afterwards, for what an example writes; what it prints is lost."""
    here = os.getcwd()
    os.environ.setdefault("MPLBACKEND", "Agg")  # opens no window
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                yield
        finally:
            os.chdir(here)
