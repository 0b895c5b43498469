"""Reads regular files only: a pipe that nobody writes to never ends the wait, and a device never ends."""

from __future__ import annotations

import errno
import os
import stat
from hashlib import blake2b

_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CHUNK = 1 << 16


def read_regular_file(path: str | os.PathLike[str], largest: int | None = None) -> tuple[bytes, os.stat_result]:
    """The content of a regular file and what the system says of it.

    Raises OSError, for other kinds of file too, and with EFBIG for one of more than ``largest`` bytes.
    """
    descriptor = os.open(path, _OPEN)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        if largest is not None and status.st_size > largest:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), os.fspath(path))
        parts = []
        size = 0
        # Files of /proc have more than the size that they state.
        while part := os.read(descriptor, max(status.st_size + 1, _CHUNK)):
            parts.append(part)
            size += len(part)
            if largest is not None and size > largest:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), os.fspath(path))
        return b"".join(parts), status
    finally:
        os.close(descriptor)


def content_digest(content: bytes) -> str:
    """By which contents of files are compared, also with those that a recording names."""
    return blake2b(content, digest_size=16).hexdigest()
