"""What ``torch.compile`` can be told here, and what it was told."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

PLAIN = (int, float, bool, str, type(None))
_NEEDS = {"tvm": "tvm", "openxla": "torch_xla"}
"""Backends that torch names whether or not what they hand graphs to is installed."""
_NOT_FOR_USE = ("debug", "experimental")


def backends() -> list[str]:
    """The names of the backends that torch and the program offer for use, and that can be loaded."""
    import torch

    return [name for name in torch._dynamo.list_backends(exclude_tags=_NOT_FOR_USE) if _is_there(name)]


def all_backends() -> list[str]:
    """Those for debugging as well, and those that are not installed."""
    import torch

    return list(torch._dynamo.list_backends(exclude_tags=()))


def modes() -> dict[str, dict[str, Any]]:
    """The modes of Inductor, and what each sets."""
    import torch._inductor

    return {name: dict(options) for name, options in torch._inductor.list_mode_options().items()}


def told(context: Any) -> dict[str, Any] | None:
    """What ``torch.compile`` was told, out of Dynamo's context: ``backend``, ``options``, ``dynamic``, ``fullgraph``.
    Equal are what compile alike.  None where this torch keeps it elsewhere."""
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
    options = getattr(backend, "config", None) or getattr(backend, "kwargs", None) or {}
    return {
        "backend": name,
        # Two backends may bear one name.
        "function": id(getattr(backend, "compiler_fn", None)),
        "options": {key: value if isinstance(value, PLAIN) else repr(value) for key, value in options.items()},
        "dynamic": getattr(context, "_dynamic", None),
        "fullgraph": bool(context.fullgraph),
    }


def _is_there(name: str) -> bool:
    from torch._dynamo.backends.registry import lookup_backend

    if name in _NEEDS:
        return find_spec(_NEEDS[name]) is not None
    try:
        lookup_backend(name)
    except Exception:
        # Of an installed package that does not go with this torch.
        return False
    return True
