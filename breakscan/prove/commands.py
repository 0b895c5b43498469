"""The commands that a worker process answers, and what answers each."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from breakscan.prove.call_runs import CallRuns, SharedState
from breakscan.prove.capture import Capture
from breakscan.prove.compiled_parts import CompiledParts
from breakscan.prove.protocol import (
    AvailableChoices,
    CapturedCount,
    CompileChoice,
    CompileOption,
    Description,
    ProgramRun,
)
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.torch_state import cuda_in_use
from breakscan.prove.varied_calls import VariedCalls

_NEEDS = {"tvm": "tvm", "openxla": "torch_xla"}
"""Backends that torch names even where the package that they need is not installed."""
_NOT_FOR_USE = ("debug", "experimental")


def backends() -> tuple[str, ...]:
    """The names of the backends of torch and of the program that are meant for use, and that can be loaded."""
    import torch

    return tuple(name for name in torch._dynamo.list_backends(exclude_tags=_NOT_FOR_USE) if _is_there(name))


def all_backends() -> tuple[str, ...]:
    """All backends: those for debugging and those that are not installed as well."""
    import torch

    return tuple(torch._dynamo.list_backends(exclude_tags=()))


def modes() -> dict[str, dict[str, CompileOption]]:
    """The modes of Inductor with the options that each sets."""
    import torch._inductor

    return {name: _options(options) for name, options in torch._inductor.list_mode_options().items()}


def choice_of(context: Any) -> CompileChoice | None:
    """The choice that was passed to ``torch.compile``, read from Dynamo's context.  Choices that compile alike are
    equal.  None where this torch keeps it elsewhere."""
    backend = getattr(context, "callback", None)
    while True:
        inner = getattr(backend, "_torchdynamo_orig_backend", None) or getattr(
            backend, "_torchdynamo_orig_callable", None
        )
        if inner is None:
            break
        backend = inner
    name = getattr(backend, "compiler_name", None)
    if name is None or not hasattr(context, "fullgraph"):
        return None
    return CompileChoice(
        backend=str(name),
        options=_options(getattr(backend, "config", None) or getattr(backend, "kwargs", None) or {}),
        dynamic=getattr(context, "_dynamic", None),
        fullgraph=bool(context.fullgraph),
    )


def _options(given: dict[str, Any]) -> dict[str, CompileOption]:
    return {
        key: value if type(value) in (int, float, bool, str, type(None)) else repr(value)
        for key, value in given.items()
    }


def _is_there(name: str) -> bool:
    from torch._dynamo.backends.registry import lookup_backend

    if name in _NEEDS:
        return find_spec(_NEEDS[name]) is not None
    try:
        lookup_backend(name)
    except Exception:
        # An installed package may not work with this torch.
        return False
    return True


CACHE_VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


class CommandHandler:
    """Answers commands about the calls that were captured.  ``cache`` is the folder of the worker's compiler caches."""

    def __init__(
        self,
        capture: Capture,
        run: ProgramRun,
        stop_recording: Callable[[], None],
        cache: Path,
        overlaid: Collection[str],
    ) -> None:
        self._capture = capture
        self._run = run
        self._callables = capture.captured
        self._cache = cache
        self._stop_recording = stop_recording
        self._overlaid = overlaid

    def served(self) -> dict[str, object]:
        """The objects whose public methods are commands, by the names of their classes."""
        return {
            type(one).__name__: one
            for one in (
                self,
                SharedState(self._callables),
                CallRuns(self._callables, self._stop_recording),
                CompiledParts(self._callables, self._capture.hook, self._stop_recording),
                VariedCalls(self._callables, self._overlaid, self._capture.later),
                StepTimer(self._capture, self._before_timing),
            )
        }

    def describe(self) -> Description:
        """The captured calls, and how the program reached them."""
        captured = self._callables
        walks = [snapshot.walk for one in captured for snapshot in one.snapshots()]
        return Description(
            run=self._run,
            callables=tuple(CapturedCount(one.name, len(one.calls)) for one in captured),
            modes=tuple(call.modes.described() for one in captured for call in one.calls),
            backward=tuple(one.backward for one in captured),
            left_out=tuple(sorted(set(self._capture.left_out))),
            not_called=tuple(sorted({one.name for one in self._capture.callables if not one.calls and not one.passed})),
            devices=tuple(sorted(self._devices())),
            complete=all(walk.complete for walk in walks),
            iterators=tuple(sorted({path for walk in walks for path in walk.iterators})),
            warm_cache=_cached_files(self._cache),
        )

    def choices(self) -> AvailableChoices:
        """The choices that there are."""
        chosen = tuple(choice_of(one.context) for one in self._callables)
        return AvailableChoices(backends(), all_backends(), modes(), chosen)

    def compile(self, options: dict[str, CompileOption]) -> None:
        """Compiles each callable with these keyword arguments of ``torch.compile`` from now on."""
        for one in self._callables:
            one.compiled = self._capture.hook.compile(one.original, options)

    def _devices(self) -> set[str]:
        """The types of the devices that the calls use.  NumPy arrays have none: there an initialized device counts."""
        if not self._callables:
            return set()

        snapshots = [snapshot for one in self._callables for snapshot in one.snapshots()]
        found = {tensor.device.type for snapshot in snapshots for tensor in snapshot.tensors.values()}
        return found | ({"cuda"} if cuda_in_use() else set())

    def _before_timing(self) -> None:
        self._stop_recording()
        self._capture.hook.remove_timers()


def _cached_files(cache: Path) -> int:
    """Files in the compiler caches, in the worker's folder and in the folders that the program chose itself."""
    folders = {str(cache), *(folder for name in CACHE_VARIABLES if (folder := os.environ.get(name)) is not None)}
    return sum(len(files) for folder in folders for _, _, files in os.walk(folder))
