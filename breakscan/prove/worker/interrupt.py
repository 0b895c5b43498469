"""How measuring is ended early: by Ctrl-C, or by the SIGTERM of ``timeout`` and of a cluster's scheduler."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def interrupted_once() -> Iterator[None]:
    """SIGINT and SIGTERM raise KeyboardInterrupt in the block once; then they are ignored until the block is left,
    as the processes are being ended.  In other threads than the main one nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupted(*_: object) -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupted) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
