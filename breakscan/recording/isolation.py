"""Compiles something in a process that continues as if nothing had been compiled before, and names the cells of a
notebook that runs there."""

from __future__ import annotations

import contextlib
import linecache
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

from breakscan.source.module import remember_source
from breakscan.source.paths import display_path


@contextlib.contextmanager
def compiled_for_the_first_time() -> Iterator[None]:
    """Dynamo forgets what it compiled and which sizes it met, before the block and after it, as for
    ``torch._dynamo.explain``."""
    import torch._dynamo

    torch._dynamo.reset()
    try:
        yield
    finally:
        torch._dynamo.reset()


@contextlib.contextmanager
def program_as_it_was(function: Callable[..., Any]) -> Iterator[None]:
    """After the block, random numbers continue as if it had not run, and of a module its buffers and its modes are what
    they were.  Other things that running it changes stay changed."""
    import torch

    numpy: Any = sys.modules.get("numpy")
    cuda: Any = torch.cuda
    python_state = random.getstate()
    numpy_state = numpy.random.get_state() if numpy else None
    devices = range(cuda.device_count()) if cuda.is_initialized() else ()
    modules = list(function.modules()) if isinstance(function, torch.nn.Module) else []
    buffers = [
        (module, name, buffer, buffer.detach().clone())
        for module in modules
        for name, buffer in module.named_buffers(recurse=False)
    ]
    modes = [(module, module.training) for module in modules]
    grad = torch.is_grad_enabled()
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            torch.set_grad_enabled(grad)
            random.setstate(python_state)
            if numpy:
                numpy.random.set_state(numpy_state)
            for module, mode in modes:
                module.training = mode
            with torch.no_grad():
                for module, name, buffer, value in buffers:
                    if not torch.equal(buffer, value):
                        buffer.copy_(value)
                    if getattr(module, name, None) is not buffer:
                        setattr(module, name, buffer)


class ShownPaths:
    """The names of files in reports: a cell of the notebook that runs in this process ``In[3]``, another one by its
    path from a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, path: str) -> str:
        number = cell_numbers().get(path)
        if number is None:
            return display_path(path, self._folder)
        name = f"In[{number}]"
        remember_source(name, "".join(linecache.getlines(path)))
        return name


def cell_numbers() -> dict[str, int]:
    """The files of cells, each with the cell's number; empty where no IPython runs."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    numbers: dict[str, int] = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return numbers
