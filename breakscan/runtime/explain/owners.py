"""Whose a file is: the user's, a library's, torch's, Python's or breakscan's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

import breakscan
from breakscan.findings import Origin

_OURS = PurePath(breakscan.__file__).parent
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def is_ours(path: str) -> bool:
    """Whether the file is breakscan's own."""
    return PurePath(path).is_relative_to(_OURS)


@dataclass(frozen=True, slots=True)
class Owners:
    """Determines the owner of a file from the folders of the Python that ran the program."""

    torch: str
    standard: str

    def of(self, path: str) -> Origin:
        """Framework is torch itself, library what is installed, user the rest."""
        if self.torch and PurePath(path).is_relative_to(self.torch):
            return Origin.FRAMEWORK
        if self.is_standard(path) or any(folder in PurePath(path).parts for folder in _PACKAGE_FOLDERS):
            return Origin.LIBRARY
        return Origin.USER

    def is_standard(self, path: str) -> bool:
        """Whether the file is of Python's standard library."""
        if path.startswith("<frozen "):
            return True
        below = bool(self.standard) and PurePath(path).is_relative_to(self.standard)
        return below and not any(folder in PurePath(path).parts for folder in _PACKAGE_FOLDERS)
