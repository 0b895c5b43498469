"""Whose a file is: the user's, a library's, torch's, Python's or breakscan's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

import breakscan
from breakscan.model.findings import Origin

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
        return _owner(self, path)

    def is_programs(self, path: str) -> bool:
        """Whether the file is neither torch's nor of Python's standard library: the user's, or a library's."""
        return self.of(path) is not Origin.FRAMEWORK and not self.is_standard(path)

    def is_standard(self, path: str) -> bool:
        """Whether the file is of Python's standard library."""
        return _is_standard(self, path)


# A run has few files, and asks for them at each line of each stack.
@lru_cache(maxsize=4096)
def _owner(owners: Owners, path: str) -> Origin:
    if owners.torch and PurePath(path).is_relative_to(owners.torch):
        return Origin.FRAMEWORK
    if owners.is_standard(path) or any(folder in PurePath(path).parts for folder in _PACKAGE_FOLDERS):
        return Origin.LIBRARY
    return Origin.USER


@lru_cache(maxsize=4096)
def _is_standard(owners: Owners, path: str) -> bool:
    if path.startswith("<frozen "):
        return True
    below = bool(owners.standard) and PurePath(path).is_relative_to(owners.standard)
    return below and not any(folder in PurePath(path).parts for folder in _PACKAGE_FOLDERS)
