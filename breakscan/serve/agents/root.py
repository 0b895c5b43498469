"""The folder that the tools may read and write in: nothing outside it is checked, changed or run by its path."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from breakscan.report.printable import visible
from breakscan.serve.agents.failure import ToolFailure
from breakscan.source.files import SKIPPED_FOLDERS
from breakscan.source.paths import relative_to

_PLAIN = re.compile(r"[\w./\x20-]*\w")
"""Names that mean themselves in the patterns of .gitignore and in a list with commas."""


class RootFolder:
    """A folder, and what lies below it once all links are followed."""

    def __init__(self, folder: Path) -> None:
        self.folder = os.path.realpath(folder)

    def existing(self, path: str) -> str:
        """The path of a file or folder relative to the root, as the system knows it.  Raises ToolFailure for one that
        is elsewhere, also by a link, and for what is neither."""
        if "\0" in path:
            raise ToolFailure("a path has no NUL character: name a file or folder below the root")
        try:
            real = os.path.realpath(os.path.join(self.folder, path))
            relative = "." if real == self.folder else relative_to(real, self.folder)
            if relative is None:
                raise ToolFailure(
                    f"{visible(path)} is outside the root, {self.folder}: name what is below it, or start the server "
                    "with another --root"
                )
            kind = os.stat(real).st_mode
        except OSError as error:
            raise ToolFailure(
                f"cannot read {visible(path)}: {error.strerror}; paths are relative to {self.folder}"
            ) from error
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise ToolFailure(f"{visible(path)} is neither a file nor a folder: name one that is")
        return relative

    def program(self, path: str) -> str:
        """As :meth:`existing`, for a file that Python is to run."""
        relative = self.existing(path)
        if os.path.isdir(os.path.join(self.folder, relative)):
            raise ToolFailure(f"{visible(path)} is a folder: name a Python file, or a module with as_module")
        return relative

    def links_out(self, paths: Sequence[str]) -> list[str]:
        """The links below some paths that lead out of the root, as patterns to exclude.  Raises ToolFailure for one
        that no pattern can name."""
        found = [link for path in paths for link in self._links(os.path.join(self.folder, path))]
        for link in found:
            if not _PLAIN.fullmatch(link):
                raise ToolFailure(f"{visible(link)} leads out of the root: name paths that do not have it")
        return [f"/{link}" for link in dict.fromkeys(found)]

    def _links(self, top: str) -> Iterator[str]:
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
            for name in files:
                path = os.path.join(folder, name)
                if os.path.islink(path) and relative_to(os.path.realpath(path), self.folder) is None:
                    yield os.path.relpath(path, self.folder).replace(os.sep, "/")
