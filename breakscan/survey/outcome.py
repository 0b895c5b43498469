"""Calls of which it is not known whether they succeed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def outcome(call: Callable[[], T]) -> T | Exception:
    """What a call returns, or the error that it raises.  Raises ImportError: nothing else helps without a package."""
    try:
        return call()
    except ImportError:
        raise
    except Exception as error:
        return error
