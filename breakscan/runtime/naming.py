"""Names and places as the user knows them: without the functions that Dynamo makes, and with their owner."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from breakscan.findings import Origin

_RESUME = re.compile(r"torch_dynamo_resume_in_(?P<name>.+)_at_\d+$")
_COMPREHENSION = re.compile(r"__comprehension_(?P<name>.+)_at_\d+$")
_OURS = PurePath(__file__).parent.parent
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def user_name(name: str) -> str:
    """The name of the function in the user's file that a code object of Dynamo's stands for."""
    while found := _RESUME.match(name) or _COMPREHENSION.match(name):
        name = found["name"]
    return name


def is_resumed(name: str) -> bool:
    """Whether the name is that of the rest of a function, behind a break."""
    return _RESUME.match(name) is not None


def is_compiler_entry(path: str) -> bool:
    """Whether the file is the one through which a program calls into compiled code."""
    return path.replace("\\", "/").endswith("torch/_dynamo/eval_frame.py")


def is_module_wrapper(path: str) -> bool:
    """Whether the file is the one whose function Dynamo compiles in place of the ``forward`` of a module of torch's."""
    return path.replace("\\", "/").endswith("torch/_dynamo/external_utils.py")


def is_ours(path: str) -> bool:
    """Whether the file is breakscan's own."""
    return PurePath(path).is_relative_to(_OURS)


@dataclass(frozen=True, slots=True)
class Owners:
    """Tells whose a file is, from the folders of the Python that ran the program."""

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
