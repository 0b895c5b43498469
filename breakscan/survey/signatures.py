"""What callables take, by their signatures."""

from __future__ import annotations

import contextlib
import inspect
import typing
from collections.abc import Callable
from typing import Any


def resolved(call: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a callable, without what takes the rest, and with their annotations as objects where they can
    be had, Any without one.  Raises ValueError where Python does not know them."""
    parameters = inspect.signature(call).parameters
    hints: dict[str, Any] = {}
    target = getattr(call, "__init__", call) if isinstance(call, type) else getattr(call, "__func__", call)
    with contextlib.suppress(Exception):
        hints = typing.get_type_hints(target)
    known = vars(typing) | getattr(target, "__globals__", {})
    found = {}
    for name, one in parameters.items():
        if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            kind = hints.get(name, one.annotation)
            if isinstance(kind, str):
                with contextlib.suppress(Exception):
                    kind = eval(kind, known)
            found[name] = one.replace(annotation=Any if kind is one.empty else kind)
    return found


def takes_tensors(kind: Any) -> bool:
    """Whether an annotation speaks of tensors, or of nothing."""
    return kind is Any or "Tensor" in (kind if isinstance(kind, str) else repr(kind))
