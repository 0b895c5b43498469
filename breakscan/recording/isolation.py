"""Compiles something in a process that continues: as if nothing had been compiled before, and with few traces left;
and names the cells of a notebook that runs there."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

from breakscan.recording.records import CompileStarted, RecompileSeen, Record
from breakscan.source.module import remember_source
from breakscan.source.paths import display_path


class FreshBackend:
    """A registered backend, equal to no other: what was compiled before with another one is compiled again.

    Dynamo keeps compiled code by backend, and compares backends with ``==``.
    """

    def __init__(self, name: str) -> None:
        """Raises ``torch._dynamo.exc.InvalidBackend`` for a name that torch does not know."""
        from torch._dynamo.backends.registry import lookup_backend

        self.compiler_name = name
        self._backend: Any = lookup_backend(name)

    def __call__(self, graph: Any, inputs: Any) -> Any:
        return self._backend(graph, inputs)


def compiled_fresh(function: Callable[..., Any], backend: str, *, fullgraph: bool) -> Callable[..., Any]:
    """``torch.compile(function, backend=backend, fullgraph=fullgraph)``, of which nothing is compiled yet."""
    import torch

    # What was compiled before does not count towards the recompile limit.
    isolation: dict[str, Any] = {"isolate_recompiles": True} if _isolates() else {}
    compiled: Callable[..., Any] = torch.compile(
        function, backend=FreshBackend(backend), fullgraph=fullgraph, **isolation
    )
    return compiled


def without_earlier_versions(records: Sequence[Record]) -> list[Record]:
    """The records of a process without recompiles that are none: those for another backend than that of versions
    that existed before (torch 2.11 and 2.12 ask these, too)."""
    own = {record.compile_id for record in records if isinstance(record, CompileStarted)}
    kept: list[Record] = []
    for record in records:
        if isinstance(record, RecompileSeen):
            record = replace(record, guards=tuple(guard for guard in record.guards if guard.compile_id in own))
            if not record.guards:
                continue
        kept.append(record)
    return kept


@contextlib.contextmanager
def compiler_as_it_was() -> Iterator[None]:
    """While the block runs, no function has fallen back to eager and Dynamo remembers no sizes.  After it, what
    was compiled in the block is forgotten, and what Dynamo knew before is restored.

    Functions that were compiled before too keep what the block added: it holds for its backends alone.
    """
    import torch
    from torch._C._dynamo import eval_frame
    from torch._dynamo import pgo, types
    from torch._dynamo.convert_frame import input_codes

    frames: Any = types
    as_usual = frames.FrameExecStrategy(frames.FrameAction.DEFAULT, frames.FrameAction.DEFAULT)

    def retry(code: CodeType) -> None:
        eval_frame.set_code_exec_strategy(code, as_usual)

    entries = {id(code): len(eval_frame._debug_get_cache_entry_list(code)) for code in _codes(input_codes)}
    compiled = {code for code, count in entries.items() if count}
    config: Any = torch._dynamo.config
    limit = config.recompile_limit + (0 if _isolates() else max(entries.values(), default=0))
    for code in _codes(input_codes):
        retry(code)
    sizes = getattr(pgo, "_CODE_STATE", None)
    pgo._CODE_STATE = defaultdict(pgo.CodeState)
    try:
        with config.patch(recompile_limit=limit):
            yield
    finally:
        pgo._CODE_STATE = sizes
        for code in _codes(input_codes):
            if id(code) in compiled:
                # It may have fallen back to eager in the block, which must not affect the user's own calls.
                retry(code)
            else:
                eval_frame.reset_code(code)


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


def _isolates() -> bool:
    """Return whether ``torch.compile`` can keep what it compiles to itself, as from torch 2.13 on."""
    import torch

    return "isolate_recompiles" in inspect.signature(torch.compile).parameters


def _codes(tracker: Any) -> list[CodeType]:
    """The code objects that Dynamo has been asked to compile."""
    return [code for reference in tracker.seen if (code := reference()) is not None]


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
