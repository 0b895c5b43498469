"""Makes compiled autograd say why it captures a backward pass again, which it tells a verbose logger alone.

Torch has such a logger under ``TORCH_LOGS=compiled_autograd_verbose``.  Ours prints nothing.
"""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from breakscan.record.hooks.patching import wrapped

_SILENT = logging.Logger("breakscan", logging.CRITICAL + 1)
"""Torch keeps no reference to it: it must live as long as the process."""


@contextmanager
def autograd_reasons() -> Iterator[bool]:
    """Has the structured trace name the reasons while the block runs.  Yields False where this torch has no such
    logger: the reasons are missing then."""
    try:
        set_verbose_logger: Any = pkgutil.resolve_name("torch._C:_dynamo.compiled_autograd.set_verbose_logger")
        is_verbose: Any = pkgutil.resolve_name("torch._dynamo.compiled_autograd:snapshot_verbose_logging_enabled")
    except (ImportError, AttributeError):
        yield False
        return

    def listen() -> None:
        if not is_verbose():
            set_verbose_logger(_SILENT)

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def reset(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            listen()
            return result

        return reset

    with wrapped(["torch._dynamo.compiled_autograd"], "reset", wrap) as available:
        listen()
        try:
            yield available
        finally:
            if not is_verbose():
                set_verbose_logger(None)
