"""Digests of the contents of files, each file read at most once a run."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from hashlib import blake2b

ABSENT = ""
"""Stands for a file that is not there."""
UNKNOWN = "?"
"""Stands for what cannot be read, or only once (a pipe).  Nothing is known of its content, so nothing equals it."""

_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Without waiting: a pipe that nobody writes to would be waited for without end."""


def read_file(path: str) -> tuple[bytes, os.stat_result]:
    """The content of a regular file and what the system says of it.  Raises OSError, for other kinds of file too."""
    descriptor = os.open(path, _OPEN)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        parts = []
        while part := os.read(descriptor, status.st_size + 1):
            parts.append(part)
        return b"".join(parts), status
    finally:
        os.close(descriptor)


class Digests:
    """The digests of files as they are in this run."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, path: str) -> str:
        """The digest of a file's content, :data:`ABSENT` or :data:`UNKNOWN`.  ``path`` is absolute."""
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = _digest_of_file(path)
        return known

    def learn(self, path: str, content: bytes) -> str:
        """The digest of a content that was read elsewhere.

        What is analyzed has to come in here: a file can change between two readings.
        """
        known = self._known[path] = _digest(content)
        return known

    def agree(self, depends: Mapping[str, str]) -> bool:
        """Whether each file of ``depends`` still has the content that its digest stands for."""
        known = self._known
        for path, digest in depends.items():
            if (known.get(path) or self.of(path)) != digest or digest == UNKNOWN:
                return False
        return True


def _digest_of_file(path: str) -> str:
    try:
        return _digest(read_file(path)[0])
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError:
        return UNKNOWN


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
