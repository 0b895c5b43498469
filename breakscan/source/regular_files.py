"""Reads regular files only: a pipe that nobody writes to never ends the wait, and a device never ends.

Digests identify contents; each file is read at most once a run."""

import errno
import os
import stat
from collections.abc import Mapping
from hashlib import blake2b

_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CHUNK = 1 << 16


def read_regular_file(path: str | os.PathLike[str], largest: int | None = None) -> tuple[bytes, os.stat_result]:
    """The content of a regular file and what the system says of it.

    Raises OSError, for other kinds of file too, and with EFBIG for one of more than ``largest`` bytes."""
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


ABSENT = ""
"""The digest of a file that does not exist."""
UNKNOWN = "?"
"""The digest of what cannot be read, or only once (a pipe).  Its content is unknown, so nothing equals it."""


class Digests:
    """The digests of files as they are in this run."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, path: str) -> str:
        """The digest of a file's content, :data:`ABSENT` or :data:`UNKNOWN`.  ``path`` is absolute."""
        if path not in self._known:
            try:
                self._known[path] = content_digest(read_regular_file(path)[0])
            except (FileNotFoundError, NotADirectoryError):
                self._known[path] = ABSENT
            except OSError:
                self._known[path] = UNKNOWN
        return self._known[path]

    def forget(self, path: str) -> None:
        """The file may have changed: it is read again on demand."""
        self._known.pop(path, None)

    def learn(self, path: str, content: bytes) -> str:
        """The digest of a content that was read elsewhere.

        What is analyzed has to come in here: a file can change between two readings."""
        known = self._known[path] = content_digest(content)
        return known

    def agree(self, depends: Mapping[str, str]) -> bool:
        """True if each file of ``depends`` still has the content of its digest."""
        known = self._known
        for path, digest in depends.items():
            if (known.get(path) or self.of(path)) != digest or digest == UNKNOWN:
                return False
        return True
