"""What can be passed to ``torch.compile`` here, and what was passed to it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from breakscan.prove.worker.protocol import CompileChoice, CompileOption

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
    """What was passed to ``torch.compile``, read from Dynamo's context.  Choices that compile alike are equal.  None
    where this torch keeps it elsewhere."""
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
        function=id(getattr(backend, "compiler_fn", None)),
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
