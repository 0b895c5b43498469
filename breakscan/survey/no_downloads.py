"""Keeps what runs from the network: a unit is the same with and without one, and loads no weights."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_OWN = frozenset({None, "", "localhost", "127.0.0.1", "::1"})


@contextmanager
def no_downloads() -> Iterator[None]:
    """No other machine is found by its name meanwhile."""
    find = socket.getaddrinfo

    def of_own_machine(host: Any, *others: Any, **named: Any) -> Any:
        if host not in _OWN:
            raise socket.gaierror(socket.EAI_FAIL, f"a survey loads nothing from {host}")
        return find(host, *others, **named)

    socket.getaddrinfo = of_own_machine
    try:
        yield
    finally:
        socket.getaddrinfo = find
