"""Digests of the contents of files, each file read at most once a run."""

from __future__ import annotations

from collections.abc import Mapping

from breakscan.source.regular_files import content_digest, read_regular_file

ABSENT = ""
"""Stands for a file that is not there."""
UNKNOWN = "?"
"""Stands for what cannot be read, or only once (a pipe).  Nothing is known of its content, so nothing equals it."""


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

    def forget(self, path: str) -> None:
        """The file may have changed: it is read again when it is asked for."""
        self._known.pop(path, None)

    def learn(self, path: str, content: bytes) -> str:
        """The digest of a content that was read elsewhere.

        What is analyzed has to come in here: a file can change between two readings.
        """
        known = self._known[path] = content_digest(content)
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
        return content_digest(read_regular_file(path)[0])
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError:
        return UNKNOWN
