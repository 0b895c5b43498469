"""Exports a function with ``torch.export.export`` in a process that continues."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def exported_program(function: Callable[..., Any], arguments: tuple[Any, ...], *, strict: bool) -> Callable[..., Any]:
    """The program that ``torch.export.export`` makes of a function, which it takes as the ``forward`` of a module.

    Raises what ``torch.export.export`` raises.
    """
    import torch

    if isinstance(function, torch.nn.Module):
        module = function
    else:

        class Exported(torch.nn.Module):
            def forward(self, *arguments: Any) -> Any:
                return function(*arguments)

        module = Exported()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program: Callable[..., Any] = torch.export.export(module, arguments, strict=strict).module()
    return program


@cache
def _load() -> None:
    """Imports what an export imports, once for all processes that are forked."""
    import torch

    for strict in (False, True):
        exported_program(torch.sin, (torch.zeros(1),), strict=strict)


def in_own_process(run: Callable[[], _Result]) -> _Result:
    """What ``run`` returns or raises, in a process that is forked where the system can do so.

    An export that fails can leave its modes and dispatch keys behind, and torch 2.11 can crash after that.  Raises
    BrokenProcessPool if the process crashes.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        return run()
    _load()
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("fork")) as pool:
        return pool.submit(run).result()
